"""The count by formula against every row of the catalogue."""

import re

import pytest

from estimator.catalogue.models import total_parameters
from estimator.catalogue.rows import ModelRow, architecture, model_ids, model_row, sources
from estimator.errors import EstimatorError
from estimator.inventory import inventory

NO_ARCHITECTURE = {
    "RWKV/rwkv-5-world-3b": "RWKV-5 blocks are not described",
}
"""Rows that are refused, with the reason."""

DIFFER = {
    "deepseek-ai/DeepSeek-V4-Flash": (0.03, "compressed attention and hyper-connections counted like latent attention"),
    "deepseek-ai/DeepSeek-V4-Pro": (0.03, "compressed attention and hyper-connections counted like latent attention"),
    "zai-org/GLM-5.2": (0.001, "its sparse indexer is in 21 of 78 layers; ours has one in every layer"),
    "zai-org/GLM-4.5V": (0.03, "the row's total is a class default's, the stated dimensions are GLM-4.5-Air's"),
    "zai-org/GLM-5.3-Flash": (0.06, "linear attention with indexers, counted like latent attention; class defaults"),
    "tencent/Hy4": (0.001, "class defaults only; indexers and image tower are not described"),
    "stepfun-ai/Step-3.7-Flash": (0.06, "class defaults only; windowed layers of their own widths are not described"),
    "microsoft/Phi-3-small-8k-instruct": (0.06, "block-sparse attention and GeGELU of the vendor's class"),
}
"""Rows whose count is not the row's total: how far at most, and why."""

UNMODELLED = {
    "google/gemma-4-E2B": "double feed-forward of shared layers, audio and image towers",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "layers found by search differ; counted with a mean width (recalled)",
    "google/gemma-4-E4B": "the published total holds encoders and buffers that were not separated",
    "LGAI-EXAONE/K-EXAONE-236B-A23B": "its multi-token-prediction block is in the published total",
    "Zyphra/ZAYA1-8B": "its router networks and convolutions are not described",
}
"""Rows whose remaining parameters are counted as weights without a place in a layer."""

TEXT_EXACT = [
    model_id
    for model_id in model_ids()
    if model_row(model_id).params_check.startswith("exact")
    and model_row(model_id).kind != "vlm"
    and model_id not in NO_ARCHITECTURE
    and model_id not in UNMODELLED
]


def tolerance(row: ModelRow) -> float:
    stated = re.match(r"within ([\d.]+) %", row.params_check)
    return float(stated[1]) / 100 if stated else 0.0


@pytest.mark.parametrize("model_id", TEXT_EXACT)
def test_exact_text_rows_are_met_exactly(model_id: str) -> None:
    arch = architecture(model_id)
    assert inventory(arch).numel == model_row(model_id).params_total
    assert "unmodelled" not in dict(arch.extra)


@pytest.mark.parametrize("model_id", model_ids())
def test_every_row_is_met_or_listed(model_id: str) -> None:
    row = model_row(model_id)
    if model_id in NO_ARCHITECTURE:
        with pytest.raises(EstimatorError, match=r"paste its config\.json"):
            architecture(model_id)
    elif row.params_total is not None:
        counted = total_parameters(architecture(model_id))
        allowed, _why = DIFFER.get(model_id, (0.0, ""))
        assert abs(counted - row.params_total) <= allowed * row.params_total


def test_rows_outside_their_own_tolerance_are_few() -> None:
    outside = {
        model_id
        for model_id in DIFFER
        if abs(total_parameters(architecture(model_id)) / (model_row(model_id).params_total or 1) - 1)
        > tolerance(model_row(model_id))
    }
    assert outside == {
        "deepseek-ai/DeepSeek-V4-Pro",
        "microsoft/Phi-3-small-8k-instruct",
        "stepfun-ai/Step-3.7-Flash",
        "tencent/Hy4",
        "zai-org/GLM-5.3-Flash",
    }


def test_unmodelled_parameters_are_said() -> None:
    said = set()
    for model_id in model_ids():
        if model_id not in NO_ARCHITECTURE and "unmodelled" in dict(architecture(model_id).extra):
            said.add(model_id)
            assert architecture(model_id).approximate
    assert said == set(UNMODELLED)


def test_image_towers_are_counted_with_their_models() -> None:
    arch = architecture("Qwen/Qwen2.5-VL-7B-Instruct")
    assert arch.vision is not None
    assert total_parameters(arch) == 8_292_166_656
    assert arch.vision.params == 676_550_144


def test_the_table_is_whole() -> None:
    assert len(model_ids()) == 535
    assert sum(model_row(model_id).confidence == "A" for model_id in model_ids()) == 255


@pytest.mark.parametrize("model_id", model_ids()[::37])
def test_every_row_has_sources(model_id: str) -> None:
    found = sources(model_id)
    assert "num_hidden_layers" in found["sources"]
    assert not re.search(r"\bs\d+:", found["sources"])
    assert found["check_detail"] or model_row(model_id).params_check == "unverified"
