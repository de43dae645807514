import pytest

from estimator.architecture import Weight, from_config
from estimator.catalogue.formats import known_formats, weight_format
from estimator.catalogue.rows import architecture
from estimator.errors import EstimatorError
from estimator.inventory import inventory
from estimator.step.regime import Regime
from estimator.weights import weights

SQUARE = (4096, 4096)


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
        ("BF16", "BF16"),
        ("bf16", "bf16"),
        ("int-4bit-g32", "gptq-4bit-g32"),
        ("gptq-4bit-g-1", "gptq-4bit-g-1"),
        ("exl2-4.0bpw", "exl2-4bpw"),
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


def test_a_whole_column_may_share_a_scale() -> None:
    n = 4096 * 4096
    assert weight_format("gptq-4bit-g-1").blocks(SQUARE) == (n // 2, 4096 // 2, 4096 * 2, 4096 * 4)


def test_blocks_are_allocations_of_their_own() -> None:
    assert weight_format("nf4").blocks((64, 64)) == (2048, 256, 64)
    assert weight_format("gptq-4bit-g128").blocks((256, 256)) == (32768, 256, 1024, 1024)
    assert weight_format("awq-4bit-g128").blocks((256, 256)) == (32768, 256, 1024)
    assert weight_format("fp8").blocks((8, 256, 256)) == (8 * 65536, 8 * 16)
    assert weight_format("exl2-4bpw").blocks((256, 256), head=True) == (256 * 256 * 6 // 8,)


def test_what_a_format_leaves_alone() -> None:
    head = Weight("lm_head.weight", SQUARE, "linear", "head")
    linear = Weight("q_proj.weight", SQUARE, "linear", "q_proj")
    expert = Weight("experts.down_proj", (8, *SQUARE), "expert", "experts.down_proj")
    # bitsandbytes packs modules, not stacked experts; mxfp4 packs experts, and linears where there are none.
    assert [weight_format("nf4").covers(weight) for weight in (head, linear, expert)] == [False, True, False]
    assert [weight_format("mxfp4").covers(weight) for weight in (head, linear, expert)] == [False, False, True]
    assert weight_format("mxfp4").covers(linear, mixture=False)
    assert [weight_format("awq").covers(weight) for weight in (head, linear, expert)] == [False, True, True]
    assert [weight_format("exl2-4bpw").covers(weight) for weight in (head, linear, expert)] == [True, True, True]


def test_a_packed_model_keeps_its_embedding() -> None:
    arch = architecture("meta-llama/Llama-3.1-8B")
    packed, plain = (
        weights(arch, inventory(arch), Regime(training=False, trainable="none", itemsize=2, quantised=name))
        for name in ("nf4-dq", "bf16")
    )
    assert packed.bytes / 2**30 == pytest.approx(5.3, abs=0.1)
    assert plain.bytes == pytest.approx(2 * 8_030_261_248, rel=1e-6)


def test_formats_are_described_in_figures() -> None:
    assert weight_format("gptq-4bit-g64").figures.startswith("4 bit + fp16 scale and 4-bit zero per 64")
    assert weight_format("hqq-3bit-g64").figures_zh == "3 位 + 每 64 个一个 fp16 缩放与 16 位零点"


def test_the_embedding_of_a_gguf_file_is_not_on_the_card() -> None:
    config = {
        "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 2,
        "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "tie_word_embeddings": False,
        "max_position_embeddings": 4096,
    }  # fmt: skip
    arch = from_config(config)
    held = weights(arch, inventory(arch), Regime(training=False, trainable="none", itemsize=2, quantised="Q8_0"))
    assert dict(held.parts[1].elements) == {"Q8_0": 32000 * 1024}


@pytest.mark.parametrize("name", ["banana", "", "q9_k", "gptq-9bit", "0bpw", "x" * 500])
def test_unknown_formats_are_refused(name: str) -> None:
    with pytest.raises(EstimatorError, match="nearest are") as caught:
        weight_format(name)
    assert caught.value.field == "weight_format"
