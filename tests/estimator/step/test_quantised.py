"""Formats of bitsandbytes that differ in their code book alone take the same bytes."""

import pytest

from estimator.estimate import estimate
from estimator.schema import Run


@pytest.mark.parametrize("model", ["qwen2.5-0.5b", "qwen2.5-vl-3b", "mixtral-8x7b"])
@pytest.mark.parametrize("suffix", ["", "-dq"])
@pytest.mark.parametrize("prepared", [True, False])
def test_fp4_takes_what_nf4_takes(model: str, suffix: str, prepared: bool) -> None:
    run = {"model": model, "method": "qlora", "precision": "bf16", "kbit_prepare": prepared, "gpu": "A100 80GB"}
    fp4, nf4 = (
        estimate(Run.model_validate({**run, "weight_format": f"{name}{suffix}"}), steps=False).per_gpu
        for name in ("fp4", "nf4")
    )
    assert fp4 is not None and nf4 is not None
    assert [one.allocated_peak for one in fp4.phases] == [one.allocated_peak for one in nf4.phases]
    assert fp4.device_peak == nf4.device_peak
