"""How many tokens an image becomes: by the processors of transformers 5.24 and of the published models.

Sources: models/*/image_processing_*.py. Where published checkpoints override the class's limits of area they are as
recalled (Qwen2-VL and Qwen2.5-VL: min_pixels 3136, max_pixels 12845056; Qwen3-VL: 65536 and 16777216).
"""

from math import ceil, floor, sqrt
from typing import NamedTuple

from estimator.architecture import Architecture
from estimator.vision.tower import Tower


class Seen(NamedTuple):
    """One image of a row: ``tiles`` of ``patches`` in the tower, ``features`` tokens in the row."""

    tiles: int
    patches: int
    features: int


def seen(arch: Architecture, tower: Tower, width: int, height: int, tokens: int | None = None) -> Seen:
    """What the processor makes of an image of ``width`` x ``height`` pixels; ``tokens``: features where stated."""
    family = arch.vision.family if arch.vision else ""
    found = RULES.get(family, _fixed)(arch, tower, width, height)
    return found if tokens is None else found._replace(features=tokens)


def _side(arch: Architecture, tower: Tower) -> int:
    size = arch.vision.image_size if arch.vision else 0
    return max(size // tower.patch, 1)


def _fixed(arch: Architecture, tower: Tower, width: int, height: int) -> Seen:
    """Every image is brought to the tower's size."""
    del width, height
    patches = _side(arch, tower) ** 2
    return Seen(1, patches, patches)


def _gemma(arch: Architecture, tower: Tower, width: int, height: int) -> Seen:
    """Gemma 3: 4,096 patches averaged to 256 tokens; pan and scan is off by default."""
    fixed = _fixed(arch, tower, width, height)
    return fixed._replace(features=256)


SMART = {
    "qwen2_vl": (3136, 12_845_056),
    "qwen2_5_vl": (3136, 12_845_056),
    "glm4v": (12_544, 9_633_792),
    "glm4v_moe": (12_544, 9_633_792),
}
"""Pixels at the least and at the most; newer Qwen: 65,536 and 16,777,216."""


def _smart(arch: Architecture, tower: Tower, width: int, height: int) -> Seen:
    """Qwen's smart_resize: sides to multiples of two patches, the area between two limits."""
    family = arch.vision.family if arch.vision else ""
    low, high = SMART.get(family, (65_536, 16_777_216))
    factor = tower.patch * 2
    tall, wide = _multiple(height, factor), _multiple(width, factor)
    if tall * wide > high:
        scale = sqrt(height * width / high)
        tall, wide = _down(height / scale, factor), _down(width / scale, factor)
    elif tall * wide < low:
        scale = sqrt(low / (height * width))
        tall, wide = ceil(height * scale / factor) * factor, ceil(width * scale / factor) * factor
    patches = (tall // tower.patch) * (wide // tower.patch)
    return Seen(1, patches, patches // 4)


def _multiple(size: int, factor: int) -> int:
    return max(factor, round(size / factor) * factor)


def _down(size: float, factor: int) -> int:
    return max(factor, floor(size / factor) * factor)


PINPOINTS = ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008))
"""Height and width of LLaVA-NeXT's grids."""


def _anyres(arch: Architecture, tower: Tower, width: int, height: int) -> Seen:
    """LLaVA-NeXT: the whole image once, and tiles of the grid that keeps most of it; padding is cut out again."""
    size = arch.vision.image_size if arch.vision else 336
    tall, wide = max(PINPOINTS, key=lambda grid: _kept(grid, width, height))
    side = _side(arch, tower)
    tiles = (tall // size) * (wide // size)
    rows, columns = _unpadded(tall // size * side, wide // size * side, width, height)
    return Seen(1 + tiles, side**2, side**2 + rows * columns + rows)


def _kept(grid: tuple[int, int], width: int, height: int) -> tuple[int, int]:
    tall, wide = grid
    scale = min(wide / width, tall / height)
    effective = min(int(width * scale) * int(height * scale), width * height)
    return effective, effective - tall * wide


def _unpadded(rows: int, columns: int, width: int, height: int) -> tuple[int, int]:
    if width / height > columns / rows:
        inner = int(round(height * (columns / width), 7))
        return rows - 2 * ((rows - inner) // 2), columns
    inner = int(round(width * (rows / height), 7))
    return rows, columns - 2 * ((columns - inner) // 2)


def _dynamic(arch: Architecture, tower: Tower, width: int, height: int) -> Seen:
    """InternVL: up to 12 tiles of the aspect ratio that fits best, and a thumbnail; 256 tokens each."""
    size = arch.vision.image_size if arch.vision else 448
    grids = sorted({(c, r) for n in range(1, 13) for c in range(1, n + 1) for r in range(1, n + 1) if c * r <= 12},
                   key=lambda grid: grid[0] * grid[1])  # fmt: skip
    best, nearest = (1, 1), float("inf")
    for columns, rows in grids:
        off = abs(width / height - columns / rows)
        if off < nearest or (off == nearest and width * height > 0.5 * size**2 * columns * rows):
            best, nearest = (columns, rows), off
    tiles = best[0] * best[1]
    tiles += tiles > 1
    patches = _side(arch, tower) ** 2
    return Seen(tiles, patches, tiles * patches // 4)


def _pixtral(arch: Architecture, tower: Tower, width: int, height: int) -> Seen:
    """Mistral 3: at most 1,540 pixels a side, two by two patches merged, a token at the end of each row."""
    most = arch.vision.image_size if arch.vision else 1540
    ratio = max(height / most, width / most, 1.0)
    factor = tower.patch * 2
    rows, columns = ceil(height / ratio / factor), ceil(width / ratio / factor)
    return Seen(1, rows * columns * 4, rows * columns + rows)


RULES = {
    "gemma3": _gemma,
    "qwen2_vl": _smart,
    "qwen2_5_vl": _smart,
    "qwen3_vl": _smart,
    "qwen3_vl_moe": _smart,
    "qwen3_5": _smart,
    "qwen3_5_moe": _smart,
    "glm4v": _smart,
    "glm4v_moe": _smart,
    "llava_next": _anyres,
    "internvl": _dynamic,
    "mistral3": _pixtral,
}
