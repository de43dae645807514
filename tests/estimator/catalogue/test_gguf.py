"""GGUF mixes against llama.cpp's own table of bits per weight and the rules of its quantiser."""

import csv
import re
from typing import Any

import pytest

from estimator.architecture import Architecture, from_config
from estimator.catalogue import gguf
from estimator.catalogue.rows import architecture
from estimator.datafiles import read_text
from estimator.inventory import inventory

MODELS = {
    "8B": "meta-llama/Llama-3.1-8B",
    "Qwen2.5-0.5B": "Qwen/Qwen2.5-0.5B",
    "Llama-3.2-1B": "meta-llama/Llama-3.2-1B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
}
QUANTS = list(csv.DictReader(read_text("quants.csv").splitlines()))
SMALL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 16,
    "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}  # fmt: skip
MIXTRAL = SMALL | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}


def file_rows(basis: str) -> list[tuple[str, str, float]]:
    """File type, model and bits of the rows of quants.csv with that basis."""
    found = []
    for row in QUANTS:
        named = re.fullmatch(r"(\w+) \(file, (.+)\)", row["name"])
        if named and named[2] in MODELS and row["basis"].startswith(basis):
            found.append((named[1], named[2], float(row["bits_per_weight"])))
    return found


def tensors(arch: Architecture, file_type: str) -> list[gguf.Stored]:
    return list(gguf.stored_tensors(arch, inventory(arch), file_type))


def bits_per_weight(model: str, file_type: str) -> float:
    arch = architecture(MODELS[model])
    size = sum(tensor.bytes * tensor.times for tensor in tensors(arch, file_type) if tensor.in_file)
    return size * 8 / inventory(arch).numel


def types(config: dict[str, Any], file_type: str, part: str) -> dict[str, int]:
    """How many tensors of a part have which type."""
    found = [tensor for tensor in tensors(from_config(config), file_type) if tensor.weight.part == part]
    return {tensor.type: tensor.times for tensor in found if tensor.in_file and tensor.weight.role != "bias"}


@pytest.mark.parametrize(("file_type", "model", "bits"), file_rows("measured"))
def test_measured_files_are_met_to_four_decimals(file_type: str, model: str, bits: float) -> None:
    assert round(bits_per_weight(model, file_type), 4) == bits


@pytest.mark.parametrize(("file_type", "model", "bits"), file_rows("from the stated file size"))
def test_files_of_a_stated_size_are_met_within_their_metadata(file_type: str, model: str, bits: float) -> None:
    assert -0.011 < bits_per_weight(model, file_type) - bits < 0.001


@pytest.mark.parametrize(("file_type", "model", "bits"), file_rows("computed"))
def test_small_and_large_models_have_their_own_mix(file_type: str, model: str, bits: float) -> None:
    # The rows leave out that biases are F32 and that a 70 B model's attn_v is raised.
    assert bits_per_weight(model, file_type) == pytest.approx(bits, rel=0.0011)


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
    found = tensors(architecture("Qwen/Qwen3-30B-A3B"), "Q4_K_M")
    kept = {tensor.weight.part for tensor in found if tensor.type == "F32"}
    assert {"router", "pre_attention", "q_norm"} <= kept
    assert "experts.down_proj" not in kept


def test_better_bits_go_to_the_ends_and_every_third_layer() -> None:
    assert [layer for layer in range(32) if gguf.more_bits(layer, 32)] == [
        0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31,
    ]  # fmt: skip


def test_only_value_matrices_are_counted_not_their_biases() -> None:
    # Q4_K_S raises the first four value projections.
    assert types(SMALL | {"model_type": "qwen2"}, "Q4_K_S", "v_proj") == {"Q5_K": 4, "Q4_K": 12}


def test_eight_experts_raise_attention() -> None:
    assert types(MIXTRAL, "Q4_K_M", "v_proj") == types(MIXTRAL, "Q4_K_M", "k_proj") == {"Q8_0": 16}
    assert types(MIXTRAL, "Q4_K_M", "o_proj") == {"Q5_K": 16}
    assert types(MIXTRAL, "Q3_K_L", "o_proj") == {"Q3_K": 16}
    assert types(MIXTRAL, "F16", "v_proj") == {"F16": 16}


def test_gate_and_up_are_counted_apart() -> None:
    for part in ("gate_proj", "up_proj"):
        assert types(SMALL, "IQ3_XS", part) == {"IQ3_S": 4, "IQ3_XXS": 12}


def test_falcon_has_its_own_rules() -> None:
    found = tensors(architecture("tiiuae/falcon-7b"), "Q4_K_M")
    down = {tensor.type: tensor.times for tensor in found if tensor.weight.part == "down_proj"}
    assert down == {"Q6_K": 2, "Q5_K": 14, "Q4_K": 16}
    assert [tensor.type for tensor in found if tensor.weight.part == "head"] == ["Q8_0"]


def test_mxfp4_is_for_experts() -> None:
    assert types(MIXTRAL, "MXFP4_MOE", "experts.down_proj") == {"MXFP4": 16}
    assert types(MIXTRAL, "MXFP4_MOE", "embedding") == types(SMALL, "MXFP4_MOE", "up_proj") | {"Q8_0": 1}


@pytest.mark.parametrize(("file_type", "gigabytes"), [("MXFP4_MOE", 12.1), ("Q6_K", 12.04), ("F16", 13.8)])
def test_files_of_gpt_oss_keep_its_experts_as_published(file_type: str, gigabytes: float) -> None:
    """Sizes as published: MXFP4 and Q6_K files for llama.cpp, Ollama's tag with 16 bit beside the experts."""
    found = tensors(architecture("openai/gpt-oss-20b"), file_type)
    whole = sum(tensor.bytes * tensor.times for tensor in found if tensor.in_file)
    assert whole / 1e9 == pytest.approx(gigabytes, rel=0.005)
    assert {tensor.type for tensor in found if len(tensor.weight.shape) == 3} == {"MXFP4"}


@pytest.mark.parametrize(("tied", "on_card"), [(False, 0), (True, 1)])
def test_the_embedding_stays_on_the_host_and_a_tied_one_is_the_output_too(tied: bool, on_card: int) -> None:
    found = tensors(from_config(SMALL | {"tie_word_embeddings": tied}), "Q4_K_M")
    tables = [tensor for tensor in found if tensor.weight.part == "embedding"]
    assert sum(tensor.on_card for tensor in tables) == on_card
    assert [tensor.type for tensor in tables] == (["Q6_K"] * 2 if tied else ["Q4_K"])


def test_position_tables_are_f32_on_the_host() -> None:
    found = [
        tensor
        for tensor in tensors(architecture("openai-community/gpt2"), "Q4_K_M")
        if tensor.weight.part == "positions"
    ]
    assert [(tensor.type, tensor.on_card) for tensor in found] == [("F32", False)]


def test_every_rule_names_known_types_and_conditions() -> None:
    known = {"falcon", "gqa>=4", "experts=8", "experts>=4", "70b", "ragged", "mxfp4", *gguf.PLACES}
    tensors_known = {known_part.tensor for known_part in gguf.parts().values()} | {"base", "experts"}
    for mix in gguf.mixes().values():
        assert set(mix) <= tensors_known
        for rule in (rule for rules in mix.values() for rule in rules):
            assert rule.type in {*gguf.blocks(), gguf.BASE}
            assert set(rule.when) <= known
