"""How a name is read: the steps from an exact key to the most similar one, each with what it had to assume."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from estimator.catalogue import aliases, rows
from estimator.catalogue.names import SIZE_TOKEN, billions, sees, sizes, squeezed, tokens, without_variants
from estimator.catalogue.rejected import no_such_size

How = Literal["exact", "squeezed", "fuzzy", "ambiguous", "bare size", "config"]

SIMILAR = 88.0
"""Similarity (0 to 100, rapidfuzz's ratio) from which a misspelled name is taken for the known one."""


class Reading(NamedTuple):
    """A catalogue id and how a name led to it."""

    id: str
    how: How
    candidates: tuple[str, ...] = ()
    did_you_mean: tuple[str, ...] = ()
    note: str = ""
    note_zh: str = ""


def read(key: str) -> Reading | None:
    """A key that is in the tables, with its separators or without, with its organisation or without."""
    if billions(key) is not None:
        return _bare_size(key.removeprefix("model:").strip())
    spellings = [key, key.split("/", 1)[1]] if key.count("/") == 1 else [key]
    for spelling in spellings:
        if (known := aliases.exact(spelling)) is not None:
            return _known(spelling, known, "exact")
    for spelling in spellings:
        if (known := aliases.squeezed_key(squeezed(spelling))) is not None:
            return _known(spelling, known, "squeezed")
    return None


def _known(key: str, known: aliases.Known, how: How) -> Reading:
    if known.type == "size":
        return _bare_size(key)
    if not known.ambiguous:
        return Reading(known.id, how)
    candidates = known.candidates or _kin(known.id)
    others = tuple(other for other in candidates if other != known.id)
    listed = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    return Reading(
        known.id,
        "ambiguous",
        candidates=candidates,
        note=f'"{key}" names several models; took {known.id} ({known.reason})'
        + (f"; others: {listed}" if others else ""),
        note_zh=f"“{key}”对应多个模型，取 {known.id}" + (f"；其他：{'、'.join(others[:5])}" if others else ""),
    )


def _kin(model_id: str) -> tuple[str, ...]:
    """The models of the same family."""
    families = rows.families()
    return tuple(other for other, family in families.items() if family == families[model_id])


def _bare_size(key: str) -> Reading:
    """A size without a name: its stand-in, which the note says; a size that has none is refused with its neighbours."""
    compact = key.replace(" ", "")
    known = aliases.exact(compact) or aliases.exact(_canonical_size(compact))
    if known is None:
        raise no_such_size(key, _nearest_sizes(billions(key) or 0.0))
    total = rows.model_row(known.id).params_total or 0
    return Reading(
        known.id,
        "bare size",
        candidates=(known.id, *known.candidates),
        note=f'{known.id} ({total / 1e9:.3g} B parameters) stands in for "{key}"',
        note_zh=f"以 {known.id}（参数 {total / 1e9:.3g} B）代表“{key}”",
    )


def _canonical_size(key: str) -> str:
    """``500m`` as ``0.5b`` and ``7.0b`` as ``7b``."""
    value = billions(key) or 0.0
    return f"{value:g}b" if value >= 0.1 else f"{value * 1e3:g}m"


def _nearest_sizes(value: float) -> list[str]:
    known = sorted((billions(size) or 0.0, size) for size in aliases.sizes() if billions(size) is not None)
    below = [size for number, size in known if number <= value][-2:]
    return below + [size for number, size in known if number > value][:2]


def variant(key: str) -> Reading | None:
    """A chat or instruct version that is not listed by itself: the same architecture as its base."""
    shorter = without_variants(key)
    return read(shorter) if shorter != key else None


def family_and_size(key: str) -> Reading | None:
    """A family's name with a size (``bloom 7b``): the member of about that size."""
    stated = [size for size in sizes(key) if billions(size)]
    if len(stated) != 1:
        return None
    wanted = billions(stated[0]) or 0.0
    members = _members(squeezed(key.replace(stated[0], " ").strip(" -_:/")))
    sized = sorted((abs(total / 1e9 / wanted - 1.0), model_id) for model_id, total in members)
    near = [(distance, model_id) for distance, model_id in sized if distance <= ABOUT]
    if not near:
        return None
    found = _usual_of(stated[0], near)
    others = [model_id for distance, model_id in near if distance - near[0][0] <= SAME_SIZE and model_id != found][:4]
    return Reading(
        found,
        "fuzzy",
        candidates=(found, *others) if others else (),
        note=f'read "{key}" as {found}' + (f"; of that size there are also {', '.join(others)}" if others else ""),
        note_zh=f"将“{key}”理解为 {found}" + (f"；同规模的还有 {'、'.join(others)}" if others else ""),
    )


ABOUT = 0.12
"""How far a model may be from the size in its name (Llama "33B" has 32.5 billion, Gemma "7b" 8.5)."""
SAME_SIZE = 0.02
"""Models this close to each other in size are sold under one size: the newest is meant."""


def _usual_of(size: str, near: list[tuple[float, str]]) -> str:
    """The one that stands in for the size in general, else the newest of those nearest to it."""
    usual = aliases.exact(_canonical_size(size))
    if usual is not None and any(model_id == usual.id for _distance, model_id in near):
        return usual.id
    same = [model_id for distance, model_id in near if distance - near[0][0] <= SAME_SIZE]
    return max(same, key=_version)


def _version(model_id: str) -> float:
    """The version that a hub id states: 3.1 of ``Llama-3.1-70B``; 0 where it states none."""
    bare = SIZE_TOKEN.sub(" ", model_id.rsplit("/", 1)[-1].lower().replace("_", "-"))
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", bare)]
    return next((number for number in numbers if number < 100), 0.0)


SHORTEST_FAMILY = 4
"""Letters from which on a model belongs to the family that its name begins with."""


def _members(family: str) -> list[tuple[str, int]]:
    """Ids and totals of the models of a family, by the family's name or an alias that chooses within it."""
    known = aliases.squeezed_key(family)
    names = {family}
    ids: set[str] = set()
    if known is not None and known.ambiguous:
        names.add(squeezed(rows.model_row(known.id).family.lower()))
        ids.update(known.candidates, aliases.kin(known.id))
    for model_id, name in rows.families().items():
        own = squeezed(model_id.rsplit("/", 1)[-1].lower())
        if squeezed(name.lower()) in names or (len(family) >= SHORTEST_FAMILY and own.startswith(family)):
            ids.add(model_id)
    found = (rows.model_row(model_id) for model_id in rows.model_ids() if model_id in ids)
    return [(row.id, row.params_total) for row in found if row.params_total]


def family(key: str) -> Reading | None:
    """A family's name alone: its member nearest to seven billion parameters, which the note says."""
    members = _members(squeezed(key))
    if not members:
        return None
    found = min(members, key=lambda member: abs(member[1] / 7e9 - 1.0))[0]
    known = aliases.Known(found, "family", tuple(model_id for model_id, _total in members), "nearest to 7 B")
    return _known(key, known, "ambiguous")


SIZE_WORDS = {"tiny", "mini", "small", "medium", "large", "huge", "xl", "xxl"}
"""Words that say another size where no number does: ModernBERT-large is no fine-tune of ModernBERT-base."""


def begins_with(key: str) -> Reading | None:
    """A fine-tune that is named after its base: the longest known name that the given one begins with."""
    name = key.split("/", 1)[1] if key.count("/") == 1 else key
    parts = tokens(name)
    for length in range(len(parts) - 1, 0, -1):
        start = "".join(parts[:length])
        known = aliases.squeezed_key(start)
        if known is None or known.type == "size" or known.ambiguous:
            continue
        rest = "-".join(parts[length:])
        resized = not sizes("-".join(parts[:length])) and SIZE_WORDS & set(parts[length:])
        if sees(rest) or resized or not sizes("-".join(parts)) <= _sizes_of(start, known):
            continue
        return Reading(
            known.id,
            "fuzzy",
            did_you_mean=(known.id,),
            note=f'"{name}" is not in the catalogue; counted as {known.id}, whose name it begins with',
            note_zh=f"目录中没有“{name}”，按名称开头对应的 {known.id} 计算",
        )
    return None


def _sizes_of(start: str, known: aliases.Known) -> set[str]:
    return sizes(start) | {size for size in sizes(known.id.lower()) if size in start}


def similar(key: str) -> Reading | None:
    """A misspelled name: the most similar known one that states the same sizes and numbers."""
    wanted = squeezed(key)
    for candidate, score in _closest(wanted):
        known = aliases.squeezed_key(candidate)
        if score < SIMILAR or known is None or known.type == "size" or _digits(candidate) != _digits(wanted):
            continue
        if (sees(key) and not sees(candidate)) or any(word not in candidate for word in SIZE_WORDS & set(tokens(key))):
            continue
        return Reading(
            known.id,
            "fuzzy",
            did_you_mean=(known.id,),
            note=f'"{key}" is not a known name; did you mean {known.id}? Counted as that',
            note_zh=f"没有名为“{key}”的模型；您是指 {known.id} 吗？已按它计算",
        )
    return None


def _digits(key: str) -> str:
    return "".join(char for char in key if char.isdigit() or char == ".")


def _closest(wanted: str) -> list[tuple[str, float]]:
    # Imported late: most names are exact, and the import costs more than such a look-up.
    from rapidfuzz import fuzz, process

    found = process.extract(wanted, aliases.all_squeezed(), scorer=fuzz.ratio, limit=8, score_cutoff=60.0)
    return [(candidate, score) for candidate, score, _index in found]


def suggestions(key: str) -> Iterator[str]:
    """Up to five different model ids whose names resemble ``key``."""
    found = (aliases.squeezed_key(candidate) for candidate, _score in _closest(squeezed(key)))
    ids = dict.fromkeys(known.id for known in found if known is not None)
    yield from list(ids)[:5]


STEPS = (read, variant, family_and_size, family, begins_with, similar)
"""The readings of a name that is not in the tables as it stands, the surest first."""
