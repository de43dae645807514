import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.catalogue.cards import cards, class_totals
from estimator.catalogue.gpus import all_gpus, find_gpu
from estimator.errors import EstimatorError

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("3090", "RTX 3090", 1),
        ("RTX3090", "RTX 3090", 1),
        ("rtx-3090", "RTX 3090", 1),
        ("NVIDIA GeForce RTX 3090", "RTX 3090", 1),
        ("4090D", "RTX 4090 D", 1),
        ("4090 24GB", "RTX 4090", 1),
        ("4090 48G", "RTX 4090 48GB (modded)", 1),
        ("5060TI16G", "RTX 5060 Ti 16GB", 1),
        ("4060ti 16g", "RTX 4060 Ti 16GB", 1),
        ("4070 ti super", "RTX 4070 Ti SUPER", 1),
        ("A100 PCIe 80GB", "A100 PCIe 80GB", 1),
        ("A100-SXM4-80GB", "A100 SXM4 80GB", 1),
        ("H100", "H100 SXM5 80GB", 1),
        ("H100 PCIe", "H100 PCIe 80GB", 1),
        ("V100 32g", "V100 SXM2 32GB", 1),
        ("A6000 (48GB)", "RTX A6000", 1),
        ("Tesla T4 16GB", "T4", 1),
        ("7900xtx", "RX 7900 XTX", 1),
        ("RX 7900 XT", "RX 7900 XT", 1),
        ("MI300X", "MI300X", 1),
        ("昇腾910B", "Ascend 910B (64GB)", 1),
        ("4060 laptop", "RTX 4060 Laptop", 1),
        ("笔记本4090", "RTX 4090 Laptop", 1),
        ("rtx 4070 mobile", "RTX 4070 Laptop", 1),
        ("4090m", "RTX 4090 Laptop", 1),
        ("H20 98G", "H20 96GB", 1),
        ("2x4090", "RTX 4090", 2),
        ("4090*2", "RTX 4090", 2),
        ("3090x2", "RTX 3090", 2),
        ("RTX3090 x 4", "RTX 3090", 4),
        ("8*A100 PCIe 80G", "A100 PCIe 80GB", 8),
        ("8 A100 SXM 80GB", "A100 SXM4 80GB", 8),
        ("两张3090", "RTX 3090", 2),
        ("1024 x H200", "H200 SXM 141GB", 1024),
        ("A10G", "A10G", 1),
        ("A10G 24GB", "A10G", 1),
        ("M1 16GB", "Apple M1 16GB", 1),
        ("2x MIG 1g.10gb", "MIG 1g.10gb", 2),
        ("Jetson Orin 64GB", "Jetson AGX Orin 64GB", 1),
        ("3070ti 笔记本", "RTX 3070 Ti", 1),
    ],
)
def test_names_are_found(text: str, name: str, count: int) -> None:
    match = find_gpu(text)
    assert (match.name, match.count) == (name, count)


@pytest.mark.parametrize("text", ["8GB", "8G", "8 gb", "8g卡", "8G显存", "8GB card", "8GB VRAM"])
def test_a_size_is_a_class_with_its_smallest_real_total(text: str) -> None:
    match = find_gpu(text)
    eights = [one for one in cards() if one.vendor == "NVIDIA" and one.nominal == (8,) and one.kind != "unified"]
    smallest = min(one.low for one in eights if one.low and float(one.compute_capability) >= 7)
    assert match.usable_low == round(smallest * GIB)
    assert (match.kind, match.nominal_gb, match.bf16) == ("class", 8.0, True)


def test_real_totals_are_below_the_sticker() -> None:
    assert all(card.low < max(card.nominal) for card in cards() if card.low and card.vendor == "NVIDIA")
    assert find_gpu("A10").usable_low < 22 * GIB
    assert find_gpu("T4").usable_low == round(14.56 * GIB)


def test_a_class_has_every_size_between_its_cards() -> None:
    assert class_totals(24) == (21.99, 23.76)
    assert class_totals(23) is None
    assert find_gpu("23GB").usable_low < 23 * GIB


def test_a_name_with_several_sizes_says_so() -> None:
    match = find_gpu("A100")
    assert match.nominal_gb == 40
    assert "80" in match.note
    assert len(match.candidates) == 4
    assert find_gpu("A100 80G").candidates == ()


def test_a_size_the_card_is_not_sold_with_is_taken_as_stated() -> None:
    match = find_gpu("3090 48G")
    assert match.usable_low > 43 * GIB
    assert "as stated" in match.note


def test_an_unlisted_laptop_version_is_told() -> None:
    assert "laptop version of RTX 3070 Ti is not listed" in find_gpu("3070 Ti laptop").note
    assert "Laptop" in find_gpu("4090 laptop").name


def test_another_rounding_of_the_size_is_understood() -> None:
    match = find_gpu("H100 96GB")
    assert (match.name, match.fp8) == ("H100 NVL 94GB", True)
    assert "96 GB" in match.note


@pytest.mark.parametrize(
    ("text", "bf16"), [("V100", False), ("T4", False), ("2080ti", False), ("3090", True), ("L4", True)]
)
def test_bf16_is_flagged(text: str, bf16: bool) -> None:
    match = find_gpu(text)
    assert match.bf16 is bf16


def test_other_flags() -> None:
    assert (find_gpu("H100").fp8, find_gpu("H100").flash_attn3) == (True, True)
    assert (find_gpu("3090").fp8, find_gpu("3090").flash_attn2, find_gpu("3090").flash_attn3) == (False, True, False)


@pytest.mark.parametrize(
    ("text", "gib"),
    [
        ("A100 1g.5gb", 4.75),
        ("A100 80GB 1g.10gb", 9.5),
        ("MIG 1g.10gb", 9.5),
        ("1g.5gb", 4.75),
        ("H100 MIG 3g.40gb", 39.38),
        ("A30 1g.6gb", 5.81),
    ],
)
def test_slices_have_their_own_memory(text: str, gib: float) -> None:
    match = find_gpu(text)
    assert match.kind == "mig"
    assert match.usable_low == round(gib * GIB)


def test_an_unknown_slice_lists_the_known_ones() -> None:
    with pytest.raises(EstimatorError, match=r"3g\.20gb"):
        find_gpu("A100 6g.99gb")


def test_apple_shares_its_memory() -> None:
    match = find_gpu("M3 Max 64GB")
    assert match.usable_low == 48 * GIB
    assert "75 %" in match.note
    assert "75 %" in match.note_zh
    assert find_gpu("M1 Pro 16GB").name == "Apple M1 Pro 16GB"
    with pytest.raises(EstimatorError, match="say how much memory"):
        find_gpu("M3 Max")


@pytest.mark.parametrize(("text", "word"), [("MI300X", "ROCm"), ("910B", "torch_npu"), ("MI250X", "two devices")])
def test_what_changes_off_nvidia_is_said(text: str, word: str) -> None:
    assert word in find_gpu(text).note
    assert find_gpu(text).note_zh


@pytest.mark.parametrize("text", ["TPU v4", "Gaudi 2", "trn1"])
def test_what_cannot_be_computed_is_refused(text: str) -> None:
    with pytest.raises(EstimatorError, match="not computed here"):
        find_gpu(text)


@pytest.mark.parametrize("text", ["banana", "GTX 1650", "", "0x4090", "0GB", "9999GB"])
def test_what_is_no_card_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(EstimatorError) as caught:
        find_gpu(text)
    assert caught.value.field == "gpu"
    assert caught.value.message_zh != caught.value.message


@pytest.mark.parametrize("card", [card for card in cards() if card.low], ids=lambda card: str(card.name))
def test_every_card_is_found_by_its_own_name(card: object) -> None:
    name = getattr(card, "name", "")
    match = find_gpu(name)
    assert match.name == name or match.nominal_gb == find_gpu(name).nominal_gb


def test_the_table_is_whole() -> None:
    assert len(all_gpus()) == 193


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_answered_or_refused(text: str) -> None:
    try:
        match = find_gpu(text)
    except EstimatorError as error:
        assert str(error)
    else:
        assert 0 < match.usable_low <= match.usable_high


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["4090", "a100", "x", "*", " ", "80g", "8gb", "laptop", "1g.10gb", "张", "2", "m3 max", "("]),
        max_size=8,
    )
)
def test_any_mixture_of_parts_is_answered_or_refused(parts: list[str]) -> None:
    try:
        assert find_gpu("".join(parts)).count >= 1
    except EstimatorError as error:
        assert error.field == "gpu"


@pytest.mark.parametrize(("text", "memory"), [("GTX 1050 2GB", 2), ("gtx 1650 4GB", 4), ("Quadro P620 2GB", 2)])
def test_an_unlisted_card_is_its_stated_memory(text: str, memory: int) -> None:
    found = find_gpu(text)
    assert found.nominal_gb == memory
    assert not found.bf16
    assert "not in the table" in found.note
    assert text.lower().split()[1] in found.note.lower()


@pytest.mark.parametrize("text", ["Mac Studio 512GB", "macbook pro m2 16GB", "MacBook Air M3 24GB"])
def test_a_mac_is_unified_memory(text: str) -> None:
    assert find_gpu(text).kind == "unified"
