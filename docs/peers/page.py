"""The section of docs/accuracy.md that sets other estimators beside ours, from ``results.json``."""

import json
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from estimator.estimate import estimate
from estimator.schema import Run
from tests.estimator.cases import cases

RESULTS = Path(__file__).with_name("results.json")
MEASURED = ("measured.jsonl", "measured_a6000.jsonl")


class Peer(NamedTuple):
    """A package of the Python registry, the module here that asks it, and what is taken of its answer."""

    package: str
    module: str
    taken: str


PEERS = (
    Peer("vramcalc", "vramcalc", "its total without overhead"),
    Peer("fitcheck-llm", "fitcheck", "its tensors without overhead"),
    Peer("canifinetune", "canifinetune", "its total without safety margin and CUDA overhead"),
    Peer("llm-analysis", "llm_analysis", "weights, states, gradients and activations; weights and cache"),
    Peer("ftuneai", "ftuneai", "its total, of allocated peaks without its 20 % overhead"),
    Peer("hf-mem", "hf_mem", "safetensors header and key/value cache"),
)
HEAD = """
## Beside other estimators

`python -m docs.peers` installs each into an environment of its own and asks it for every measured row that it can
express ({date}; figures, versions and the reason for every row left out in `docs/peers/results.json`). Left out are
mostly rows with fused kernels or losses, GPTQ weights and several cards, for which most have no field. Errors are those
of the published peak; *ours* is on the same rows. The RTX A6000 rows are the ones that vramcalc was fitted to.

| estimator | taken | rows | its median error | its 90th percentile | our median | our 90th | nearer: it / we |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def section() -> str:
    """The table, by peer and by source, and what it says in words."""
    results = json.loads(RESULTS.read_text("utf-8"))
    measured = {case["id"]: case for name in MEASURED for case in cases(name)}
    ours = {name: _ours(case) for name, case in measured.items()}
    lines, won = [], []
    for peer in PEERS:
        found = results["peers"][peer.package]
        if "failed" in found:
            lines.append(f"| {peer.package} | could not be installed: {found['failed']} | | | | | | |\n")
            continue
        pairs = {
            name: (abs(size / measured[name]["measured"]["bytes"] - 1), abs(ours[name]))
            for name, size in found["bytes"].items()
        }
        lines.append(_line(f"{peer.package} {found['version']}", peer.taken, list(pairs.values())))
        lines += [
            _line(f"… {source}", "", [pair for name, pair in pairs.items() if _source(measured[name]) == source])
            for source in sorted({_source(measured[name]) for name in pairs})
        ]
        won += [_won(peer.package, measured, pairs)]
    return HEAD.format(date=results["date"]) + "".join(lines) + "\n" + "".join(won)


def _ours(case: dict[str, Any]) -> float:
    """Our relative error of the row's own metric."""
    found = estimate(Run.model_validate(case["run"])).per_gpu
    assert found is not None
    got = found.reserved_peak.expected if case["measured"]["metric"] == "reserved" else found.allocated_peak
    return float(got / case["measured"]["bytes"] - 1)


def _source(case: dict[str, Any]) -> str:
    return str((case.get("from") or {}).get("source") or "RTX A6000")


def _line(name: str, taken: str, pairs: list[tuple[float, float]]) -> str:
    figures = []
    for side in (0, 1):
        errors = sorted(pair[side] for pair in pairs)
        figures += [f"{median(errors):.2%}", f"{errors[int(0.9 * (len(errors) - 1))]:.2%}"]
    nearer = sum(theirs < our for theirs, our in pairs)
    return f"| {name} | {taken} | {len(pairs)} | {' | '.join(figures)} | {nearer} / {len(pairs) - nearer} |\n"


def _won(package: str, measured: dict[str, Any], pairs: dict[str, tuple[float, float]]) -> str:
    """Where the peer is nearer than we are."""
    rows = Counter(
        f"{_source(measured[name])} {measured[name]['run']['model'].split('/')[-1]}"
        for name, (theirs, our) in pairs.items()
        if theirs < our
    )
    if not rows:
        return ""
    listed = ", ".join(f"{name} ({count})" for name, count in rows.most_common())
    return f"- {package} is nearer than we are on {sum(rows.values())} of {len(pairs)} rows: {listed}.\n"
