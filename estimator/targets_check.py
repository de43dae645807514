"""Adapter targets that a model does not have: an error that lists its linears, or a note where some are missing."""

from collections.abc import Iterable
from functools import lru_cache

from estimator.adapter_targets import moved
from estimator.architecture import Architecture
from estimator.errors import EstimatorError
from estimator.inventory import inventory
from estimator.schema import Run
from estimator.stack import linear_experts, names_of_experts
from estimator.step.adapters import targeted
from estimator.trainables import LINEAR_ROUTER

PRESETS = ("all-linear", "attention", "qv", "qkv")
"""Words for targets; anything else is the name of a module."""


def targets_of(run: Run) -> str | tuple[str, ...]:
    """The targets of a run: a preset, or the names of modules."""
    given = (run.adapter.targets if run.adapter else None) or "all-linear"
    if not isinstance(given, str):
        return tuple(given)
    return given if given in PRESETS else tuple(given.replace(",", " ").split())


@lru_cache(maxsize=256)
def linear_names(arch: Architecture) -> tuple[str, ...]:
    """Paths of the linears inside the layers, in order."""
    weights = (weight for kind in inventory(arch).kinds for weight in kind.weights if weight.role == "linear")
    names = (weight.name.removesuffix(".weight") for weight in weights if weight.name.endswith(".weight"))
    return tuple(dict.fromkeys(name for name in names if ".gate" not in name[-5:] or name.endswith(LINEAR_ROUTER)))


def unmatched(run: Run, arch: Architecture) -> tuple[str, ...]:
    """Targets that name no linear of the layers; raises when none does."""
    return _unmatched(targets_of(run), arch, run.framework, linear_experts(run, arch))


@lru_cache(maxsize=512)
def _unmatched(
    targets: str | tuple[str, ...], arch: Architecture, framework: str | None, linears: bool
) -> tuple[str, ...]:
    known = linear_names(arch)
    experts = (*names_of_experts(arch.model_type), "gate") if linears else ()
    also = {*experts, *_moved(framework, arch, targets)}
    wanted = (targets,) if isinstance(targets, str) else targets
    missing = tuple(one for one in wanted if one.rsplit(".", 1)[-1] not in also and not _matches(one, known))
    if len(missing) == len(wanted):
        raise _none(wanted, known, also, arch)
    return missing


def _moved(framework: str | None, arch: Architecture, targets: str | tuple[str, ...]) -> tuple[str, ...]:
    return moved(arch, targets, framework) if arch.experts is not None and isinstance(targets, tuple) else ()


def _matches(target: str, known: Iterable[str]) -> bool:
    asked = target if target in PRESETS else (target,)
    return any(targeted(asked, name) for name in known)


def _none(wanted: Iterable[str], known: Iterable[str], also: Iterable[str], arch: Architecture) -> EstimatorError:
    shown = ", ".join(one[:40] for one in wanted)[:120]
    names = sorted({name.rsplit(".", 1)[-1] for name in known} | set(also))
    return EstimatorError(
        f"adapter.targets {shown} name no linear of {arch.model_type}; its linears are {', '.join(names)}",
        f"adapter.targets {shown} 与 {arch.model_type} 的线性层都不匹配；可用：{'、'.join(names)}",
        "adapter.targets",
    )


def unmatched_note(missing: tuple[str, ...]) -> tuple[str, str]:
    """What to say about targets that are left out."""
    names = [one[:40] for one in missing]
    return (
        f"{', '.join(names)}: no linear of the layers has this name; counted without",
        f"{'、'.join(names)}：各层中没有同名的线性层，未计入",
    )
