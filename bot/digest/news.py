"""What the history knows of the time since a channel's last post."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bot.digest.content import News
from bot.prices.ask import lows_of
from bot.prices.history import History


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
        "lows": lows_of(history, gpus[:1], now),
    }
    first = history.first_at()
    if last is None or first is None or first > last[1]:
        return News(**facts)  # type: ignore[arg-type]
    new, gone = history.changes(last[1], now.timestamp())
    before, after = history.at(last[1]), history.at(now.timestamp())
    return News(before=before, after=after, new=new, gone=gone, **facts)  # type: ignore[arg-type]
