"""The ten traps of SkyPilot's files, over the real loader and file:// or http addresses."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.prices.offers import Offer
from bot.prices.sources import Fetched, SourceFailed
from bot.prices.sources.skypilot import SkyPilot
from tests.bot.prices import catalogues

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def loaded(folder: Path, cloud: str, content: str) -> Fetched:
    (folder / cloud).mkdir()
    (folder / cloud / "vms.csv").write_text(content, "utf-8")
    found = SkyPilot(cloud, folder.as_uri()).fetch(NOW, "")
    assert found is not None
    return found


def priced(offers: list[Offer], gpu: str, spot: bool = False) -> list[float]:
    return sorted(one.usd_per_gpu_hour for one in offers if one.gpu == gpu and one.spot == spot)


def test_google_hosts_get_the_price_of_their_cards(tmp_path: Path) -> None:
    """Trap 1: A2 and A3 rows carry the host alone; cards of a zone without a price are not told at all."""
    found = loaded(tmp_path, "gcp", catalogues.GCP)
    one = [offer for offer in found.offers if offer.instance == "a2-highgpu-1g"]
    assert {offer.spot: offer.usd_per_gpu_hour for offer in one} == {
        False: 3.673,
        True: pytest.approx(1.5168, abs=1e-4),
    }
    eight = next(offer for offer in found.offers if offer.instance == "a2-highgpu-8g" and not offer.spot)
    assert (eight.gpu_count, eight.usd_per_gpu_hour) == (8, pytest.approx(2.934 + 5.91582 / 8, abs=1e-4))
    assert not any(offer.gpu.startswith(("H100", "T4")) for offer in found.offers)


def test_google_sentinel_is_no_price_and_slices_are_told_per_chip(tmp_path: Path) -> None:
    """Trap 2: 700.0; v5p counts two cores a chip."""
    found = loaded(tmp_path, "gcp", catalogues.GCP)
    assert priced(found.offers, "TPU v6e") == [2.7]
    assert priced(found.offers, "TPU v6e", spot=True) == []
    assert priced(found.offers, "TPU v5p") == [4.2]
    assert max(offer.usd_per_gpu_hour for offer in found.offers) < 10


def test_vast_has_no_spot_price_of_zero(tmp_path: Path) -> None:
    """Trap 3."""
    assert not any(offer.spot for offer in loaded(tmp_path, "vast", catalogues.VAST).offers)


def test_vast_cards_are_told_by_their_whole_name_and_memory(tmp_path: Path) -> None:
    """Trap 4: names merged by series, a card rebuilt with 48 GB, memory of all cards together."""
    offers = loaded(tmp_path, "vast", catalogues.VAST).offers
    assert {offer.gpu: offer.usd_per_gpu_hour for offer in offers} == {
        "RTX 4090": 0.4, "RTX 4090 48GB (modded)": 0.4, "RTX 4070 Ti SUPER": 0.18, "RTX 4060 Ti 16GB": 0.13,
        "H100 NVL 94GB": 2.265, "RTX PRO 6000 Blackwell Server": 1.13,
    }  # fmt: skip


def test_memory_in_whatever_unit_is_understood(tmp_path: Path) -> None:
    """Trap 5: gigabytes in a field for MiB, totals per card, totals multiplied twice."""
    assert priced(loaded(tmp_path, "shadeform", catalogues.SHADEFORM).offers, "A100 SXM4 80GB") == [2.3]
    assert priced(loaded(tmp_path, "lambda", catalogues.LAMBDA).offers, "RTX A6000") == [1.09] * 3
    prime = loaded(tmp_path, "primeintellect", catalogues.PRIME).offers
    assert priced(prime, "A100 SXM4 80GB") == [1.79]
    assert priced(prime, "A100 PCIe 80GB", spot=True) == [0.53]


def test_a_spot_price_equal_to_the_other_is_unknown(tmp_path: Path) -> None:
    """Trap 6."""
    offers = loaded(tmp_path, "runpod", catalogues.RUNPOD).offers
    assert priced(offers, "A100 PCIe 80GB", spot=True) == []


def test_a_missing_price_on_demand_leaves_the_spot_offer(tmp_path: Path) -> None:
    """Trap 7."""
    offers = loaded(tmp_path, "verda", catalogues.VERDA).offers
    assert priced(offers, "B300 SXM") == [6.99]
    assert priced(offers, "B300 SXM", spot=True) == [pytest.approx(2.4465), 2.447]


@pytest.mark.parametrize(("cloud", "content"), [("runpod", catalogues.RUNPOD), ("lambda", catalogues.LAMBDA)])
def test_a_price_repeated_over_zones_counts_once_for_a_part_of_the_world(
    tmp_path: Path, cloud: str, content: str
) -> None:
    """Trap 8."""
    offers = loaded(tmp_path, cloud, content).offers
    assert len({offer.region_class for offer in offers}) == len(offers) == 3
    assert sum(offer.n_offers for offer in offers) == len(content.splitlines()) - 1 - content.count("cpu_")


def test_ambiguous_names_are_left_to_a_person(tmp_path: Path) -> None:
    """Trap 9: H100 without its form, RTX6000 without its memory, a card with another card's memory."""
    found = loaded(tmp_path, "shadeform", catalogues.SHADEFORM)
    assert {offer.gpu for offer in found.offers} == {"A100 SXM4 80GB", "A100 PCIe 80GB", "A10G"}
    assert len(found.left_out) == 4
    assert any("SXM or PCIe" in reason for reason in found.left_out)


def test_conflicting_sources_are_both_shown() -> None:
    """Trap 10: OCI's A100 costs 32.0 for eight in one file and 40.0 in another; the range holds both."""
    from bot.prices.ranking import ranges
    from bot.prices.snapshot import snapshot_offers

    oci = [one for one in snapshot_offers() if one.provider == "oci" and one.gpu == "A100 SXM4 80GB"]
    found = ranges(oci)[0]
    assert (found.low.usd_per_gpu_hour, found.high.usd_per_gpu_hour) == (4.0, 5.0)
    assert len(found.sources) == 2


@pytest.mark.parametrize("content", ["", "<html>gone</html>", "a,b\n1,2\n", "\udcff"])
def test_what_is_no_catalogue_fails_with_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "aws").mkdir()
    (tmp_path / "aws" / "vms.csv").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(SourceFailed, match="aws"):
        SkyPilot("aws", tmp_path.as_uri()).fetch(NOW, "")


def test_a_missing_file_fails_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="cannot be read"):
        SkyPilot("aws", tmp_path.as_uri()).fetch(NOW, "")
