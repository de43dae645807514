"""The model table: one line a model, read when that model is asked for.

``models.csv`` holds the facts that decide memory, ``model_sources.csv`` where each of them comes from, with the codes
of ``sources.csv``.
"""

import csv
import json
import re
from functools import cache
from typing import Any, NamedTuple

from estimator.architecture import Architecture, Vision
from estimator.catalogue import config
from estimator.datafiles import read_text
from estimator.errors import EstimatorError

COLUMNS = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "ffn": "intermediate_size",
    "vocab": "vocab_size",
    "positions": "max_position_embeddings",
}
"""Columns of ``models.csv`` and the config keys they stand for."""


class ModelRow(NamedTuple):
    """A model of the catalogue.

    ``params_check`` says how its count was confirmed; ``confidence`` runs from A (exact against a published count) to
    D (incomplete).
    """

    id: str
    family: str
    kind: str
    config: dict[str, Any]
    params_total: int | None
    params_check: str
    confidence: str
    default_dtype: str | None
    release: str
    licence: str
    vision: dict[str, Any] | None


@cache
def _lines() -> dict[str, str]:
    """Hub id to its line, unparsed: reading all 506 would cost more than a look-up may take."""
    body = read_text("models.csv").splitlines()[1:]
    return {line.split(",", 1)[0]: line for line in body}


@cache
def _header(name: str) -> list[str]:
    return read_text(name).split("\n", 1)[0].split(",")


def model_ids() -> tuple[str, ...]:
    """Every hub id of the catalogue."""
    return tuple(_lines())


@cache
def families() -> dict[str, str]:
    """Hub id to family; the family column is never quoted."""
    return {model_id: line.split(",", 2)[1] for model_id, line in _lines().items()}


@cache
def model_row(model_id: str) -> ModelRow:
    """The facts of one model."""
    fields = next(csv.reader([_lines()[model_id]]))
    row = dict(zip(_header("models.csv"), fields, strict=True))
    return ModelRow(
        id=row["id"],
        family=row["family"],
        kind=row["kind"],
        config=_config(row),
        params_total=int(row["params_total"]) if row["params_total"] else None,
        params_check=row["params_check"],
        confidence=row["confidence"],
        default_dtype=row["dtype"] or None,
        release=row["release"],
        licence=row["licence"],
        vision=json.loads(row["vision"]) if row["vision"] else None,
    )


def _config(row: dict[str, str]) -> dict[str, Any]:
    """The row as a Hugging Face config."""
    stated: dict[str, Any] = json.loads(row["config"]) if row["config"] else {}
    if isinstance(stated.get("layer_types"), str):
        stated["layer_types"] = _layer_types(stated["layer_types"], int(row["layers"]))
    if row["tied"]:
        stated["tie_word_embeddings"] = row["tied"] == "yes"
    dims = {key: int(row[column]) for column, key in COLUMNS.items() if row[column]}
    return {"model_type": row["model_type"], **dims, **stated}


def _layer_types(pattern: str, layers: int) -> list[str]:
    """``5xlocal 1xglobal …`` as one word a layer; a single word stands for all layers."""
    runs = re.findall(r"(\d+)x(\w+)", pattern)
    return [word for count, word in runs for _ in range(int(count))] if runs else [pattern] * layers


@cache
def architecture(model_id: str) -> Architecture:
    """The architecture of a model of the catalogue."""
    row = model_row(model_id)
    try:
        arch = config.read(row.config)
    except EstimatorError as error:
        raise _incomplete(model_id) from error
    extra = arch.extra
    if "unmodelled" in row.config:
        extra = (*extra, ("unmodelled", row.config["unmodelled"]))
    return _approximate(arch, row)._replace(extra=extra, vision=_vision(row))


def _approximate(arch: Architecture, row: ModelRow) -> Architecture:
    count = row.config.get("unmodelled")
    if not count:
        return arch
    return arch._replace(
        approximate=f"{count:,} parameters of {row.id} are in blocks that are not described here; "
        "they are counted as weights",
        approximate_zh=f"{row.id} 有 {count:,} 个参数所在的模块未收录，仅计入权重",
    )


def _incomplete(model_id: str) -> EstimatorError:
    return EstimatorError(
        f"{model_id} is known, but not the sizes of its layers; paste its config.json",
        f"已知模型 {model_id}，但缺少各层尺寸；请粘贴它的 config.json",
        field="model",
    )


def _vision(row: ModelRow) -> Vision | None:
    tower = row.vision
    if tower is None:
        return None
    return Vision(
        model_type=str(tower.get("tower", "")),
        hidden=tower.get("hidden", 0),
        layers=tower.get("layers", 0),
        heads=tower.get("heads", 0),
        intermediate=tower.get("ffn", 0),
        patch=tower.get("patch", 0),
        image_size=tower.get("image", 0),
        params=tower["params"],
        projector_params=tower["projector"],
        family=str(row.config.get("model_type", "")),
    )


def sources(model_id: str) -> dict[str, str]:
    """Where a model's facts come from: each field of ``model_sources.csv``, source codes spelled out."""
    names = dict(csv.reader(read_text("sources.csv").splitlines()[1:]))
    for fields in csv.reader(read_text("model_sources.csv").splitlines()):
        if fields[0] == model_id:
            row = dict(zip(_header("model_sources.csv"), fields, strict=True))
            return {key: _spelled(value, names) for key, value in row.items() if value and key != "id"}
    return {}


def _spelled(value: str, names: dict[str, str]) -> str:
    if value in names:
        return names[value]
    return re.sub(r"\b(s\d+):", lambda found: f"{names.get(found[1], found[1])}: ", value)
