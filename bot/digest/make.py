"""A post made from what lies in the bot's folder: read once, and once for all channels that want the same."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from bot.digest.content import News, Post, post_of
from bot.digest.news import news_since
from bot.digest.subscription import Subscription, gpus_of, workloads_of
from bot.digest.workloads import WorkloadCost, workload_cost
from bot.folders import data_folder
from bot.prices.ask import currency_of
from bot.prices.current import Market, history_in, market_in, merged
from bot.prices.money import bundled_rates
from bot.prices.view import WATCH_LIST

DAY = timedelta(days=1)


def printed(day: date, now: datetime, lang: str, gpus: str = "", workloads: str = "", currency: str = "") -> Post:
    """The post of a day for nobody in particular, compared with the day before. Raises BadDigest, UnknownCurrency."""
    wanted = Subscription(
        channel=0, guild=0, by=0, at="00:00", zone="UTC", lang=lang, currency=currency_of(lang, currency), since=0,
        gpus=gpus_of(gpus, lang) if gpus else WATCH_LIST, workloads=workloads_of(workloads, lang) if workloads else (),
    )  # fmt: skip
    maker = Maker(data_folder(), now)
    begun = maker.history_begins()
    yesterday = now - DAY
    known = begun is not None and begun <= yesterday.timestamp()
    return maker.post(wanted, day, ((day - DAY).isoformat(), yesterday.timestamp()) if known else None)


class Maker:
    """Makes the posts of one moment; what several channels share is worked out once."""

    def __init__(self, folder: Path, now: datetime) -> None:
        self._folder, self._now = folder, now
        self._market = self._market_then()
        self._news: dict[object, News] = {}
        self._posts: dict[object, Post] = {}
        self._workloads: dict[object, WorkloadCost] = {}

    def post(
        self, wanted: Subscription, day: date, last: tuple[str, float] | None, skipped: tuple[str, ...] = ()
    ) -> Post:
        """The post of a channel; ``last``: date and time (seconds) of its last one."""
        since = self._standing(last)
        key = (wanted.gpus, wanted.classes, wanted.workloads, wanted.currency, wanted.lang, day, since, skipped)
        if key not in self._posts:
            self._posts[key] = self._made(wanted, day, since, skipped)
        return self._posts[key]

    def history_begins(self) -> float | None:
        """When the first price was written down, in seconds; None without a history."""
        with history_in(self._folder) as history:
            return history.first_at() if history else None

    def _made(self, wanted: Subscription, day: date, last: tuple[str, float] | None, skipped: tuple[str, ...]) -> Post:
        news = self._news_of(wanted.gpus, last, skipped)
        rate = bundled_rates().rate(wanted.currency)
        offers = self._market.offers
        runs = [self._workload(text, wanted, rate) for text in wanted.workloads]
        return post_of(wanted, day, self._now, offers, news, self._market.purchases, runs)

    def _workload(self, text: str, wanted: Subscription, rate: float) -> WorkloadCost:
        """A workload at the prices of the followed classes."""
        key = (text, wanted.classes, wanted.lang, rate)
        if key not in self._workloads:
            among = [one for one in self._market.offers if one.provider_class in wanted.classes]
            self._workloads[key] = workload_cost(text, among, self._now, rate, wanted.lang)
        return self._workloads[key]

    def _standing(self, last: tuple[str, float] | None) -> tuple[str, float] | None:
        """The last post with its time cut to the hour: channels that were posted one after another compare alike."""
        return (last[0], last[1] - last[1] % 3_600) if last else None

    def _news_of(self, gpus: tuple[str, ...], last: tuple[str, float] | None, skipped: tuple[str, ...]) -> News:
        key = (gpus, last, skipped)
        if key not in self._news:
            with history_in(self._folder) as history:
                self._news[key] = news_since(history, last, self._now, gpus, skipped)
        return self._news[key]

    def _market_then(self) -> Market:
        """What is known now, or was known at an earlier time."""
        market = market_in(self._folder, self._now)
        if datetime.now(UTC) - self._now <= DAY / 2:
            return market
        with history_in(self._folder) as history:
            then = tuple(history.at(self._now.timestamp()).values()) if history else ()
        return market._replace(offers=merged(then)) if history else market
