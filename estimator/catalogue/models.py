"""From what a person calls a model to the model: names, sizes, quantised uploads, configs.

An exact key is tried first, then the key without separators, then a known name that the given one begins with, then
the most similar one. Whatever was assumed is said in ``note`` and ``note_zh``.
"""

import json
from functools import lru_cache
from typing import Any, NamedTuple

from estimator.architecture import Architecture
from estimator.catalogue import config, formats, rows, towers
from estimator.catalogue.names import Upload, normalised, split_upload
from estimator.catalogue.readings import STEPS, How, Reading, read, suggestions
from estimator.catalogue.rejected import is_pathlike, not_a_model, unknown_model
from estimator.inventory import inventory

TIED_WHEN_LOADED = ("tiiuae/falcon-7b", "tiiuae/falcon-40b", "tiiuae/falcon-180B")
"""Models whose files hold the head beside the embedding though their config ties them (FalconConfig's default).

Counted as published (``params_total``), estimated as loaded: peft prints 3,608,744,832 parameters of the 4-bit 7B.
"""


class ModelMatch(NamedTuple):
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


def find_model(name_or_config: str | dict[str, Any]) -> ModelMatch:
    """The model that a name, alias, bare size, hub id or ``config.json`` object means; else an ``EstimatorError``."""
    if isinstance(name_or_config, dict):
        return _from_config_text(json.dumps(name_or_config, default=str))
    if not isinstance(name_or_config, str):
        raise not_a_model(name_or_config)
    return _find(name_or_config[:1000])


@lru_cache(maxsize=2048)
def _find(name: str) -> ModelMatch:
    key = normalised(name)
    if not key or is_pathlike(key):
        raise unknown_model(name, ())
    reading = read(key)
    if reading is not None:
        return _match(reading, Upload(key))
    upload = split_upload(key)
    for attempt in STEPS:
        reading = attempt(upload.base)
        if reading is not None:
            return _match(reading, upload)
    raise unknown_model(name, tuple(suggestions(upload.base)))


def _match(reading: Reading, upload: Upload) -> ModelMatch:
    row = rows.model_row(reading.id)
    arch = rows.architecture(reading.id)
    if reading.id in TIED_WHEN_LOADED:
        arch = arch._replace(tied=True)
    notes = [reading.note] if reading.note else []
    notes_zh = [reading.note_zh] if reading.note_zh else []
    if upload.weight_format:
        notes.append(f"quantised upload: {upload.weight_format} ({upload.why})")
        notes_zh.append(f"量化版本：{upload.weight_format}" + (f"（{upload.why_zh}）" if upload.why_zh else ""))
    return ModelMatch(
        id=row.id,
        architecture=arch,
        params_total=row.params_total or total_parameters(arch),
        how=reading.how,
        weight_format=upload.weight_format,
        candidates=reading.candidates,
        did_you_mean=reading.did_you_mean,
        note="; ".join(notes),
        note_zh="；".join(notes_zh),
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


@lru_cache(maxsize=512)
def _from_config_text(text: str) -> ModelMatch:
    """Configs are read once: a search or a batch asks for the same one again and again."""
    return _from_config(json.loads(text))


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
        note_zh=arch.approximate_zh or "",
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
