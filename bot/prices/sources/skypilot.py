"""SkyPilot's published catalogue: one CSV of machine types for each cloud, with known traps.

What the files look like was read from the public repository; each trap below has its test.
"""

import ast
import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from bot.prices.naming import NotTold, card_of, google_family
from bot.prices.offers import Offer, ProviderClass
from bot.prices.regions import region_class
from bot.prices.sources import Fetched, SourceFailed
from bot.prices.sources.web import fetched

URL = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
CLOUDS: dict[str, ProviderClass] = {
    "aws": "hyperscaler", "gcp": "hyperscaler", "oci": "hyperscaler", "azure": "hyperscaler",
    "lambda": "neocloud", "runpod": "neocloud", "verda": "neocloud", "nebius": "neocloud", "cudo": "neocloud",
    "hyperstack": "neocloud", "jarvislabs": "neocloud", "hyperbolic": "neocloud", "mithril": "neocloud",
    "seeweb": "neocloud", "vast": "marketplace", "lium": "marketplace",
    "shadeform": "broker", "primeintellect": "broker",
}  # fmt: skip
MEMORY_IS_OF_ALL = frozenset({"vast", "primeintellect"})
"""Clouds that write the memory of all cards where others write that of one."""
SMALLEST_MIB = 1_000
"""Below this, "MiB" are gigabytes."""
SENTINEL_USD = 700.0
"""What Google's file has for zones without a price."""
HIGHEST_USD_PER_GPU_HOUR = 100.0
NEEDED = frozenset({"InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region"})
GOOGLE_HOSTS = {
    "a2-highgpu": "A100", "a2-megagpu": "A100", "a2-ultragpu": "A100-80GB", "a3-highgpu": "H100",
    "a3-megagpu": "H100-MEGA", "a3-ultragpu": "H200", "a4-highgpu": "B200", "g2-standard": "L4",
}  # fmt: skip
"""Google sells a host and its accelerators apart: the family of a host, and the accelerator's name in the file."""

Row = dict[str, str]


class Rejected(ValueError):
    """A row that says no price that can be told; the text says why."""


@dataclass(frozen=True, slots=True)
class SkyPilot:
    """The catalogue of one cloud."""

    cloud: str
    base: str = URL

    @property
    def name(self) -> str:
        """The source's name in the history."""
        return f"skypilot/{self.cloud}"

    @property
    def url(self) -> str:
        """Where the file is."""
        return f"{self.base.rstrip('/')}/{self.cloud}/vms.csv"

    def fetch(self, now: datetime, etag: str) -> Fetched | None:
        """The cloud's offers, one for each machine type, card, kind and part of the world."""
        file = fetched(self.url, etag)
        if file is None:
            return None
        rows = _rows(file.content, self.url)
        reasons: Counter[str] = Counter()
        offers = [offer for row in _joined(self.cloud, rows) for offer in self._of(row, now, reasons)]
        return Fetched(cheapest_of_region(offers), len(rows), dict(reasons), file.etag,
                       hashlib.sha256(file.content).hexdigest())  # fmt: skip

    def _of(self, row: Row, now: datetime, reasons: Counter[str]) -> Iterator[Offer]:
        try:
            yield from _offers(self.cloud, row, self._template(row, now))
        except (Rejected, NotTold) as reason:
            reasons[str(reason)] += 1

    def _template(self, row: Row, now: datetime) -> Offer:
        """An offer with everything but card and price."""
        return Offer(
            gpu="", provider=self.cloud, provider_class=CLOUDS.get(self.cloud, "neocloud"),
            instance=row["InstanceType"] or row["AcceleratorName"], gpu_count=1, region=row["Region"],
            region_class=region_class(row["Region"]), spot=False, usd_per_gpu_hour=0, native_price=0, currency="USD",
            as_of=now.date().isoformat(), source="SkyPilot catalogue v8", url=self.url,
        )  # fmt: skip


def _rows(content: bytes, url: str) -> list[Row]:
    """The rows of the file. Raises SourceFailed when it is not the catalogue."""
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceFailed(f"{url} is no CSV: {error}") from None
    if not rows or not rows[0].keys() >= NEEDED:
        raise SourceFailed(f"{url} has no rows of the known form; its columns may have changed")
    return [{key: value or "" for key, value in row.items() if key} for row in rows]


def _joined(cloud: str, rows: list[Row]) -> Iterator[Row]:
    """Rows with an accelerator; Google's hosts get the price of the accelerators in their zone added."""
    if cloud != "gcp":
        yield from (row for row in rows if row["AcceleratorName"])
        return
    apart = {
        (row["AcceleratorName"], row["AvailabilityZone"]): row
        for row in rows
        if row["AcceleratorName"] and not row["InstanceType"] and row["AcceleratorCount"] in ("1", "1.0")
    }
    for row in rows:
        if row["AcceleratorName"].startswith("tpu-"):
            yield row
        elif name := GOOGLE_HOSTS.get(google_family(row["InstanceType"])):
            yield from _with_cards(row, name, apart)


def _with_cards(host: Row, name: str, apart: dict[tuple[str, str], Row]) -> Iterator[Row]:
    """A host of Google's with its cards; nothing where the zone has no price for the cards."""
    card = apart.get((name, host["AvailabilityZone"]))
    count = _google_count(host)
    if card is None or count is None or host["AcceleratorName"]:
        return
    prices = {key: _sum(host.get(key, ""), card.get(key, ""), count) for key in ("Price", "SpotPrice")}
    yield {**host, **prices, "AcceleratorName": name, "AcceleratorCount": str(count)}


def _google_count(host: Row) -> int | None:
    """Cards of a host: in the name of A2 to A4, by the processors of G2."""
    if told := re.search(r"-(\d+)g(-|$)", host["InstanceType"]):
        return int(told[1])
    return {4: 1, 8: 1, 12: 1, 16: 1, 32: 1, 24: 2, 48: 4, 96: 8}.get(int(float(host.get("vCPUs") or 0)))


def _sum(host: str, card: str, count: int) -> str:
    one, other = _price(host), _price(card)
    return "" if one is None or other is None else str(one + count * other)


def _offers(cloud: str, row: Row, empty: Offer) -> Iterator[Offer]:
    """The offers of a row: on demand, spot, or both. Raises Rejected and NotTold."""
    count = _count(row)
    gpu = _card(cloud, row, count)
    price, spot = _price(row["Price"]), _price(row.get("SpotPrice", ""))
    if price is None and spot is None:
        raise Rejected("no price")
    if spot is not None and price is not None and abs(spot - price) < 1e-9:
        spot = None  # the file repeats the price on demand where it knows none for spot
    for value, kind in ((price, False), (spot, True)):
        if value is not None:
            each = value / count
            if each > HIGHEST_USD_PER_GPU_HOUR:
                raise Rejected("over 100 USD per card and hour")
            yield empty._replace(gpu=gpu, gpu_count=count, spot=kind, usd_per_gpu_hour=round(each, 4),
                          native_price=round(each, 4))  # fmt: skip


def _price(text: str) -> float | None:
    """A price; none where the file has nothing, zero, or the mark of a zone without a price."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") and value != SENTINEL_USD else None


def _count(row: Row) -> int:
    """Cards of the machine; chips of a TPU slice, whose name counts cores up to v5p."""
    if tpu := re.fullmatch(r"tpu-v(\d+\w*?)-(\d+)", row["AcceleratorName"]):
        cores_per_chip = 2 if tpu[1] in ("2", "3", "4", "5p") else 1
        return max(1, int(tpu[2]) // cores_per_chip)
    try:
        count = float(row["AcceleratorCount"])
    except ValueError:
        raise Rejected("no number of cards") from None
    if count < 1 or count != int(count):
        raise Rejected("part of a card")
    return int(count)


def _card(cloud: str, row: Row, count: int) -> str:
    name = row["AcceleratorName"]
    if cloud == "gcp":
        return card_of(re.sub(r"-\d+$", "", name), None, cloud, row["InstanceType"])
    told = _told(row)
    memory = _memory_gb(told, count, cloud)
    if cloud == "vast":  # the column merges cards of one series; the machine type has the whole name
        name = row["InstanceType"].split("-")[1].replace("_", " ") if row["InstanceType"].count("-") else name
    hint = f"{row['InstanceType']} {row.get('UpstreamCloudId', '')} {_spoken(told)}"
    try:
        return card_of(name, memory, cloud, row["InstanceType"])
    except NotTold:
        return card_of(name, memory, "", hint)


def _told(row: Row) -> dict[str, object]:
    """The column GpuInfo: JSON, or Python's way of writing it; empty where it is neither."""
    text = row.get("GpuInfo", "")
    for read in (json.loads, ast.literal_eval):
        try:
            told = read(text.replace('""', '"') if read is json.loads else text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return told if isinstance(told, dict) else {}
    return {}


def _first(told: dict[str, object]) -> dict[str, object]:
    cards = told.get("Gpus")
    first = cards[0] if isinstance(cards, list) and cards else {}
    return first if isinstance(first, dict) else {}


def _spoken(told: dict[str, object]) -> str:
    return str(_first(told).get("Name", ""))


def _memory_gb(told: dict[str, object], count: int, cloud: str) -> float | None:
    """Memory of one card in GB, whatever the file takes for it."""
    info = _first(told).get("MemoryInfo")
    size = info.get("SizeInMiB") if isinstance(info, dict) else None
    if not isinstance(size, int | float) or size <= 0:
        return None
    if size < SMALLEST_MIB:
        return float(size)
    return size / 1024 / (count if cloud in MEMORY_IS_OF_ALL else 1)


def cheapest_of_region(offers: list[Offer]) -> list[Offer]:
    """One offer for each machine type, card, kind and part of the world: a price repeated over zones counts once."""
    found: dict[tuple[str, str, int, bool, str], list[Offer]] = {}
    for one in offers:
        found.setdefault((one.instance, one.gpu, one.gpu_count, one.spot, one.region_class), []).append(one)
    return [_cheapest(group) for group in found.values()]


def _cheapest(group: list[Offer]) -> Offer:
    best = min(group, key=lambda one: one.usd_per_gpu_hour)
    statistic = "cheapest region in class" if len({one.region for one in group}) > 1 else "listed"
    return best._replace(region=best.region_class, statistic=statistic, n_offers=len(group))
