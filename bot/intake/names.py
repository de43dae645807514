"""DEV SHIM: replaced when the catalogue lands."""

import csv
import json
import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class KnownModel:
    hub_id: str
    params_b: float | None
    family: bool
    size: bool


@dataclass(frozen=True, slots=True)
class KnownCard:
    name: str
    memory_gb: float


def squeeze(text: str) -> str:
    return re.sub(r"[\s_/-]", "", text.lower())


@cache
def _models() -> dict:
    params = {}
    for line in open("/work/shared/data/models.jsonl"):
        row = json.loads(line)
        params[row["id"]] = (row["params_total"] or 0) / 1e9 or None
    out = {}
    for row in csv.DictReader(open("/work/shared/data/aliases.csv")):
        out[squeeze(row["alias"])] = KnownModel(
            row["canonical_id"],
            params.get(row["canonical_id"]),
            "family" in row["type"] or "family" in row["reason"],
            row["type"] == "bare size",
        )
    return out


@cache
def _cards() -> dict:
    out = {}
    for row in csv.DictReader(open("/work/shared/data/gpus.csv")):
        try:
            mem = float(row["memory_gb_marketed"])
        except ValueError:
            mem = float(re.match(r"\d+", row["memory_gb_marketed"])[0])
        for a in [row["name"], *row["aliases"].split("|")]:
            if a:
                out.setdefault(squeeze(a), KnownCard(row["name"], mem))
    return out


def model_named(text: str) -> KnownModel | None:
    return _models().get(squeeze(text))


def card_named(text: str) -> KnownCard | None:
    key = squeeze(text).replace("nvidia", "").replace("geforce", "")
    for k in (key, key.replace("rtx", ""), key.replace("gtx", ""), re.sub(r"g$", "gb", key), re.sub(r"gb$", "g", key)):
        if k in _cards():
            return _cards()[k]
    return None
