"""The time of a run on a card, whatever its task."""

from estimator.architecture import Architecture
from estimator.catalogue import GpuMatch, find_gpu
from estimator.cost.accelerators import accelerator_of
from estimator.cost.answering import generation_time
from estimator.cost.jobs import Training, hours, training_time
from estimator.cost.speed import Accelerator
from estimator.economics import Economics, Seconds, TimeEstimate
from estimator.errors import EstimatorError
from estimator.schema import Estimate, Run


def time_on(
    asked: Run, complete: Run, arch: Architecture, gpu: GpuMatch, found: Estimate | None = None
) -> TimeEstimate:
    """Seconds and speed of a filled run on a card; without an amount the speed alone. Raises ``EstimatorError``.

    ``found`` is its estimate, which inference needs: what a token reads is what the card holds.
    """
    said = asked.economics or Economics()
    if said.hours is not None:
        return given_time(said.hours, complete.gpu_count or 1)
    card = accelerator_of(gpu)
    if card is None:
        raise EstimatorError(
            f"{gpu.name} is only a size; name a card (RTX 4090, A100 80GB) for time and cost",
            f"{gpu.name} 只是显存大小；请写出具体显卡（RTX 4090、A100 80GB）以便计算时间和费用",
            "gpu",
        )
    if complete.task in (None, "train"):
        return training_time(Training(complete, arch, asked), card)
    return generation_time(found or Estimate(run=complete), arch, card, said)


def slowest(run: Run) -> GpuMatch | None:
    """The card that the others wait for; None where the run names none."""
    if run.gpu is None:
        return None
    names = [run.gpu] if isinstance(run.gpu, str) else run.gpu
    return min((find_gpu(name) for name in names), key=_speed)


def _speed(gpu: GpuMatch) -> float:
    card: Accelerator | None = accelerator_of(gpu)
    return (card.peak_tflops or 0.0) if card else 0.0


def given_time(stated_hours: float, gpu_count: int) -> TimeEstimate:
    """Hours of wall time that the user gave."""
    seconds = Seconds(low=stated_hours * 3600, expected=stated_hours * 3600, high=stated_hours * 3600)
    basis, basis_zh = "the hours that were given", "按给出的时长"
    return TimeEstimate(
        seconds=seconds, basis=basis, basis_zh=basis_zh, measured=True, gpu_hours=hours(seconds, gpu_count)
    )
