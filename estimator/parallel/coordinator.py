"""Which parameters ZeRO-3 keeps gathered, module by module.

deepspeed 0.19.8, runtime/zero/partitioned_param_coordinator.py, with the trace of an earlier step: parameters of the
module at work are gathered, those of the next ones ahead up to a bucket, and let go after use unless they are used
again within ``stage3_max_reuse_distance`` elements.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from estimator.architecture import Inventory, Weight
from estimator.parallel.layout import Layout


class Use(NamedTuple):
    """A module that runs: the place in the model (layer number, -1 stem, the number of layers: top), its parameter."""

    place: int
    backward: bool
    param: int
    numel: int


class Level(NamedTuple):
    """Elements gathered around a place: taken on top of what was there, and given back behind it."""

    taken: int
    given: int


Names = list[tuple[str, int]]
"""Modules of a layer in the order in which they run, with the elements of what they gather (0: nothing)."""


def levels_of(parts: Inventory, layout: Layout, tied: bool, again: bool) -> dict[tuple[int, bool], Level]:
    """What is gathered at every place of a step, whatever the count of cards."""
    names = ("persistence", "max_live", "prefetch_bucket", "reuse")
    return _levels_of(parts, Layout(**{name: getattr(layout, name) for name in names}), tied, again)


@lru_cache(maxsize=256)
def _levels_of(parts: Inventory, limits: Layout, tied: bool, again: bool) -> dict[tuple[int, bool], Level]:
    return levels(uses_of(parts, limits, tied, again), limits)


def uses_of(parts: Inventory, layout: Layout, tied: bool, again: bool) -> list[Use]:
    """The modules of a step in order; ``again``: layers run a second time in their backward (checkpointing)."""
    numbers: dict[tuple[int, str], int] = {}

    def uses(place: int, names: Names, backward: bool) -> list[Use]:
        return [Use(place, backward, numbers.setdefault((place, name), len(numbers)), numel) for name, numel in names]

    stem = [("model", 0), ("inner", 0), *_gathered(parts.stem, layout), ("rotary", 0)]
    layers = [_layer(parts.kinds[kind].weights, layout) for kind in parts.layers]
    last = len(layers)
    ends = _gathered(parts.top, layout)
    head = [use._replace(place=last) for use in uses(-1, stem[2:3], False)] if tied else uses(last, ends, False)
    head = [*uses(last, [("norm", 0)], False), *head]
    forward = uses(-1, stem, False) + [use for i, names in enumerate(layers) for use in uses(i, names, False)]
    back = [*uses(last, [("model", 0)], True), *(use._replace(backward=True) for use in reversed(head))]
    for index in reversed(range(last)):
        names = layers[index]
        back += uses(index, names[:1], True)
        back += uses(index, names if again else [], True)
        back += uses(index, names[:0:-1], True)
    return [*forward, *head, *back, *uses(-1, stem[2:3], True)]


def _gathered(weights: Sequence[Weight], layout: Layout) -> Names:
    """Parameters that do not stay whole."""
    return [(w.name, w.numel) for w in weights if w.role != "buffer" and w.numel > layout.persistence]


def _layer(weights: Sequence[Weight], layout: Layout) -> Names:
    """A layer's modules: also those without parameters of their own look ahead."""
    found: Names = [("layer", 0)]
    for weight in weights:
        if weight.role in ("buffer", "bias"):
            continue
        block = weight.name.split(".")[0]
        if weight.role != "norm" and (block, 0) not in found:
            found += [(f"{block} norm", 0), (block, 0)]
        if weight.numel > layout.persistence:
            found.append((weight.name, weight.numel))
        if weight.part == "gate_proj":
            found.append(("activation", 0))
    return found


def levels(uses: Sequence[Use], layout: Layout) -> dict[tuple[int, bool], Level]:
    """What is taken and given back at every place, forward and backward."""
    found: dict[tuple[int, bool], Level] = {}
    entry = most = live = 0
    place = (uses[0].place, uses[0].backward)
    for use, gathered, left in _run(uses, layout):
        here = (use.place, use.backward)
        if here != place:
            found[place] = Level(max(most, live) - entry, max(most, live) - live)
            place, entry, most = here, live, live
        most, live = max(most, gathered), left
    found[place] = Level(most - entry, most - live)
    return found


def _run(uses: Sequence[Use], layout: Layout) -> Iterable[tuple[Use, int, int]]:
    """Every module with the elements gathered while it runs and after it."""
    travelled = [0, *accumulate(use.numel for use in uses)]
    later = _next_uses(uses)
    available: dict[int, int] = {}
    scanned: dict[int, int] = {}
    live = queue = 0
    for step, use in enumerate(uses):
        if use.numel and use.param not in available:
            available[use.param] = use.numel
            live += use.numel
        queue = max(queue, step + 1)
        ahead = 0
        limit = min(layout.max_live - live, layout.prefetch_bucket)
        while queue < len(uses) and ahead < limit:
            coming = uses[queue]
            scanned[coming.param] = queue
            if coming.numel and coming.param not in available:
                available[coming.param] = coming.numel
                ahead += coming.numel
            queue += 1
        live += ahead
        gathered = live
        again = later[step]
        near = again is not None and again < bisect_right(travelled, travelled[step + 1] + layout.reuse - 1)
        if use.numel and not near and scanned.get(use.param, -1) <= step:
            live -= available.pop(use.param)
        yield use, gathered, live


def _next_uses(uses: Sequence[Use]) -> list[int | None]:
    """For every module the next one with the same parameter."""
    found: list[int | None] = [None] * len(uses)
    seen: dict[int, int] = {}
    for step in range(len(uses) - 1, -1, -1):
        found[step] = seen.get(uses[step].param)
        seen[uses[step].param] = step
    return found
