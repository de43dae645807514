"""What several tests build upon: estimates made by hand, so that texts are tested apart from the estimator."""

from typing import Any

import pytest

from estimator.schema import Assumption, Block, Estimate, Fit, Interval, Largest, PerGpu, PhasePeak, Range, Run

GIB = 2**30


def made_estimate(**changes: Any) -> Estimate:
    """A LoRA run of a 0.5B model that fits an 8 GB card, all figures made up."""
    per_gpu = PerGpu(
        allocated_peak=int(1.9 * GIB),
        reserved_peak=Range(low=2 * GIB, expected=int(2.1 * GIB), high=int(2.3 * GIB)),
        device_peak=Range(low=int(2.4 * GIB), expected=int(2.6 * GIB), high=int(2.9 * GIB)),
        interval=Interval(low=int(1.8 * GIB), high=2 * GIB, coverage=0.9),
        peak_phase="backward",
        phases=[
            PhasePeak(phase="load", allocated_peak=GIB),
            PhasePeak(phase="backward", allocated_peak=int(1.9 * GIB)),
        ],
        at_peak=[
            Block(
                item="weights",
                bytes=int(0.92 * GIB),
                why="494,032,768 parameters x 2 B",
                why_zh="494,032,768 个参数 x 2 B",
            ),
            Block(
                item="logits_loss", bytes=int(0.43 * GIB), why="1,024 x 151,936 x 2 B", why_zh="1,024 x 151,936 x 2 B"
            ),
            Block(item="activations", bytes=int(0.55 * GIB), why="24 layers", why_zh="24 层"),
            Block(item="workspace", bytes=512, why="cuBLAS", why_zh="cuBLAS"),
        ],
        steady=GIB,
    )
    made = Estimate(
        run=Run(model="0.5b", method="lora", precision="bf16", gpu="8GB", task="train", loss="chunked"),
        assumptions=[
            Assumption(field="seq_len", value=1024, why="our default", why_zh="我们的默认值"),
            Assumption(field="micro_batch", value=1, why="our default", why_zh="我们的默认值"),
            Assumption(field="loss", value="chunked", why="trl's default", why_zh="trl 的默认值"),
        ],
        per_gpu=per_gpu,
        fit=Fit(verdict="fits", usable=int(7.6 * GIB), margin=5 * GIB, confidence=0.99),
        max=Largest(micro_batch=12, seq_len=11_300),
    )
    return made.model_copy(update=changes)


@pytest.fixture
def estimate() -> Estimate:
    """See made_estimate."""
    return made_estimate()
