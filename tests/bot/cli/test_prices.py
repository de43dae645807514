"""``vram-bot prices``: what is printed, where, and what bad input gets."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.prices.current import current_market
from bot.prices.sources.skypilot import SkyPilot
from tests.bot.cli.runner import run
from tests.bot.prices import catalogues

Capture = pytest.CaptureFixture[str]
TABLE = (
    "gpu,price,currency,kind,per,provider,region,as_of,source\n4090,1.98,CNY,rent,hour,autodl,CN,2026-11-30,a site\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own; nothing of the environment's settings is heard."""
    for name in ("VRAM_BOT_PRICE_TABLE", "VRAM_BOT_CURRENCY", "VRAM_BOT_PRICE_SOURCES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ("per GPU", "big clouds", "as of 2026-09-06", "Offers without a date", "in US shops (2025-08-24)")),
        ("zh", ("单卡价格", "大型云厂商", "截至 2026-09-06", "日期不明的报价", "美国零售价", "欧洲央行，2026-10-30")),
    ],
)
def test_a_cards_prices_are_ranges_with_days_and_sources(
    folder: Path, capsys: Capture, lang: str, words: tuple[str, ...]
) -> None:
    done = run(capsys, "prices", "--gpu", "H100", "--lang", lang)
    assert (done.status, done.err) == (0, "")
    assert all("".join(word.split()) in "".join(done.out.split()) for word in words)
    assert "compute-market-report" in done.out


def test_no_price_stands_alone(folder: Path, capsys: Capture) -> None:
    """Every line with a price has a class or provider and a day, or says that it has none."""
    lines = run(capsys, "prices", "--gpu", "4090", "--lang", "en").out.splitlines()
    priced = [line for line in lines if "/h" in line]
    assert len(priced) > 4
    assert all("2026-" in line or "no date" in line or "without a date" in line for line in priced)


def test_without_a_card_the_usual_ten_are_told(folder: Path, capsys: Capture) -> None:
    out = run(capsys, "prices", "--lang", "zh").out
    assert all(name in out for name in ("H100", "H200", "B200", "A100", "L40S", "RTX 5090", "RTX 4090", "MI300X"))


def test_region_kind_and_currency_are_chosen(folder: Path, capsys: Capture) -> None:
    spot = run(capsys, "prices", "--gpu", "H200", "--spot", "--region", "Europe", "--lang", "en").out
    assert "region Europe" in spot and "spot" in spot and "on demand" not in spot
    yuan = run(capsys, "prices", "--gpu", "4090", "--currency", "cny", "--lang", "en").out
    assert "¥2.27" in yuan and "6.6529 CNY per USD (ECB, 2026-10-30)" in yuan and "$" not in yuan


def test_json_is_the_answer_with_every_offer(folder: Path, capsys: Capture) -> None:
    found = json.loads(run(capsys, "prices", "--gpu", "H100 SXM", "--json").out)
    (card,) = found["cards"]
    assert card["gpu"] == "H100 SXM5 80GB" and card["ranked_as_of"] == "2026-09-06"
    keys = {"provider", "provider_class", "usd_per_gpu_hour", "as_of", "age", "source", "spot", "quality"}
    assert found["offers"] and all(keys <= set(offer) for offer in found["offers"])
    assert not any(offer["as_of"] == "" for offer in card["cheapest"])


def test_a_picture_is_written_and_described(folder: Path, capsys: Capture) -> None:
    done = run(capsys, "prices", "--gpu", "L40S", "--picture", str(folder / "l40s.png"), "--lang", "en")
    assert (folder / "l40s.png").read_bytes().startswith(b"\x89PNG")
    assert "L40S, USD per GPU and hour: big clouds $1.86–7.58" in done.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--gpu", "nosuch"), "no GPU is known as 'nosuch'"),
        (("--gpu", "4090", "--currency", "XXX"), "no exchange rate is known for 'XXX'"),
        (("--lang", "fr"), "fr"),
    ],
)
def test_wrong_input_is_one_sentence(folder: Path, capsys: Capture, flags: tuple[str, ...], said: str) -> None:
    done = run(capsys, "prices", *flags, *(() if "--lang" in flags else ("--lang", "en")))
    assert (done.status, done.out) == (2, "")
    assert said in done.err and len(done.err.strip().splitlines()) == 1


def test_the_own_table_leads_and_a_broken_line_is_told_while_it_stays(folder: Path, capsys: Capture) -> None:
    (folder / "prices.csv").write_text(TABLE)
    assert "¥1.98" in run(capsys, "prices", "--gpu", "4090", "--lang", "zh").out
    _forgotten()
    (folder / "prices.csv").write_text(TABLE + "4090,abc,CNY,rent,hour,x,CN,2026-11-30,s\n")
    done = run(capsys, "prices", "--gpu", "4090", "--lang", "zh")
    assert done.status == 0 and "¥1.98" in done.out
    assert 'prices.csv, line 3: "price"' in done.err and len(done.err.strip().splitlines()) == 1


def _forgotten() -> None:
    from bot.prices import current

    current._market.cache_clear()


def test_refresh_asks_each_source_and_says_how_it_fared(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    published = tmp_path_factory.mktemp("published")
    (published / "verda").mkdir()
    (published / "verda" / "vms.csv").write_text(catalogues.VERDA)
    sources = [SkyPilot("verda", published.as_uri()), SkyPilot("vast", published.as_uri())]
    monkeypatch.setattr("bot.prices.refresh.sources_of", lambda *_: sources)
    done = run(capsys, "prices", "--gpu", "B300", "--refresh", "--lang", "en")
    assert done.status == 0 and "$6.99/h" in done.out and "as of" not in done.out
    assert "skypilot/verda: ok" in done.err and "skypilot/vast: " in done.err and "cannot be read" in done.err
    assert done.err.count("cannot be read") == 1, "each fault is said once"
    _forgotten()
    assert "$6.99/h" in run(capsys, "prices", "--gpu", "B300", "--lang", "en").out, "it is kept"


def test_nothing_is_asked_without_refresh(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("a source was asked"))
    assert run(capsys, "prices", "--gpu", "4090").status == 0
    assert not (folder / "prices.db").exists()


def test_what_failed_is_said_once_on_the_terminal(folder: Path) -> None:
    """Python prints a warning that nobody logs by itself: only a process of its own shows that."""
    (folder / "prices.csv").write_text(TABLE.replace("1.98", "abc"), "utf-8")
    command = [sys.executable, "-m", "bot", "prices", "--gpu", "4090", "--lang", "en"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "line 2" in done.stderr and len(done.stderr.splitlines()) == 1


def test_wrong_settings_are_no_fault_of_ours(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VRAM_BOT_PRICE_SOURCES", "skypilto")
    done = run(capsys, "prices", "--refresh", "--lang", "en")
    assert (done.status, done.out) == (2, "")
    assert "VRAM_BOT_PRICE_SOURCES cannot be used: it must be gpuhunt, skypilot" in done.err


COMMANDS = [("prices", "--gpu", "4090"), ("digest",), ("ask", "4090 qlora 8b")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_prices_file_that_is_none_leaves_the_snapshot(
    folder: Path, capsys: Capture, command: tuple[str, ...]
) -> None:
    (folder / "prices.db").write_bytes(b"no database at all" * 100)
    done = run(capsys, *command, "--lang", "en")
    assert done.status == 0 and "RTX 4090" in done.out
    assert current_market().failed != ()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_may_not_be_looked_at_leaves_the_snapshot(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def refused(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refused)
    done = run(capsys, *command, "--lang", "en")
    assert done.status == 0 and "RTX 4090" in done.out
    assert "Permission denied" in current_market().failed[0]


def test_a_refresh_that_cannot_be_kept_says_so(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VRAM_BOT_PRICE_SOURCES", "none")
    (folder / "prices.db").write_bytes(b"no database at all" * 100)
    done = run(capsys, "prices", "--refresh", "--lang", "en")
    assert (done.status, done.out) == (2, "")
    assert "prices.db: file is not a database" in done.err and len(done.err.strip().splitlines()) == 1


def test_a_table_that_is_named_and_not_there_is_told(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRAM_BOT_PRICE_TABLE", str(folder / "mine.csv"))
    done = run(capsys, "prices", "--gpu", "4090", "--lang", "en")
    assert done.status == 0 and "RTX 4090" in done.out
    assert "mine.csv is not there; VRAM_BOT_PRICE_TABLE names it" in done.err


@pytest.mark.parametrize("command", [("ask", "what does a 4090 cost to rent?"), ("prices", "--gpu", "4090")])
def test_a_currency_that_is_set_and_not_known_is_told(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("VRAM_BOT_CURRENCY", "XYZ")
    done = run(capsys, *command, "--lang", "en")
    assert (done.status, done.out) == (2, "")
    assert "no exchange rate is known for 'XYZ'; use one of USD, CNY" in done.err


def test_a_picture_that_cannot_be_written_is_told(folder: Path, capsys: Capture) -> None:
    done = run(capsys, "prices", "--gpu", "4090", "--lang", "en", "--picture", str(folder / "none" / "x.png"))
    assert (done.status, done.out) == (2, "")
    assert "x.png cannot be written: No such file or directory" in done.err
