"""What a channel wants of the digest, and how it is read from what people type."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from bot.prices.money import UnknownCurrency, bundled_rates
from bot.prices.offers import CLASSES, NOT_BY_THE_HOUR
from bot.prices.snapshot import snapshot_offers
from bot.prices.view import WATCH_LIST, gpus_meant
from bot.texts import say, texts
from estimator.errors import EstimatorError

MOST_GPUS, MOST_WORKLOADS, MOST_ALERTS, LONGEST_WORKLOAD = 12, 3, 10, 200
_ALERT = re.compile(
    r"^(?P<gpu>.+?)\s*(?P<spot>\bspot\b|抢占式|竞价)?\s*(?:<|<=|≤|低于|below|under)\s*(?P<sign>[$¥￥])?\s*"
    r"(?P<price>\d+(?:\.\d+)?)\s*(?P<currency>[A-Za-z]{3}|元|美元)?$"
)
_WORDS = {"$": "USD", "美元": "USD", "¥": "CNY", "￥": "CNY", "元": "CNY", "RMB": "CNY"}


class BadDigest(ValueError):
    """A value that cannot be used; the text is one sentence for who gave it."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Tell when the cheapest offer of a card falls below a price per GPU and hour."""

    gpu: str
    below_usd: float
    spot: bool = False

    @property
    def key(self) -> str:
        """What tells one alert of a channel from another."""
        return f"{self.gpu}|{'spot' if self.spot else ''}|{self.below_usd:.6f}"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A channel's digest. ``since`` (seconds of UTC): posts that were due before it are not owed."""

    channel: int
    guild: int
    by: int
    at: str
    zone: str
    lang: str
    currency: str
    since: float
    gpus: tuple[str, ...] = WATCH_LIST
    classes: tuple[str, ...] = tuple(one for one in CLASSES if one not in NOT_BY_THE_HOUR)
    workloads: tuple[str, ...] = ()
    alerts: tuple[Alert, ...] = field(default=())
    enabled: bool = True
    failures: int = 0

    @property
    def time(self) -> time:
        """The time of day of the post, in the zone."""
        return time.fromisoformat(self.at)


def time_of(text: str, lang: str) -> str:
    """A time of day: 9, 9:30, 21:05, 9点. Raises BadDigest."""
    found = re.fullmatch(r"(\d{1,2})(?:[:：点时h](\d{2})?分?)?", text.strip())
    if not found or int(found[1]) > 23 or int(found[2] or 0) > 59:
        raise BadDigest(say(lang, "digest.bad_time", text=_short(text)))
    return f"{int(found[1]):02}:{int(found[2] or 0):02}"


def zone_of(text: str, lang: str) -> str:
    """An IANA zone. Raises BadDigest."""
    name = text.strip()
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadDigest(say(lang, "digest.bad_zone", text=_short(text))) from None
    return name


def zones(typed: str, most: int = 25) -> list[str]:
    """Zones that hold what was typed, those of a region's beginning first."""
    word = typed.strip().casefold().replace(" ", "_")
    found = sorted(name for name in available_timezones() if word in name.casefold() and "/" in name)
    return sorted(found, key=lambda name: not name.split("/")[-1].casefold().startswith(word))[:most] or ["UTC"]


def gpus_of(text: str, lang: str) -> tuple[str, ...]:
    """Cards, separated by commas. Raises BadDigest."""
    names: dict[str, None] = {}
    for one in _listed(text):
        try:
            names.update(dict.fromkeys(gpus_meant(one, snapshot_offers())))
        except EstimatorError as error:
            raise BadDigest(error.message_zh if lang == "zh" else error.message) from None
    if not 0 < len(names) <= MOST_GPUS:
        raise BadDigest(say(lang, "digest.bad_gpus", most=MOST_GPUS))
    return tuple(names)


def classes_of(text: str, lang: str) -> tuple[str, ...]:
    """Classes of providers, separated by commas, by their key or name. Raises BadDigest."""
    names = {str(name).casefold(): key for key, name in texts(lang)["provider_class"].items()}
    found = [names.get(one.casefold(), one.casefold()) for one in _listed(text)]
    if not found or any(one not in CLASSES for one in found):
        raise BadDigest(say(lang, "digest.bad_classes", known=", ".join(CLASSES)))
    return tuple(dict.fromkeys(found))


def workloads_of(text: str, lang: str) -> tuple[str, ...]:
    """Workloads in words, separated by semicolons; each must name a model. Raises BadDigest."""
    from bot.intake.understand import understand

    found = [part.strip() for part in re.split(r"[;；\n]", text) if part.strip()]
    for one in found:
        if len(one) > LONGEST_WORKLOAD or not any(run.get("model") for run in understand(one).runs):
            raise BadDigest(say(lang, "digest.bad_workload", text=_short(one)))
    if len(found) > MOST_WORKLOADS:
        raise BadDigest(say(lang, "digest.many_workloads", most=MOST_WORKLOADS))
    return tuple(found)


def alerts_of(text: str, lang: str, currency: str) -> tuple[Alert, ...]:
    """Thresholds such as "H100 < 2, 4090 spot < 1.5 CNY". Raises BadDigest."""
    found = [alert for part in _listed(text) for alert in _alerts(part, lang, currency)]
    if len(found) > MOST_ALERTS:
        raise BadDigest(say(lang, "digest.many_alerts", most=MOST_ALERTS))
    return tuple(dict.fromkeys(found))


def _alerts(part: str, lang: str, currency: str) -> list[Alert]:
    match = _ALERT.match(part)
    if match is None or float(match["price"]) <= 0:
        raise BadDigest(say(lang, "digest.bad_alert", text=_short(part)))
    said = match["currency"] or match["sign"] or currency
    try:
        usd = bundled_rates().to_usd(float(match["price"]), _WORDS.get(said.upper(), said))
    except UnknownCurrency as error:
        raise BadDigest(error.message_zh if lang == "zh" else error.message) from None
    return [Alert(gpu, round(usd, 6), bool(match["spot"])) for gpu in gpus_of(match["gpu"], lang)]


def _listed(text: str) -> Sequence[str]:
    return [part.strip() for part in re.split(r"[,，、;；\n]", text) if part.strip()]


def _short(text: str) -> str:
    from bot.answers.quote import quoted

    return quoted(text, 60)
