"""What a tower and its projector hold between steps, what of them trains, and the dimensions of a row's images."""

from collections.abc import Iterator

from estimator.architecture import Architecture, Inventory, Weight
from estimator.catalogue.formats import weight_format
from estimator.errors import EstimatorError
from estimator.schema import Lengths, Run
from estimator.step.program import rounded
from estimator.step.regime import Regime
from estimator.step.tape import FULL
from estimator.step.towers import tower_regime
from estimator.trainables import Group, Trainable
from estimator.vision.images import Seen, seen
from estimator.vision.parts import tower_parts
from estimator.vision.tower import TRACED, tower_of

CROSS = ("mllama",)
"""Families whose images do not become tokens of the row; their tower is held, its work is not described."""
MASKED = ("gemma3", "paligemma")
"""Families whose images are attended in both directions: a dense mask for every layer."""


def tower_mode(run: Run, arch: Architecture) -> str:
    """Whether rows carry images and what becomes of the tower: frozen | trained, "" without images."""
    if run.vision is None or arch.vision is None or arch.vision.family in CROSS or tower_of(arch) is None:
        return ""
    return run.vision.tower


def near(run: Run, arch: Architecture) -> bool:
    """Whether the tower's work (or its lack of description) leaves the estimate near the real step."""
    if run.vision is None or arch.vision is None:
        return False
    tower = tower_of(arch)
    return tower is None or tower.form not in TRACED or not tower_mode(run, arch)


def image_of(run: Run, arch: Architecture) -> tuple[int, int, int, int] | tuple[()]:
    """Tiles of a row, patches of a tile, class tokens, features of a row; () without images."""
    found = seen_by(run, arch)
    tower = tower_of(arch)
    if found is None or tower is None or run.vision is None:
        return ()
    images = run.vision.images
    return found.tiles * images, found.patches, tower.classes, found.features * images


def seen_by(run: Run, arch: Architecture) -> Seen | None:
    """What one image becomes; None where rows carry none."""
    tower = tower_of(arch)
    if run.vision is None or tower is None or not tower_mode(run, arch):
        return None
    stated = (run.details or {}).get("image_tokens")
    return seen(arch, tower, run.vision.width, run.vision.height, stated if isinstance(stated, int) else None)


def check_images(run: Run, arch: Architecture) -> None:
    """Raise where a row's images do not fit into it, or the model sees none."""
    if run.vision is None:
        return
    if arch.vision is None:
        raise EstimatorError(
            "vision is given, but this model has no image tower; name a vision-language model or leave vision out",
            "给出了 vision，但该模型没有视觉塔；请换用视觉语言模型，或去掉 vision",
            "vision",
        )
    found = seen_by(run, arch)
    length = run.seq_len if run.task == "train" else run.context_len
    row = length.max if isinstance(length, Lengths) else int(length or 0)
    if found is None or found.features * run.vision.images < row:
        return
    tokens = found.features * run.vision.images
    raise EstimatorError(
        f"the row's images are {tokens:,} tokens and the row has {row:,}; give a longer row or smaller images",
        f"每行图像共 {tokens:,} 个 token，而行长只有 {row:,}；请加长行或缩小图像",
        "vision",
    )


def tower_bytes(arch: Architecture, regime: Regime) -> int:
    """Bytes of tower and projector on the card."""
    parts, projector = tower_parts(arch)
    return sum(times * _bytes(weight, regime) for weight, times in _all(parts, projector))


def _bytes(weight: Weight, regime: Regime) -> int:
    packed = tower_regime(regime).quantised
    if packed and weight.role == "linear":
        return sum(map(rounded, weight_format(packed).blocks(weight.shape, False)))
    return rounded(weight.numel * (FULL if regime.kbit else regime.itemsize))


def _all(parts: Inventory, projector: tuple[Weight, ...]) -> Iterator[tuple[Weight, int]]:
    for weight in (*parts.stem, *parts.top, *projector):
        yield weight, 1
    for index in set(parts.layers):
        for weight in parts.kinds[index].weights:
            yield weight, parts.layers.count(index)


def tower_trainables(arch: Architecture, regime: Regime) -> tuple[Group, ...]:
    """What trains of tower and projector, as groups in the order of the model's parameters."""
    tower = tower_of(arch)
    if tower is None or not regime.tower or regime.trainable != "all":
        return ()
    parts, projector = tower_parts(arch)
    groups: list[Group] = []
    if regime.tower == "trained":
        groups.append((1, _trained(parts.stem, regime)))
        groups.append((tower.layers - tower.idle, _trained(parts.kinds[0].weights, regime)))
        groups.append((1, () if tower.idle else _trained(parts.top, regime)))
    groups.append((1, _trained(projector, regime)))
    return tuple(group for group in groups if group[1])


def _trained(weights: tuple[Weight, ...], regime: Regime) -> tuple[Trainable, ...]:
    return tuple(
        Trainable(weight.shape, regime.itemsize, 1, len(weight.shape) > 1, False, weight.name) for weight in weights
    )
