"""What a post says, as data: made from the market, the history and what was posted last. Pure; ``now`` is given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from bot.digest.movers import Key, group_moves, moves, single_moves
from bot.digest.subscription import Subscription
from bot.digest.workloads import WorkloadCost
from bot.prices.offers import Offer
from bot.prices.purchases import Purchase
from bot.prices.ranking import is_current, ranked
from bot.prices.view import Lows, PriceAnswer, Priced, Teller, Wanted, prices

MOST_NEW = 5


@dataclass(frozen=True, slots=True)
class News:
    """What the history says between the last post and now; ``since``: the day of the last post, "" for none."""

    before: Mapping[Key, Offer] = field(default_factory=dict)
    after: Mapping[Key, Offer] = field(default_factory=dict)
    new: Sequence[Offer] = ()
    gone: Sequence[Offer] = ()
    since: str = ""
    skipped: Sequence[str] = ()
    failed: int = 0
    answered: int = 0
    last_good: str = ""
    lows: Mapping[str, Lows] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved:
    """A move as it is told: prices in the currency of the post, ``change`` in per cent."""

    gpu: str
    provider_class: str
    spot: bool
    provider: str
    before: float
    price: float
    change: float
    n_matched: int
    as_of: str


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest offers of a card, one for each class; on demand before spot.

    ``as_of``: the newest day of them where none of today's sources speaks of the card.
    """

    gpu: str
    offers: list[Priced]
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """A digest. ``quiet``: nothing moved since the last post, one line says so."""

    day: str
    since: str
    quiet: bool
    moved: list[Moved]
    cheapest: list[Cheapest]
    new: list[Priced]
    gone: list[Priced]
    workloads: list[WorkloadCost]
    prices: PriceAnswer
    as_of: str
    skipped: list[str]
    failed: int
    answered: int
    last_good: str


def post_of(
    wanted: Subscription,
    day: date,
    now: datetime,
    offers: Sequence[Offer],
    news: News,
    own: tuple[Purchase, ...] = (),
    workloads: Sequence[WorkloadCost] = (),
) -> Post:
    """The post of a channel for a local date."""
    among = frozenset(wanted.classes)
    answer = prices(
        Wanted(wanted.gpus, currency=wanted.currency, among=among, most=len(wanted.gpus)), offers, now, own=own,
        lows=news.lows,
    )  # fmt: skip
    teller = Teller(answer.rate, now)
    moved = _moved(news, wanted, answer.rate)
    new, gone = _told(news.new, wanted, teller), _told(news.gone, wanted, teller)
    cheapest = [_cheapest(gpu, offers, wanted, now, teller) for gpu in wanted.gpus]
    live = [one for one in answer.offers if one.age in ("fresh", "dated")]
    return Post(
        day=day.isoformat(), since=news.since, quiet=bool(news.since) and not (moved or new or gone),
        moved=moved, cheapest=[one for one in cheapest if one.offers], new=new, gone=gone, workloads=list(workloads),
        prices=answer, as_of="" if live else max((one.as_of for one in answer.offers), default=""),
        skipped=list(news.skipped), failed=news.failed, answered=news.answered, last_good=news.last_good,
    )  # fmt: skip


def _follows(offer: Offer, wanted: Subscription) -> bool:
    return offer.gpu in wanted.gpus and offer.provider_class in wanted.classes


def _moved(news: News, wanted: Subscription, rate: float) -> list[Moved]:
    """Classes with enough matched offers first, then single offers of other classes."""
    found = [move for move in moves(news.before, news.after) if _follows(move.offer, wanted)]
    groups = group_moves(found)
    told = [
        Moved(one.gpu, one.provider_class, one.spot, "", 0.0, 0.0, round(100 * one.change, 1), one.n_matched, "")
        for one in groups
    ]
    return told + [
        Moved(
            move.offer.gpu, move.offer.provider_class, move.offer.spot, move.offer.provider, move.before_usd * rate,
            move.offer.usd_per_gpu_hour * rate, round(100 * move.change, 1), 1, move.offer.as_of,
        )
        for move in single_moves(found)
    ]  # fmt: skip


def _told(found: Iterable[Offer], wanted: Subscription, teller: Teller) -> list[Priced]:
    best: dict[tuple[str, str, bool], Offer] = {}
    for offer in sorted(found, key=lambda one: one.usd_per_gpu_hour):
        if _follows(offer, wanted):
            best.setdefault((offer.provider, offer.gpu, offer.spot), offer)
    return [teller.offer(one) for one in list(best.values())[:MOST_NEW]]


def _cheapest(gpu: str, offers: Sequence[Offer], wanted: Subscription, now: datetime, teller: Teller) -> Cheapest:
    best: list[Offer] = []
    for spot in (False, True):
        for name in wanted.classes:
            group = [one for one in offers if one.gpu == gpu and one.provider_class == name and one.spot == spot]
            best += ranked(group, now, 1).offers
    today = [one for one in best if is_current(one, now)]
    as_of = "" if today else max((one.as_of for one in best), default="")
    return Cheapest(gpu, [teller.offer(one) for one in today or best], as_of)


def cheapest_usd(gpu: str, spot: bool, classes: Sequence[str], offers: Sequence[Offer], now: datetime) -> Offer | None:
    """The cheapest offer of today's sources; the snapshot never sets off an alert."""
    group = [one for one in offers if one.gpu == gpu and one.spot == spot and one.provider_class in classes]
    ranking = ranked(group, now, 1)
    return ranking.offers[0] if ranking.offers and not ranking.as_of else None
