"""What is known of a card that was asked for, and how a problem with its name is told."""

from dataclasses import dataclass, replace

from estimator.catalogue.gpu_text import folded
from estimator.errors import EstimatorError


@dataclass(frozen=True, slots=True)
class GpuMatch:
    """A card and what it can do.

    ``usable_low``/``usable_high`` are bytes as torch sees the whole card, a range where several values were met.
    ``kind`` is consumer, laptop, workstation, datacenter, unified, npu, mig or class (only a size was given).
    """

    name: str
    vendor: str
    arch: str
    compute_capability: str
    usable_low: int
    usable_high: int
    nominal_gb: float
    kind: str
    bf16: bool
    fp8: bool
    flash_attn2: bool
    flash_attn3: bool
    count: int = 1
    candidates: tuple[str, ...] = ()
    note: str = ""
    note_zh: str = ""


def noted(match: GpuMatch, note: str, note_zh: str) -> GpuMatch:
    """The match with something said before the rest."""
    return replace(
        match,
        note="; ".join(filter(None, (note, match.note))),
        note_zh="；".join(filter(None, (note_zh, match.note_zh))),
    )


def shown(text: str) -> str:
    """A name as it may be repeated: short, on one line."""
    return repr(folded(str(text))[:60])


def problem(message: str, message_zh: str) -> EstimatorError:
    """A problem with the card that was asked for."""
    return EstimatorError(message, message_zh, field="gpu")
