"""What the history knows of the time since a channel's last post."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bot.digest.content import News
from bot.prices.history import History
from bot.prices.lines import daily_lows
from bot.prices.view import Lows

CHART_DAYS = 30


def news_since(
    history: History | None,
    last: tuple[str, float] | None,
    now: datetime,
    gpus: Sequence[str],
    skipped: Sequence[str] = (),
) -> News:
    """The news since the last post (its date and time), for these cards; without a history there are none."""
    since = last[0] if last else ""
    if history is None:
        return News(since=since, skipped=skipped)
    runs = history.runs(now.timestamp())
    good = [run.good_at for run in runs if run.good_at is not None]
    facts = {
        "since": since,
        "skipped": skipped,
        "failed": sum(run.status == "failed" for run in runs),
        "answered": sum(run.status != "failed" for run in runs),
        "last_good": datetime.fromtimestamp(max(good), UTC).date().isoformat() if good else "",
        "lows": _lows(history, gpus[:1], now),
    }
    first = history.first_at()
    if last is None or first is None or first > last[1]:
        return News(**facts)  # type: ignore[arg-type]
    new, gone = history.changes(last[1], now.timestamp())
    before, after = history.at(last[1]), history.at(now.timestamp())
    return News(before=before, after=after, new=new, gone=gone, **facts)  # type: ignore[arg-type]


def _lows(history: History, gpus: Sequence[str], now: datetime) -> dict[str, Lows]:
    since = now - timedelta(days=CHART_DAYS)
    return {gpu: daily_lows(history.steps(gpu, False, since.timestamp(), now.timestamp()), since, now) for gpu in gpus}
