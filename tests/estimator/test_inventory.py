import json
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import pytest

from estimator.architecture import from_config
from estimator.catalogue.rows import architecture
from estimator.families import family
from estimator.inventory import active_parameters, inventory

BUILT = Path(__file__).parent / "catalogue" / "data" / "transformers_tensors.jsonl"
MODELS: list[dict[str, Any]] = [json.loads(line) for line in BUILT.read_text(encoding="utf-8").splitlines()]
UNNAMED_TOP = ("bert", "roberta", "xlm-roberta", "distilbert", "t5", "mt5", "modernbert")
"""Families whose class prefixes the encoder's names by its own; there only counts are compared."""


def size(shape: str) -> int:
    return prod(int(side) for side in shape.split("x"))


def sides(shape: tuple[int, ...]) -> str:
    return "x".join(str(side) for side in sorted(shape))


def sorted_sides(shape: str) -> str:
    return sides(tuple(int(side) for side in shape.split("x")))


def model_type(model: dict[str, Any]) -> str:
    return str(model["config"]["model_type"])


@pytest.mark.parametrize("model", MODELS, ids=model_type)
def test_counts_equal_the_built_model(model: dict[str, Any]) -> None:
    built = sum(size(shape) for shape in model["other"].values())
    built += sum(size(shape) for index in model["layers"] for shape in model["kinds"][index].values())
    found = inventory(from_config(model["config"]))
    buffers = sum(
        weight.numel for index in found.layers for weight in found.kinds[index].weights if weight.role == "buffer"
    )
    assert found.numel - buffers == built


@pytest.mark.parametrize("model", [model for model in MODELS if model_type(model) not in UNNAMED_TOP], ids=model_type)
def test_names_and_shapes_equal_the_built_model(model: dict[str, Any]) -> None:
    found = inventory(from_config(model["config"]))
    ours = {weight.name: sides(weight.shape) for weight in found.stem + found.top}
    assert ours == {name: sorted_sides(shape) for name, shape in model["other"].items()}
    for index, kind in zip(found.layers, model["layers"], strict=True):
        built = {name: sorted_sides(shape) for name, shape in model["kinds"][kind].items()}
        weights = [weight for weight in found.kinds[index].weights if weight.role != "buffer"]
        assert {weight.name: sides(weight.shape) for weight in weights} == built


@pytest.mark.parametrize("model", MODELS, ids=model_type)
def test_every_linear_and_norm_has_a_part(model: dict[str, Any]) -> None:
    found = inventory(from_config(model["config"]))
    weights = [weight for kind in found.kinds for weight in kind.weights]
    assert all(weight.part for weight in weights if weight.role in ("linear", "norm", "expert"))


def test_names_within_a_layer_are_unique() -> None:
    for model in MODELS:
        for kind in inventory(from_config(model["config"])).kinds:
            assert max(Counter(weight.name for weight in kind.weights).values()) == 1


def test_layers_of_one_kind_are_listed_once() -> None:
    found = inventory(architecture("deepseek-ai/DeepSeek-V3"))
    assert [(kind.attention, kind.mlp) for kind in found.kinds] == [("full", "dense"), ("full", "moe")]
    assert found.layers == (0,) * 3 + (1,) * 58


def test_a_tied_head_is_counted_once() -> None:
    found = inventory(architecture("Qwen/Qwen2.5-0.5B"))
    assert found.numel == 494_032_768
    assert not [weight for weight in found.top if weight.part == "head"]


@pytest.mark.parametrize(
    ("model_id", "billions"),
    [("mistralai/Mixtral-8x7B-v0.1", 12.9), ("Qwen/Qwen3-30B-A3B", 3.3), ("deepseek-ai/DeepSeek-V3", 37.6)],
)
def test_active_parameters_of_a_mixture(model_id: str, billions: float) -> None:
    assert active_parameters(architecture(model_id)) / 1e9 == pytest.approx(billions, rel=0.02)


def test_a_dense_model_is_active_as_a_whole() -> None:
    arch = architecture("meta-llama/Llama-3.1-8B")
    assert active_parameters(arch) == inventory(arch).numel == 8_030_261_248


def test_gpt2_linears_are_given_as_out_by_in() -> None:
    kind = inventory(architecture("openai-community/gpt2")).kinds[0]
    fused = next(weight for weight in kind.weights if weight.name == "attn.c_attn.weight")
    assert fused.shape == (2304, 768)


def test_every_family_has_a_source() -> None:
    for model in MODELS:
        found = family(model_type(model))
        assert found is not None
        assert found["source"]
