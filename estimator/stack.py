"""Versions of the packages a run uses: those that are modelled, and what an older one changes."""

import re
from collections.abc import Mapping
from functools import lru_cache

from estimator.adapter_targets import MIXTRAL, QWEN
from estimator.architecture import Architecture, Inventory, LayerKind, Weight
from estimator.errors import EstimatorError
from estimator.schema import Assumption, Run
from estimator.step.quantised import BITSANDBYTES

MODELLED = {"torch": "2.13.0", "transformers": "5.24.0", "peft": "0.21.2", "trl": "1.16.0", "bitsandbytes": "0.50.2"}
"""Package versions that the estimates are read from."""

LAST_BEFORE_5 = "4.57.6"
"""The last release of transformers whose experts are linear modules."""

PINNED = {"litgpt": {"bitsandbytes": "0.42.0"}}
"""Versions that a framework asks for instead (litgpt 0.4 and 0.5, package metadata)."""

VERSION = re.compile(r"[vb]?\d+(\.(\d+|[x*]))*[-_.]?((a|b|c|rc|alpha|beta|pre|post|dev)[-_.]?\d*)*(\+[\w.]+)?")

LINEAR_EXPERTS = MIXTRAL | QWEN | {"qwen2_moe", "phimoe", "jamba", "kimi_k2"}
"""Types whose experts are lists of ``nn.Linear`` in transformers before 5 (conversion_mapping.py converts them)."""

LINEAR_ROUTERS = {"mixtral", "phimoe", "qwen2_moe", "qwen3_moe", "qwen3_next", "olmoe", "jamba", "ernie4_5_moe"}
"""Types whose router is an ``nn.Linear`` there too: packed and adapted like any other."""

OLD_NAMES = MIXTRAL | {"phimoe"}
"""Types that call an expert's linears w1, w3 and w2."""


def check_stack(stack: Mapping[str, str | None] | None) -> None:
    """Raise for a version that is none."""
    for package, version in (stack or {}).items():
        if version is not None and not _is_version(version):
            name, shown = package[:30], repr(version[:30])
            raise EstimatorError(
                f"stack.{name} {shown} is not a version; write it as {MODELLED.get(name, '1.2.3')}",
                f"stack.{name} 的值 {shown} 不是版本号；请写成 {MODELLED.get(name, '1.2.3')} 这样的形式",
                f"stack.{name}",
            )


@lru_cache(maxsize=256)
def _is_version(text: str) -> bool:
    return VERSION.fullmatch(text.strip().lower()) is not None


def with_stack(run: Run) -> tuple[Run, list[Assumption]]:
    """The run with the versions that are modelled where it names none, told as one assumption."""
    given = {name: version for name, version in (run.stack or {}).items() if version is not None}
    known = MODELLED | PINNED.get(run.framework or "", {})
    missing = {name: version for name, version in known.items() if name not in given}
    if not missing:
        return run, []
    stack = {**(run.stack or {}), **missing, **given}
    return run.model_copy(update={"stack": stack}), [_assumed(tuple(missing.items()))]


@lru_cache(maxsize=64)
def _assumed(missing: tuple[tuple[str, str], ...]) -> Assumption:
    return Assumption(
        field="stack",
        value=dict(missing),
        why="not given: the versions that this estimate was read from and checked against",
        why_zh="未给出：本工具所依据并验证过的版本",
    )


@lru_cache(maxsize=256)
def release_of(version: str) -> tuple[int, int]:
    """Major and minor number; where none is given: newer than everything."""
    found = re.match(r"v?(\d+)(?:\.(\d+))?", version)
    return (int(found[1]), int(found[2] or 0)) if found else (999, 0)


LOADINGS = {"loads-everything": (1, 13), "loads-much": (2, 1)}
"""How much of its kernels a torch loads with the CUDA context, and before which release (data/card.toml)."""


def loading_of(run: Run) -> tuple[str, ...]:
    """The first of ``LOADINGS`` that the run's torch falls under."""
    release = release_of((run.stack or {}).get("torch") or "")
    return tuple(name for name, until in LOADINGS.items() if release < until)[:1]


THROUGH_TRANSFORMERS = ("transformers", "trl", "peft", "llama-factory", "axolotl", "ms-swift")
"""Frameworks whose steps are those of transformers' own model code."""


def versions_stated(run: Run) -> bool:
    """Whether the run names the release of transformers that it uses, and not the one that is taken when none is.

    A loop that keeps its outputs is one of its own: what else it does is not known.
    """
    if run.outputs_kept:
        return False
    named = (run.stack or {}).get("transformers")
    return run.framework in THROUGH_TRANSFORMERS and named not in (None, MODELLED["transformers"])


def before_5(run: Run) -> bool:
    """Whether the run uses a transformers older than 5."""
    return release_of((run.stack or {}).get("transformers") or "") < (5, 0)


def linear_experts(run: Run, arch: Architecture) -> bool:
    """Whether the experts are linear modules of their own rather than stacked tensors."""
    return before_5(run) and arch.experts is not None and arch.model_type in LINEAR_EXPERTS


def with_packed_experts(run: Run, arch: Architecture) -> Run | None:
    """The run of the last transformers that packs every expert, where bitsandbytes leaves them in 16 bit today."""
    unpacked = run.weight_format in BITSANDBYTES and arch.experts is not None and arch.model_type in LINEAR_EXPERTS
    if not unpacked or before_5(run):
        return None
    return run.model_copy(update={"stack": {**(run.stack or {}), "transformers": LAST_BEFORE_5}})


@lru_cache(maxsize=128)
def with_linear_experts(parts: Inventory, model_type: str) -> Inventory:
    """The inventory with every expert's matrices as linears, as transformers 4 holds them."""
    return parts._replace(kinds=tuple(_with_linears(kind, model_type) for kind in parts.kinds))


def _with_linears(kind: LayerKind, model_type: str) -> LayerKind:
    return kind._replace(weights=tuple(one for weight in kind.weights for one in _unstacked(weight, model_type)))


def _unstacked(weight: Weight, model_type: str) -> tuple[Weight, ...]:
    if weight.part == "router" and len(weight.shape) == 2 and model_type in LINEAR_ROUTERS:
        return (weight._replace(role="linear", part="experts.router"),)
    if weight.role != "expert" or len(weight.shape) != 3:
        return (weight,)
    gate, up, down = names_of_experts(model_type)
    count, outputs, inputs = weight.shape
    fused = weight.part == "experts.gate_up_proj"
    shape, names = ((outputs // 2, inputs), (gate, up)) if fused else ((outputs, inputs), (down,))
    stem = weight.name.rsplit(".", 1)[0]
    return tuple(
        Weight(f"{stem}.{number}.{name}.weight", shape, "linear", weight.part, weight.full)
        for number in range(count)
        for name in names
    )


def names_of_experts(model_type: str) -> tuple[str, str, str]:
    """Gate, up and down projection of one expert."""
    return ("w1", "w3", "w2") if model_type in OLD_NAMES else ("gate_proj", "up_proj", "down_proj")
