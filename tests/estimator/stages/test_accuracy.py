"""Stages against steps that were traced to the byte: trl's own losses, and vision towers."""

from statistics import median
from typing import Any

import pytest

from estimator.estimate import estimate
from estimator.schema import Run
from tests.estimator.cases import Outcome, answered, cases, report

FILE = "traced_stages.jsonl"


def stage_of(case: dict[str, Any]) -> str:
    return "vision" if case["run"].get("vision") else str(case["run"]["stage"])


def test_traced_stages(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes, refused = answered(FILE)
    by_stage: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_stage.setdefault(stage_of(one.case), []).append(one)
    with capsys.disabled():
        for stage, found in sorted(by_stage.items()):
            print(f"\n{stage}:", report(found).splitlines()[0])
    errors = sorted(abs(one.error) for one in outcomes)
    assert not refused
    assert median(errors) <= 0.0001
    assert errors[int(0.9 * (len(errors) - 1))] <= 0.001
    assert errors[-1] <= 0.01


FORWARDS = ("fwd", "ref_fwd", "score", "head_loss")


@pytest.mark.parametrize("case", [case for case in cases(FILE) if not case["run"].get("vision")], ids=lambda c: c["id"])
def test_every_phase_of_a_traced_stage(case: dict[str, Any]) -> None:
    found = estimate(Run.model_validate(case["run"] | {"details": case["extra"]})).per_gpu
    assert found is not None
    workspace = next(block.bytes for block in found.at_peak if block.item == "workspace")
    ours = {phase.phase: phase.allocated_peak - workspace for phase in found.phases}
    forward = max(case["phases"].get(name, 0) for name in FORWARDS)
    assert max(ours["forward"], ours["loss"]) == pytest.approx(forward, rel=0.001)
    backward = max(case["phases"]["bwd_head"], case["phases"]["bwd_layers"])
    assert ours["backward"] == pytest.approx(backward, rel=0.001)
    assert ours["optimizer_step"] == pytest.approx(case["phases"]["opt"], rel=0.0001)
