"""``vram-bot digest``: the post of a day, printed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.prices.current import FILE
from bot.prices.history import DAY, History
from bot.prices.sources import Fetched
from tests.bot.cli.runner import run
from tests.bot.prices.made import made

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VRAM_BOT_CURRENCY", raising=False)
    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("lang", "title", "words"),
    [
        ("en", "GPU prices ·", ("embedded snapshot, the newest of 2026-", "Cheapest, per GPU", "To buy:", "Sources:")),
        ("zh", "显卡价格日报 ·", ("内置价格快照，最新日期 2026-", "最低价", "购买：", "来源：", "1 美元 = 6.6529 CNY")),
    ],
)
def test_the_post_is_printed_without_discords_marks(
    folder: Path, capsys: Capture, lang: str, title: str, words: tuple[str, ...]
) -> None:
    done = run(capsys, "digest", "--lang", lang)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(title) and all(word in done.out for word in words)
    assert not any(mark in done.out for mark in ("**", "###", "-# "))


def test_workloads_cards_and_currency_are_chosen(folder: Path, capsys: Capture) -> None:
    flags = ("--gpus", "4090, L40S", "--workload", "qlora 8b at 4k", "--workload", "lora 7b", "--currency", "USD")
    done = run(capsys, "digest", "--lang", "en", *flags)
    assert "H100" not in done.out and "RTX 4090 $0.34" in done.out and "L40S $1.86" in done.out
    assert done.out.count("per million tokens") == 6
    assert "qlora 8b at 4k: RTX 4090 $0.34/h (marketplaces, China, shengsuanyun, 2026-08-19), about $0.0835" in done.out


def recorded(folder: Path, now: datetime) -> None:
    """Three providers that fell by a tenth yesterday evening, one that came, one that left."""
    history, start = History(folder / FILE), now.timestamp() - 4 * DAY
    first = {"a": 0.5, "b": 0.5, "c": 0.5, "left": 0.6}
    later = {"a": 0.45, "b": 0.45, "c": 0.45, "came": 0.4}
    for days, prices in ((0, first), (3.6, later), (3.7, later), (3.99, later)):
        at = start + days * DAY
        day = datetime.fromtimestamp(at, UTC).date().isoformat()
        offers = [made(price, provider=name, as_of=day) for name, price in prices.items()]
        history.record("s", Fetched(offers, 4), at)
    history.close()


def test_a_day_is_compared_with_the_day_before(folder: Path, capsys: Capture) -> None:
    now = datetime.now(UTC)
    recorded(folder, now)
    today = run(capsys, "digest", "--gpus", "4090", "--lang", "en").out
    assert "RTX 4090, marketplaces: -10.0 % (median of 3 offers)" in today
    assert "New offers: RTX 4090 $0.40 marketplaces (came" in today
    assert "No longer offered: RTX 4090 $0.60 marketplaces (left" in today
    before = (now - timedelta(days=1)).date().isoformat()
    past = run(
        capsys, "digest", "--gpus", "4090", "--date", (now - timedelta(days=2)).date().isoformat(), "--lang", "en"
    )
    assert "Quiet since" in past.out and "came" not in past.out
    assert before not in past.out and now.date().isoformat() not in past.out
    found = json.loads(run(capsys, "digest", "--gpus", "4090", "--json").out)
    assert found["quiet"] is False and found["moved"][0]["change"] == -10.0 and found["day"] == now.date().isoformat()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--date", "2999-01-01"), "2999-01-01"), (("--date", "soon"), "soon"), (("--gpus", "nosuch"), "nosuch"),
        (("--workload", "hello"), "names no model"), (("--currency", "XXX"), "no exchange rate is known for 'XXX'"),
        (("--workload", "7b;7b;7b;7b"), "at most 3 runs"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(folder: Path, capsys: Capture, flags: tuple[str, ...], said: str) -> None:
    done = run(capsys, "digest", *flags, "--lang", "en")
    assert (done.status, done.out) == (2, "")
    assert said in done.err and len(done.err.strip().splitlines()) == 1
