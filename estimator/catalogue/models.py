"""From what a person calls a model to the model: names, sizes, quantised uploads, configs.

An exact key is tried first, then the key without separators, then a known name that the given one begins with, then
the most similar one. Whatever was assumed is said in ``note`` and ``note_zh``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from estimator.architecture import Architecture
from estimator.catalogue import aliases, config, formats, rows, towers
from estimator.catalogue.names import (
    Upload,
    billions,
    normalised,
    sees,
    sizes,
    split_upload,
    squeezed,
    tokens,
    without_variants,
)
from estimator.catalogue.rejected import is_pathlike, no_such_size, not_a_model, unknown_model
from estimator.inventory import inventory

How = Literal["exact", "squeezed", "fuzzy", "ambiguous", "bare size", "config"]

SIMILAR = 88.0
"""Similarity (0 to 100, rapidfuzz's ratio) from which a misspelled name is taken for the known one."""


@dataclass(frozen=True, slots=True)
class ModelMatch:
    """The model that a name means, how it was found, and what had to be assumed (``note``, ``note_zh``)."""

    id: str
    architecture: Architecture
    params_total: int
    how: How
    weight_format: str | None = None
    candidates: tuple[str, ...] = ()
    did_you_mean: tuple[str, ...] = ()
    note: str = ""
    note_zh: str = ""
    confidence: str = ""
    params_check: str = ""
    default_dtype: str | None = None
    family: str = ""
    kind: str = "decoder"


@dataclass(frozen=True, slots=True)
class _Reading:
    """A catalogue id and how a name led to it."""

    id: str
    how: How
    candidates: tuple[str, ...] = ()
    did_you_mean: tuple[str, ...] = ()
    note: str = ""
    note_zh: str = ""


def find_model(name_or_config: str | dict[str, Any]) -> ModelMatch:
    """The model that a name, alias, bare size, hub id or ``config.json`` object means; else an ``EstimatorError``."""
    if isinstance(name_or_config, dict):
        return _from_config(name_or_config)
    if not isinstance(name_or_config, str):
        raise not_a_model(name_or_config)
    return _find(name_or_config[:1000])


@lru_cache(maxsize=2048)
def _find(name: str) -> ModelMatch:
    key = normalised(name)
    if not key or is_pathlike(key):
        raise unknown_model(name, ())
    reading = _read(key)
    if reading is not None:
        return _match(reading, Upload(key))
    upload = split_upload(key)
    for attempt in (_read, _variant, _family_and_size, _family, _begins_with, _similar):
        reading = attempt(upload.base)
        if reading is not None:
            return _match(reading, upload)
    raise unknown_model(name, tuple(suggestions(upload.base)))


def _read(key: str) -> _Reading | None:
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


def _known(key: str, known: aliases.Known, how: How) -> _Reading:
    if known.type == "size":
        return _bare_size(key)
    if not known.ambiguous:
        return _Reading(known.id, how)
    candidates = known.candidates or _kin(known.id)
    others = tuple(other for other in candidates if other != known.id)
    listed = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    return _Reading(
        known.id,
        "ambiguous",
        candidates=candidates,
        note=f'"{key}" names several models; took {known.id} ({known.reason})' + (f"; others: {listed}" if others else ""),
        note_zh=f"“{key}”对应多个模型,取 {known.id}" + (f";其他:{'、'.join(others[:5])}" if others else ""),
    )


def _kin(model_id: str) -> tuple[str, ...]:
    """The models of the same family."""
    families = rows.families()
    return tuple(other for other, family in families.items() if family == families[model_id])


def _bare_size(key: str) -> _Reading:
    """A size without a name: its stand-in, which the note says; a size that has none is refused with its neighbours."""
    compact = key.replace(" ", "")
    known = aliases.exact(compact) or aliases.exact(_canonical_size(compact))
    if known is None:
        raise no_such_size(key, _nearest_sizes(billions(key) or 0.0))
    total = rows.model_row(known.id).params_total or 0
    return _Reading(
        known.id,
        "bare size",
        candidates=(known.id, *known.candidates),
        note=f'{known.id} ({total / 1e9:.3g} B parameters) stands in for "{key}"',
        note_zh=f"以 {known.id}(参数 {total / 1e9:.3g} B)代表“{key}”",
    )


def _canonical_size(key: str) -> str:
    """``500m`` as ``0.5b`` and ``7.0b`` as ``7b``."""
    value = billions(key) or 0.0
    return f"{value:g}b" if value >= 0.1 else f"{value * 1e3:g}m"


def _nearest_sizes(value: float) -> list[str]:
    known = sorted((billions(size) or 0.0, size) for size in aliases.sizes() if billions(size) is not None)
    below = [size for number, size in known if number <= value][-2:]
    return below + [size for number, size in known if number > value][:2]


def _variant(key: str) -> _Reading | None:
    """A chat or instruct version that is not listed by itself: the same architecture as its base."""
    shorter = without_variants(key)
    return _read(shorter) if shorter != key else None


def _family_and_size(key: str) -> _Reading | None:
    """A family's name with a size (``bloom 7b``): the member of about that size."""
    stated = [size for size in sizes(key) if billions(size)]
    if len(stated) != 1:
        return None
    wanted = billions(stated[0]) or 0.0
    members = _members(squeezed(key.replace(stated[0], " ").strip(" -_:/")))
    ratios = sorted((abs(total / 1e9 / wanted - 1.0), model_id) for model_id, total in members)
    if not ratios or ratios[0][0] > ABOUT:
        return None
    found = ratios[0][1]
    return _Reading(found, "fuzzy", note=f'read "{key}" as {found}', note_zh=f"将“{key}”理解为 {found}")


ABOUT = 0.12
"""How far a model may be from the size in its name (Llama "33B" has 32.5 billion, Gemma "7b" 8.5)."""


def _members(family: str) -> list[tuple[str, int]]:
    """Ids and totals of the models of a family, by the family's name or an alias that chooses within it."""
    known = aliases.squeezed_key(family)
    names = {family}
    ids: set[str] = set()
    if known is not None and known.ambiguous:
        names.add(squeezed(rows.model_row(known.id).family.lower()))
        ids.update(known.candidates)
    ids.update(model_id for model_id, name in rows.families().items() if squeezed(name.lower()) in names)
    found = (rows.model_row(model_id) for model_id in rows.model_ids() if model_id in ids)
    return [(row.id, row.params_total) for row in found if row.params_total]


def _family(key: str) -> _Reading | None:
    """A family's name alone: its member nearest to seven billion parameters, which the note says."""
    members = _members(squeezed(key))
    if not members:
        return None
    found = min(members, key=lambda member: abs(member[1] / 7e9 - 1.0))[0]
    known = aliases.Known(found, "family", tuple(model_id for model_id, _total in members), "nearest to 7 B")
    return _known(key, known, "ambiguous")


def _begins_with(key: str) -> _Reading | None:
    """A fine-tune that is named after its base: the longest known name that the given one begins with."""
    name = key.split("/", 1)[1] if key.count("/") == 1 else key
    parts = tokens(name)
    for length in range(len(parts) - 1, 0, -1):
        start = "".join(parts[:length])
        known = aliases.squeezed_key(start)
        if known is None or known.type == "size" or known.ambiguous:
            continue
        rest = "-".join(parts[length:])
        if sees(rest) or not sizes("-".join(parts)) <= _sizes_of(start, known):
            continue
        return _Reading(
            known.id,
            "fuzzy",
            did_you_mean=(known.id,),
            note=f'"{name}" is not in the catalogue; counted as {known.id}, whose name it begins with',
            note_zh=f"目录中没有“{name}”,按名称开头对应的 {known.id} 计算",
        )
    return None


def _sizes_of(start: str, known: aliases.Known) -> set[str]:
    return sizes(start) | {size for size in sizes(known.id.lower()) if size in start}


def _similar(key: str) -> _Reading | None:
    """A misspelled name: the most similar known one that states the same sizes and numbers."""
    wanted = squeezed(key)
    for candidate, score in _closest(wanted):
        known = aliases.squeezed_key(candidate)
        if score < SIMILAR or known is None or known.type == "size" or _digits(candidate) != _digits(wanted):
            continue
        if sees(key) and not sees(candidate):
            continue
        return _Reading(
            known.id,
            "fuzzy",
            did_you_mean=(known.id,),
            note=f'"{key}" is not a known name; did you mean {known.id}? Counted as that',
            note_zh=f"没有名为“{key}”的模型;您是指 {known.id} 吗?已按它计算",
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


def _match(reading: _Reading, upload: Upload) -> ModelMatch:
    row = rows.model_row(reading.id)
    arch = rows.architecture(reading.id)
    notes = [reading.note] if reading.note else []
    notes_zh = [reading.note_zh] if reading.note_zh else []
    if upload.weight_format:
        notes.append(f"quantised upload: {upload.weight_format} ({upload.why})")
        notes_zh.append(f"量化版本:{upload.weight_format}")
    return ModelMatch(
        id=row.id,
        architecture=arch,
        params_total=row.params_total or total_parameters(arch),
        how=reading.how,
        weight_format=upload.weight_format,
        candidates=reading.candidates,
        did_you_mean=reading.did_you_mean,
        note="; ".join(notes),
        note_zh=";".join(notes_zh),
        confidence=row.confidence,
        params_check=row.params_check,
        default_dtype=row.default_dtype,
        family=row.family,
        kind=row.kind,
    )


def total_parameters(arch: Architecture) -> int:
    """Parameters of the language model and, where there is one, of the image tower and projector."""
    tower = arch.vision.params + arch.vision.projector_params if arch.vision else 0
    return inventory(arch).numel + tower


def _from_config(given: dict[str, Any]) -> ModelMatch:
    arch = towers.with_tower(config.read(given), given)
    total = total_parameters(arch)
    name = given.get("_name_or_path")
    return ModelMatch(
        id=name if isinstance(name, str) and name else f"{arch.model_type} config",
        architecture=arch,
        params_total=total,
        how="config",
        weight_format=formats.stated_format(given),
        note=arch.approximate or "",
        confidence="C" if arch.approximate else "B",
        params_check="counted from the config",
        default_dtype=arch.default_dtype,
        kind="vlm" if arch.vision else arch.kind,
    )


def model_names(prefix: str, limit: int = 25) -> list[str]:
    """Hub ids that begin with ``prefix``, then those that contain it, for autocompletion."""
    wanted = normalised(prefix)
    ids = rows.model_ids()
    short = [(name.lower(), name.split("/", 1)[-1].lower(), name) for name in ids]
    first = [name for full, bare, name in short if full.startswith(wanted) or bare.startswith(wanted)]
    inside = [name for full, _bare, name in short if wanted in full]
    return list(dict.fromkeys(first + inside))[: max(limit, 0)]
