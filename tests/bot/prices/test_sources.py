"""Sources over real HTTP on this machine, gpuhunt's real library over a folder, and the administrator's table."""

import contextlib
import csv
import io
import multiprocessing
import socket
import threading
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from types import SimpleNamespace
from typing import Any

import pytest

from bot.prices import snapshot
from bot.prices.current import FILE, REREAD_SECONDS, current_offers, market_in
from bot.prices.history import History
from bot.prices.refresh import next_in_seconds, refresh, sources_of
from bot.prices.sources import Fetched, SourceFailed, gpuhunt, web
from bot.prices.sources.gpuhunt import GpuHunt
from bot.prices.sources.skypilot import SkyPilot
from bot.prices.sources.table import OwnTable
from bot.prices.sources.web import fetched
from bot.prices.view import Wanted, prices
from tests.bot.prices import catalogues
from tests.bot.prices.made import made

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def site() -> Iterator[SimpleNamespace]:
    """Files by path, each with its ETag; what is asked is noted."""
    state = SimpleNamespace(files={}, asked=[], status={})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append((self.path, self.headers.get("If-None-Match")))
            content = state.files.get(self.path)
            status = state.status.get(self.path, 200 if content is not None else 404)
            mark = f'"{hash(content)}"'
            if status == 200 and self.headers.get("If-None-Match") == mark:
                status = 304
            self.send_response(status)
            self.send_header("ETag", mark)
            body = content if status == 200 else b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()


def test_a_file_is_fetched_only_when_it_changed(site: SimpleNamespace) -> None:
    site.files["/verda/vms.csv"] = catalogues.VERDA.encode()
    source = SkyPilot("verda", site.url)
    first = source.fetch(NOW, "")
    assert first is not None
    assert source.fetch(NOW, first.etag) is None
    assert site.asked[-1] == ("/verda/vms.csv", first.etag)


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_an_error_of_the_server_is_told(site: SimpleNamespace, status: int) -> None:
    site.status["/verda/vms.csv"] = status
    with pytest.raises(SourceFailed, match=str(status)):
        SkyPilot("verda", site.url).fetch(NOW, "")


@pytest.mark.parametrize("url", ["ftp://x/y", "gopher://x", "/etc/passwd", "http://127.0.0.1:1/none"])
def test_what_cannot_be_fetched_is_told(url: str) -> None:
    with pytest.raises(SourceFailed):
        fetched(url)


@pytest.fixture
def drip() -> Iterator[str]:
    """A server that sends a byte now and then, and never ends."""
    gate = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not gate.wait(0.02):
                    self.wfile.write(b"x")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/x"
    gate.set()
    server.shutdown()
    server.server_close()


def test_a_server_that_drips_is_given_up(drip: str) -> None:
    with pytest.raises(SourceFailed, match="too slowly"):
        fetched(drip, seconds=0.2)


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(SourceFailed, match="timed out"):
            fetched(f"http://127.0.0.1:{silent.getsockname()[1]}/x", seconds=0.1)


def test_a_file_that_never_ends_is_given_up(site: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MOST_BYTES", 10)
    site.files["/verda/vms.csv"] = catalogues.VERDA.encode()
    with pytest.raises(SourceFailed, match="larger than"):
        SkyPilot("verda", site.url).fetch(NOW, "")


def test_one_failing_source_neither_blocks_nor_empties_the_others(site: SimpleNamespace, tmp_path: Path) -> None:
    for cloud, content in (("verda", catalogues.VERDA), ("vast", catalogues.VAST)):
        site.files[f"/{cloud}/vms.csv"] = content.encode()
    history = History(tmp_path / "prices.db")
    sources = [SkyPilot(cloud, site.url) for cloud in ("verda", "vast", "lambda")]
    assert [one.status for one in refresh(sources, history, NOW.timestamp)] == ["ok", "ok", "failed"]
    before = len(history.offers())
    site.status["/verda/vms.csv"] = 500
    site.files["/vast/vms.csv"] = b"<html>"
    assert [one.status for one in refresh(sources, history, NOW.timestamp)] == ["failed"] * 3
    assert len(history.offers()) == before > 0
    site.status.clear()
    site.files["/vast/vms.csv"] = catalogues.VAST.encode()
    assert [one.status for one in refresh(sources, history, NOW.timestamp)] == ["unchanged", "unchanged", "failed"]
    history.close()


class Stuck:
    name = "stuck"

    def __init__(self) -> None:
        self.gate = threading.Event()

    def fetch(self, now: datetime, etag: str) -> Fetched | None:
        self.gate.wait(30)
        return None


class Broken:
    name = "broken"

    def fetch(self, now: datetime, etag: str) -> Fetched | None:
        raise ZeroDivisionError


def test_a_source_that_hangs_or_breaks_counts_as_failed(tmp_path: Path) -> None:
    history, stuck = History(tmp_path / "prices.db"), Stuck()

    class Good:
        name = "good"

        def fetch(self, now: datetime, etag: str) -> Fetched | None:
            return Fetched([made(0.5)], 1)

    outcomes = refresh([stuck, Broken(), Good()], history, NOW.timestamp, seconds=0.2)
    stuck.gate.set()
    assert [(one.source, one.status) for one in outcomes] == [("stuck", "failed"), ("broken", "failed"), ("good", "ok")]
    assert "did not answer" in outcomes[0].sentence
    history.close()


def test_the_next_time_is_jittered() -> None:
    assert next_in_seconds(lambda: 0.0) < next_in_seconds(lambda: 0.5) == 6 * 3600 < next_in_seconds(lambda: 1.0)


def gpuhunt_folder(folder: Path, **providers: list[dict[str, object]]) -> None:
    """A catalogue as the library publishes it: for each provider its version and a zip with one CSV."""
    fields = ["instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot",
              "disk_size", "gpu_vendor", "flags", "cpu_arch", "provider_data"]  # fmt: skip
    for provider, rows in providers.items():
        (folder / provider / "v1").mkdir(parents=True)
        (folder / provider / "version").write_text("v1")
        out = io.StringIO()
        writer = csv.DictWriter(out, fields, restval="")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {"cpu": 8, "memory": 64, "gpu_vendor": "nvidia", "cpu_arch": "x86", "provider_data": "{}", **row}
            )
        with zipfile.ZipFile(folder / provider / "v1" / "catalog.zip", "w") as packed:
            packed.writestr(f"{provider}.csv", out.getvalue())


def row(instance: str, price: float, count: int, name: str, memory: float, **more: object) -> dict[str, object]:
    return {"instance_name": instance, "location": "us-east-1", "price": price, "gpu_count": count, "gpu_name": name,
            "gpu_memory": memory, "spot": False, **more}  # fmt: skip


def test_gpuhunt_itself_reads_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gpuhunt")
    gpuhunt_folder(
        tmp_path,
        aws=[row("p5.48xlarge", 55.04, 8, "H100", 80), row("p5.48xlarge", 60.0, 8, "H100", 80, location="us-west-2"),
             row("m5.large", 0.1, 0, "", 0)],
        lambdalabs=[row("gpu_1x_h100_pcie", 2.49, 1, "H100", 80), row("gpu_1x_h100", 2.49, 1, "H100", 80)],
        runpod=[row("NVIDIA GeForce RTX 4090", 0.34, 1, "RTX4090", 24, spot=True), row("x", 0.0, 1, "RTX4090", 24)],
    )  # fmt: skip
    monkeypatch.setenv("GPUHUNT_CATALOG_URL", tmp_path.as_uri())
    found = GpuHunt().fetch(NOW, "")
    assert found is not None
    assert {(one.provider, one.gpu, one.usd_per_gpu_hour, one.spot) for one in found.offers} == {
        ("aws", "H100 SXM5 80GB", 6.88, False), ("lambda", "H100 PCIe 80GB", 2.49, False),
        ("runpod", "RTX 4090", 0.34, True),
    }  # fmt: skip
    assert found.covers == {"aws", "lambda", "runpod"}
    assert sum(found.left_out.values()) == 2
    assert GpuHunt().fetch(NOW, found.etag) is None


def test_gpuhunt_itself_asks_a_server(site: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published form over HTTP: a version and a zip for each provider; those that fail leave the others."""
    pytest.importorskip("gpuhunt")
    gpuhunt_folder(tmp_path, aws=[row("p5.48xlarge", 55.04, 8, "H100", 80)], nebius=[row("x", 2.0, 1, "L40S", 48)])
    for path in tmp_path.rglob("*"):
        if path.is_file():
            site.files[f"/{path.relative_to(tmp_path)}"] = path.read_bytes()
    site.status["/nebius/v1/catalog.zip"] = 503
    monkeypatch.setenv("GPUHUNT_CATALOG_URL", site.url)
    history = History(tmp_path / "prices.db")
    assert [one.status for one in refresh([GpuHunt()], history, NOW.timestamp)] == ["ok"]
    assert [(one.provider, one.gpu, one.usd_per_gpu_hour) for one in history.offers()] == [
        ("aws", "H100 SXM5 80GB", 6.88)
    ]
    assert ("/aws/v1/catalog.zip", None) in site.asked
    assert [one.status for one in refresh([GpuHunt()], history, NOW.timestamp)] == ["unchanged"]
    site.status.clear()
    assert [one.status for one in refresh([GpuHunt()], history, NOW.timestamp)] == ["ok"]
    assert {one.provider for one in history.offers()} == {"aws", "nebius"}
    history.close()


@pytest.mark.parametrize("said", ["", "HTTP/1.1 200 OK\r\n" + "x" * 1_000])
def test_gpuhunt_waits_for_a_silent_or_dripping_server_only_so_long(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """The library itself would wait for ever, and its threads would keep the process from ending."""
    pytest.importorskip("gpuhunt")
    monkeypatch.setattr(gpuhunt, "SECONDS_IN_ALL", 3.0)
    served = threading.Event()

    class Dripping(BaseRequestHandler):
        def handle(self) -> None:
            served.set()
            with contextlib.suppress(OSError):
                for letter in said:
                    self.request.sendall(letter.encode())
                    over.wait(0.05)
                self.request.recv(1 << 20)
                over.wait(60)

    over = threading.Event()
    with ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("GPUHUNT_CATALOG_URL", f"http://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(SourceFailed, match="cannot be read"):
            GpuHunt().fetch(NOW, "")
        over.set()
        server.shutdown()
    assert served.is_set() and not multiprocessing.active_children()
    assert socket.getdefaulttimeout() is None


def test_gpuhunt_without_a_network_fails_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gpuhunt")
    monkeypatch.setenv("GPUHUNT_CATALOG_URL", (tmp_path / "none").as_uri())
    with pytest.raises(SourceFailed, match="cannot be read"):
        GpuHunt().fetch(NOW, "")


TABLE = """gpu,price,currency,kind,per,provider,region,as_of,source
4090,1.98,CNY,rent,hour,autodl,CN,2026-11-30,their site
H100 SXM,54000,CNY,lease,month,acme,CN,2026-11-29,contract 7
4090,18500,CNY,buy,,shop,,2026-11-28,a shop
"""


def test_the_table_gives_rents_leases_and_purchases(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(TABLE)
    market = market_in(tmp_path, NOW)
    own = [one for one in market.offers if not one.embedded]
    assert [(one.gpu, one.provider_class, round(one.usd_per_gpu_hour, 4)) for one in own] == [
        ("RTX 4090", "own", 0.2976), ("H100 SXM5 80GB", "lease-cn", 11.2733),
    ]  # fmt: skip
    assert [(one.gpu, round(one.usd)) for one in market.purchases] == [("RTX 4090", 2781)]


def test_yaml_does_as_well(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(
        "- {gpu: 4090, price: 15.84, currency: CNY, price_of: host, gpu_count: 8, as_of: 2026-11-30,"
        " valid_until: 2027-01-01}\n"
    )
    own = [one for one in market_in(tmp_path, NOW).offers if not one.embedded]
    assert [(round(one.usd_per_gpu_hour, 4), one.valid_until) for one in own] == [(0.2976, "2027-01-01")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("4090,abc,CNY,rent,hour,x,CN,2026-11-30,s", 'line 5: "price"'),
        ("4090,-1,CNY,rent,hour,x,CN,2026-11-30,s", 'line 5: "price"'),
        ("4090,1,XXX,rent,hour,x,CN,2026-11-30,s", "line 5: no exchange rate for XXX; known are USD, CNY"),
        ("nosuch,1,CNY,rent,hour,x,CN,2026-11-30,s", "line 5: no GPU is known"),
        ("4090,1,CNY,rent,hour,x,CN,2027-11-30,s", "line 5: as_of 2027-11-30 is in the future"),
        ("4090,1,CNY,rent,hour,x,CN,soon,s", 'line 5: "as_of"'),
        ("4090,1,CNY,borrow,hour,x,CN,2026-11-30,s", 'line 5: "kind"'),
        ("4090,1,CNY,rent,hour,x,CN,2026-11-30,s,more", "line 5: more values than columns"),
    ],
)
def test_a_broken_line_gives_one_sentence_and_what_was_there_stays(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(TABLE)
    before = market_in(tmp_path, NOW)
    path.write_text(TABLE + line + "\n")
    after = market_in(tmp_path, NOW)
    assert after.offers == before.offers
    assert after.purchases == before.purchases
    assert len(after.failed) == 1
    assert said in after.failed[0]
    assert "\n" not in after.failed[0]
    path.write_text(TABLE.replace("1.98", "2.10"))
    mended = market_in(tmp_path, NOW)
    assert mended.failed == ()
    assert [one.native_price for one in mended.offers if one.provider == "autodl" and not one.embedded] == [2.1]


@pytest.mark.parametrize(
    ("name", "content"),
    [("prices.yaml", b"- {gpu: [}"), ("prices.yaml", b"gpu: 4090"), ("prices.csv", b"\xff\xfe\x00")],
)
def test_a_table_that_cannot_be_read_at_all(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    market = market_in(tmp_path, NOW)
    assert len(market.failed) == 1
    assert market.offers == market_in(tmp_path / "elsewhere", NOW).offers


def test_prices_held_back_are_counted_with_the_card(tmp_path: Path) -> None:
    history = History(tmp_path / FILE)
    among = [made(0.4 + number / 10, provider=f"p{number}") for number in range(3)]
    history.record("s", Fetched([*among, made(5.0, provider="wild")], 4), NOW.timestamp())
    history.close()
    market = market_in(tmp_path, NOW)
    (card,) = prices(Wanted(("RTX 4090",)), market.offers, NOW).cards
    assert card.held_back == 1 and all(one.high.price < 5 for one in card.ranges)
    assert "wild" not in {one.provider for one in card.cheapest}


def test_without_the_snapshot_one_sentence_says_so_and_the_rest_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path / FILE)
    history.record("s", Fetched([made(0.5)], 1), NOW.timestamp())
    history.close()
    monkeypatch.setattr(snapshot, "DATA", tmp_path / "nowhere")
    market = market_in(tmp_path, NOW)
    assert [one.usd_per_gpu_hour for one in market.offers if not one.embedded] == [0.5]
    (fault,) = market.failed
    assert "snapshot cannot be read" in fault and "install vram-bot again" in fault and "\n" not in fault
    assert snapshot.snapshot_offers() == ()


def test_the_table_is_read_again_by_a_running_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a restart: half a minute after the file changed, what is known has changed."""
    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path))
    moment = 1_000.0
    monkeypatch.setattr("bot.prices.current.time.monotonic", lambda: moment)
    (tmp_path / "prices.csv").write_text(TABLE)
    assert [one.native_price for one in current_offers() if one.provider == "autodl" and not one.embedded] == [1.98]
    (tmp_path / "prices.csv").write_text(TABLE.replace("1.98", "2.10"))
    moment += REREAD_SECONDS
    assert [one.native_price for one in current_offers() if one.provider == "autodl" and not one.embedded] == [2.10]


def test_a_table_taken_away_is_taken_back(tmp_path: Path) -> None:
    table, history = OwnTable(tmp_path / "prices.csv"), History(tmp_path / "prices.db")
    table.path.write_text(TABLE)
    refresh([table], history, NOW.timestamp)
    assert len(history.offers()) == 2
    table.path.unlink()
    refresh([table], history, NOW.timestamp)
    assert history.offers() == []
    history.close()


def test_names_of_sources(tmp_path: Path) -> None:
    assert sources_of([], tmp_path) == []
    assert [one.name for one in sources_of(["gpuhunt"], tmp_path)] == ["gpuhunt"]
    (tmp_path / "prices.csv").touch()
    assert [one.name for one in sources_of(["skypilot"], tmp_path)][:2] == ["table", "skypilot/aws"]
