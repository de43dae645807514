"""Methods and modes on one card: each phase of a step against traced ones, and what must hold between them."""

from typing import Any

import pytest

from estimator.estimate import estimate
from estimator.schema import PerGpu, Run
from tests.estimator.cases import cases
from tests.estimator.methods import LORA, PLAIN, block, live, per_gpu, phases

SCALARS = 1024
"""A few tensors of one element live in the tracer's own variables."""
REFRESHED = ("galore",)
"""Methods whose optimizer step is estimated with new projectors, which a traced second step does not compute."""


def traced() -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases("methods.jsonl")]


@pytest.mark.parametrize("case", traced())
def test_every_phase_of_a_traced_step(case: dict[str, Any]) -> None:
    answer = estimate(Run.model_validate(case["run"])).per_gpu
    assert answer is not None
    found, truth = phases(answer), case["phases"]
    assert abs(found["forward"] - truth["fwd"]) <= SCALARS
    assert abs(found["loss"] - truth["head_loss"]) <= SCALARS
    assert abs(found["backward"] - max(truth["bwd_head"], truth["bwd_layers"])) <= SCALARS
    if case["run"]["method"] not in REFRESHED:
        assert abs(found["optimizer_step"] - truth["opt"]) <= SCALARS


def test_checkpointing_kinds_are_ordered() -> None:
    kinds = ("none", "selective-op", "every-2", "full", "offload")
    sizes = [phases_of(kind)["forward"] for kind in kinds]
    assert sizes[0] > max(sizes[1], sizes[2])
    assert min(sizes[1], sizes[2]) > sizes[3] > sizes[4]


def phases_of(kind: str) -> dict[str, int]:
    return phases(per_gpu(gradient_checkpointing=kind, seq_len=2048))


def test_every_first_layer_is_every_layer() -> None:
    assert live(gradient_checkpointing="every-1") == live(gradient_checkpointing="full")


def test_recomputed_attention_matters_where_scores_are_kept() -> None:
    saved = live(attention="eager") - live(attention="eager", gradient_checkpointing="selective-attention")
    assert saved > live() - live(gradient_checkpointing="selective-attention") >= 0


def test_dora_costs_more_than_lora() -> None:
    assert live(**LORA | {"method": "dora"}) > live(**LORA)


def test_int8_inputs_survive_checkpointing_unless_it_is_reentrant() -> None:
    changes = LORA | {"weight_format": "int8", "gradient_checkpointing": "full"}
    kept = live(**changes)
    dropped = live(**changes, details={"use_reentrant": True})
    assert kept - dropped >= 4 * 1024 * (6 * 1024 + 2 * 2816) - (1 << 20)


def test_gptq_holds_the_unpacked_weights_without_checkpointing() -> None:
    changes = LORA | {"weight_format": "gptq-4bit-g128", "seq_len": 64}
    saved = live(**changes) - live(**changes, gradient_checkpointing="full")
    layers = 4 * (1024 * (1024 + 256 + 256 + 1024) + 3 * 1024 * 2816)
    assert saved > 2 * layers * 0.7


def test_freeze_trains_the_last_layers_and_nothing_else() -> None:
    one, two = (live(method="freeze", details={"freeze_trainable_layers": count}) for count in (1, 2))
    assert one < two < live()


def test_badam_keeps_states_of_one_layer() -> None:
    layer = 1024 * (1024 + 256 + 256 + 1024) + 3 * 1024 * 2816 + 2 * 1024
    assert block("optimizer_states", method="badam") == 12 * layer


def test_lomo_never_holds_all_gradients() -> None:
    gradients = 2 * 110_633_984
    assert live() - live(method="lomo") > gradients


def test_fused_kernels_only_take_away() -> None:
    steps = (None, ["norm"], ["norm", "rope"], ["norm", "rope", "mlp"])
    sizes = [live(fused_kernels=fused, seq_len=2048) for fused in steps]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1]
    assert sizes[2] > sizes[3]


def test_padding_and_packing_bring_a_mask() -> None:
    plain = live()
    assert live(seq_len={"mean": 300, "max": 512}) > plain
    assert live(packing=True, details={"document_lengths": [256, 256]}) > plain
    assert live(packing=True) == plain


def test_fused_loss_on_whole_logits_needs_less_than_the_plain_one() -> None:
    assert live(loss="fused") < live(loss="fused-ce-logits") < live()


@pytest.mark.parametrize(
    "changes",
    [
        {"compile": True},
        {"optimizer": "adamw-4bit"},
        LORA | {"fused_kernels": ["lora"]},
        LORA | {"weight_format": "awq-4bit-g128"},
    ],
)
def test_modes_that_are_not_traced_are_named_and_widen_the_interval(changes: dict[str, Any]) -> None:
    answer = estimate(Run.model_validate(PLAIN | changes))
    assert answer.per_gpu is not None
    exact = per_gpu()
    assert any(note.field in changes for note in answer.notes)
    assert width(answer.per_gpu) > width(exact)


def width(answer: PerGpu) -> float:
    return (answer.interval.high - answer.interval.low) / answer.allocated_peak


def test_packing_without_position_ids_is_one_long_row() -> None:
    assert live(packing=True, framework="litgpt") == live(framework="litgpt")
