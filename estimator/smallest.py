"""The smallest size of card for a run that names none."""

from estimator.catalogue.sizes import sizes_gb
from estimator.estimate import estimate
from estimator.schema import Estimate, Run
from estimator.serving.engines import is_served


def smallest_card_gb(found: Estimate) -> int | None:
    """GB of the smallest card that surely holds the run; None where one is asked about, or no single card does.

    What a serving engine takes follows from the card, so each size is asked.
    """
    if found.per_gpu is None or found.run is None or found.fit.verdict:
        return None
    sizes, run = sizes_gb(found.per_gpu.device_peak.high), found.run
    if not is_served(run):
        return next(iter(sizes), None)
    return next((size for size in sizes if _holds(run, size)), None)


def _holds(run: Run, size: int) -> bool:
    return estimate(run.model_copy(update={"gpu": f"{size}GB"}), steps=False).fit.verdict == "fits"
