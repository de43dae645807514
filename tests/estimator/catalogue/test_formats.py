import csv
import re

import pytest

from estimator.architecture import Weight
from estimator.catalogue import gguf
from estimator.catalogue.formats import known_formats, model_bytes, weight_format
from estimator.catalogue.rows import architecture
from estimator.datafiles import read_text
from estimator.errors import EstimatorError

SQUARE = (4096, 4096)
MODELS = {
    "8B": "meta-llama/Llama-3.1-8B",
    "Qwen2.5-0.5B": "Qwen/Qwen2.5-0.5B",
    "Llama-3.2-1B": "meta-llama/Llama-3.2-1B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
}
QUANTS = list(csv.DictReader(read_text("quants.csv").splitlines()))


def file_rows(basis: str) -> list[tuple[str, str, float]]:
    """File type, model and bits of the rows of quants.csv with that basis."""
    found = []
    for row in QUANTS:
        named = re.fullmatch(r"(\w+) \(file, (.+)\)", row["name"])
        if named and named[2] in MODELS and row["basis"].startswith(basis):
            found.append((named[1], named[2], float(row["bits_per_weight"])))
    return found


@pytest.mark.parametrize(("file_type", "model", "bits"), file_rows("measured"))
def test_measured_files_are_met_to_four_decimals(file_type: str, model: str, bits: float) -> None:
    assert round(gguf.bits_per_weight(architecture(MODELS[model]), file_type), 4) == bits


@pytest.mark.parametrize(("file_type", "model", "bits"), file_rows("from the stated file size"))
def test_files_of_a_stated_size_are_met_within_their_metadata(file_type: str, model: str, bits: float) -> None:
    computed = gguf.bits_per_weight(architecture(MODELS[model]), file_type)
    assert -0.006 < computed - bits < 0.001 or bits - computed < 0.011


@pytest.mark.parametrize(("file_type", "model", "bits"), file_rows("computed"))
def test_small_and_large_models_have_their_own_mix(file_type: str, model: str, bits: float) -> None:
    # The rows leave out that biases are F32 and that a 70 B model's attn_v is raised.
    assert gguf.bits_per_weight(architecture(MODELS[model]), file_type) == pytest.approx(bits, rel=0.0011)


def test_block_sizes_agree_with_the_published_bits() -> None:
    listed = {row["name"]: float(row["bits_per_weight"]) for row in QUANTS if row["scheme"] == "gguf tensor type"}
    for name, block in gguf.blocks().items():
        if name in listed:
            assert block.bytes * 8 / block.weights == pytest.approx(listed[name], abs=1e-4)


def test_rows_that_do_not_divide_into_blocks_fall_back() -> None:
    assert gguf.fitting("Q4_K", 896) == "Q5_0"
    assert gguf.fitting("Q6_K", 896) == "Q8_0"
    assert gguf.fitting("IQ4_XS", 896) == "IQ4_NL"
    assert gguf.fitting("Q4_K", 4096) == "Q4_K"
    assert gguf.fitting("Q4_K", 7) == "F16"


def test_vectors_and_routers_stay_f32() -> None:
    arch = architecture("Qwen/Qwen3-30B-A3B")
    kept = {stored.weight.part for stored in gguf.stored_tensors(arch, "Q4_K_M") if stored.type == "F32"}
    assert {"router", "pre_attention", "q_norm"} <= kept
    assert "experts.down_proj" not in kept


def test_better_bits_go_to_the_ends_and_every_third_layer() -> None:
    assert [layer for layer in range(32) if gguf.more_bits(layer, 32)] == [
        0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("nf4", "nf4"),
        ("NF4-DQ", "nf4-dq"),
        ("nf4_dq", "nf4-dq"),
        ("bnb-nf4", "nf4"),
        ("LLM.int8", "int8"),
        ("gptq", "gptq-4bit-g128"),
        ("GPTQ-Int8", "gptq-8bit-g128"),
        ("gptq-4bit-32g", "gptq-4bit-g32"),
        ("awq 4bit g64", "awq-4bit-g64"),
        ("FP8", "fp8"),
        ("mxfp4", "mxfp4"),
        ("q4_k_m", "Q4_K_M"),
        ("Q4-K-M", "Q4_K_M"),
        ("IQ4_XS", "IQ4_XS"),
        ("q8_0", "Q8_0"),
        ("exl2-4.65bpw", "exl2-4.65bpw"),
        ("3.5bpw", "exl2-3.5bpw"),
        ("bfloat16", "bf16"),
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    assert weight_format(spelling).name == name


@pytest.mark.parametrize("name", known_formats())
def test_every_known_format_packs_a_matrix(name: str) -> None:
    form = weight_format(name)
    measured = form.tensor_bytes(SQUARE) * 8 / (4096 * 4096)
    assert measured == pytest.approx(form.bits, rel=0.01)


@pytest.mark.parametrize(
    ("name", "bits"),
    [("nf4", 4.5), ("nf4-dq", 4.1275), ("int8", 8.0078), ("awq-4bit-g128", 4.15625), ("fp8", 8.002), ("mxfp4", 4.25)],
)
def test_bits_of_a_square_matrix(name: str, bits: float) -> None:
    # Measured with bitsandbytes 0.50.2 or counted from the stored buffers (quants.csv).
    assert weight_format(name).tensor_bytes(SQUARE) * 8 / (4096 * 4096) == pytest.approx(bits, abs=1e-3)


def test_double_quantisation_to_the_byte() -> None:
    n = 4096 * 4096
    assert weight_format("nf4-dq").tensor_bytes(SQUARE) == n // 2 + n // 64 + 4 * n // 16384 + 64 + 1028


def test_what_a_format_leaves_alone() -> None:
    head = Weight("lm_head.weight", SQUARE, "linear", "head")
    linear = Weight("q_proj.weight", SQUARE, "linear", "q_proj")
    expert = Weight("experts.down_proj", (8, *SQUARE), "expert", "experts.down_proj")
    assert [weight_format("nf4").covers(weight) for weight in (head, linear, expert)] == [False, True, True]
    assert [weight_format("mxfp4").covers(weight) for weight in (head, linear, expert)] == [False, False, True]


def test_a_packed_model_keeps_its_embedding() -> None:
    arch = architecture("meta-llama/Llama-3.1-8B")
    packed = model_bytes(arch, weight_format("nf4-dq"))
    assert packed / 2**30 == pytest.approx(5.3, abs=0.1)
    assert model_bytes(arch, weight_format("bf16")) == 2 * 8_030_261_248


@pytest.mark.parametrize("name", ["banana", "", "q9_k", "gptq-9bit", "0bpw", "x" * 500])
def test_unknown_formats_are_refused(name: str) -> None:
    with pytest.raises(EstimatorError, match="nearest are") as caught:
        weight_format(name)
    assert caught.value.field == "weight_format"
