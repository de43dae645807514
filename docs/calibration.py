"""What the intervals were chosen from, and how well they hold for a source that was left out.

``python -m docs.calibration`` prints, for every regime, the percentiles of what reserved and device figures hold beyond
the allocated peak, as shares of the bytes that the step allocates: the figures of ``[reserved]`` in
``estimator/data/card.toml``. Left out means: a factor on the interval's two halves is chosen on all other sources
(the smallest that holds 90 % of their rows) and tried on the one.
"""

from collections import defaultdict
from statistics import mean

from estimator.estimate import estimate
from estimator.schema import PerGpu, Run
from tests.estimator.measured import Measured, measured

Calibrated = list[tuple[str, str, int, float, float]]
GIB = 1 << 30
CONTEXT = 0.45


def calibrated(rows: list[Measured]) -> Calibrated:
    """Metric, source left out, its rows, the factor that the others ask for, and the share then held."""
    found: Calibrated = []
    for metric in ("allocated", "reserved"):
        of_metric = [row for row in rows if row.metric == metric]
        for source in sorted({row.source for row in of_metric}):
            others = [stretch(row) for row in of_metric if row.source != source]
            own = [stretch(row) for row in of_metric if row.source == source]
            factor = max(sorted(others)[int(0.9 * (len(others) - 1))], 0.05)
            found.append((metric, source, len(own), factor, mean(one <= factor for one in own)))
    return found


def stretch(row: Measured) -> float:
    """By how much the half of the interval on the value's side must be stretched to just hold it."""
    answer = _answer(row)
    value = row.case["measured"]["bytes"]
    if row.metric == "allocated":
        expected, low, high = answer.allocated_peak, answer.interval.low, answer.interval.high
    else:
        held = answer.reserved_peak
        expected, low, high = held.expected, held.low, held.high
    half = high - expected if value > expected else expected - low
    return abs(value - expected) / max(half, 1)


def _answer(row: Measured) -> PerGpu:
    found = estimate(Run.model_validate(row.case["run"])).per_gpu
    assert found is not None
    return found


def table(found: Calibrated) -> str:
    """The check as a section of the accuracy page."""
    lines = [
        f"| {metric} | {source} | {rows} | {factor:.2f} | {held:.0%} |" for metric, source, rows, factor, held in found
    ]
    return (
        "## Intervals, one source left out at a time\n\n`python -m docs.calibration`. "
        "The factor is the stretch of the shipped interval that holds 90 % of the rows of the "
        "other sources;\nit is then tried on the source that was left "
        "out. The shipped widths themselves were chosen on all sources,\nso this checks them and is not a calibration "
        "without the source. Few rows: a source of five moves by 20 % a row.\n\n"
        "| metric | left out | rows | factor from the others | held |\n| --- | --- | --- | --- | --- |\n"
        + "\n".join(lines)
        + "\n\n"
    )


def beyond(rows: list[Measured]) -> dict[str, list[float]]:
    """Bytes beyond the allocated peak as shares of the step's own, by metric and regime."""
    shares: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        answer, run = _answer(row), row.case["run"]
        own = max(answer.allocated_peak - answer.steady, 1)
        spread = (run.get("parallel") or {}).get("engine", "one card") if run["gpu_count"] > 1 else "one card"
        regime = f"{run.get('method')}, {spread}, checkpointing {run.get('gradient_checkpointing')}"
        seen = row.case["measured"].get("device_bytes")
        if seen:
            shares[f"device, {regime}"].append((seen - answer.allocated_peak - CONTEXT * GIB) / own)
        if row.metric == "reserved":
            shares[f"reserved, {regime}"].append((row.case["measured"]["bytes"] - answer.allocated_peak) / own)
    return shares


def main() -> None:
    """Print the percentiles and the check."""
    rows = measured()
    for name, found in sorted(beyond(rows).items()):
        ordered = sorted(found)
        low, middle, high = (ordered[int(q * (len(ordered) - 1))] for q in (0.05, 0.5, 0.95))
        print(f"{name}: {len(ordered)} rows, {low:.2f} {middle:.2f} {high:.2f}")
    print(table(calibrated(rows)))


if __name__ == "__main__":
    main()
