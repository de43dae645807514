"""Row counts beyond plain batch and length: chunks, images, an encoder's source, pairs of tokens."""

from typing import Any

from estimator.step.tape import Rows


def lengths(what: str, length: int, number: int) -> int:
    """Tokens padded to chunks of ``number``, how many chunks (``borders``: one more), so many more, at most."""
    if what in ("longer", "upto"):
        return length + number if what == "longer" else min(length, number)
    chunks = -(-length // number)
    counts = {"chunks": chunks, "borders": chunks + 1, "later": chunks - 1, "inner": max(chunks - 2, 0)}
    return counts.get(what, chunks * number)


def source_rows(rows: int, length: int, total: int, source: int) -> dict[Rows, int]:
    """Tokens that the encoder reads ("S", of one row "n") and what they make with those of the decoder."""
    return {
        "S": rows * source,
        "n": source,
        "t": total,
        "SS": rows * source * source,
        "TS": rows * length * source,
        "S128": rows * -(-source // 128) * 128,
        "S32": rows * -(-source // 32) * 32,
    }


def image_rows(rows: int, tiles: int, patches: int, classes: int, features: int) -> dict[Rows, int]:
    """Tiles, patches, tower tokens (of one tile: "v"), merged patches and features; see ``step.towers``."""
    count, tokens = rows * tiles, patches + classes
    return {
        "I": count,
        "P": count * patches,
        "V": count * tokens,
        "v": tokens,
        "M": count * patches // 4,
        "F": rows * features,
        "V128": count * -(-tokens // 128) * 128,
        "V32": count * -(-tokens // 32) * 32,
        "VV": count * tokens * tokens,
    }


def ranks(kind: tuple[Any, ...], length: int) -> int:
    """Tokens of a row dealt out to so many ranks, or half of them padded to the flash kernel's blocks."""
    return -(-length // int(kind[1])) if kind[0] == "share" else -(-length // 256) * 128


def by_keys(kind: tuple[Any, ...], known: dict[Rows, int]) -> int:
    """Queries by keys filled to a multiple of 8 or 16.

    As they are where they are one ("whole") or are none ("odd"), or padded where they are none ("to fill").
    """
    queries, keys, block = known[kind[1]], known[kind[2]], int(kind[3])
    if kind[0] == "filled":
        return queries * -(-keys // block) * block
    if (keys % block == 0) != (kind[0] == "whole"):
        return 0
    return queries * (keys if kind[0] in ("odd", "whole") else -(-keys // block) * block)


def some(kind: tuple[Any, ...], rows: int, sequences: int) -> int:
    """At most so many of the rows, those beyond so many, one more a sequence.

    Or, of so many choices a row, what is dealt out to one of so many.
    """
    if kind[0] == "one more":
        return rows + sequences
    if kind[0] == "beyond":
        return max(rows - int(kind[2]), 0)
    return min(rows, int(kind[2])) if kind[0] == "min" else -(-rows * int(kind[2]) // int(kind[3]))
