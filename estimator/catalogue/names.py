"""What a model name says besides the model: its keys, its size, its quantisation."""

import csv
import re
import unicodedata
from functools import cache
from typing import NamedTuple

from estimator.datafiles import read_text

MAX_NAME = 200
"""Characters; the longest hub id in the tables has 74."""

SIZE = re.compile(r"(?:model:)?\s*(\d+(?:\.\d+)?)\s*([bmt])(?:\s*(?:params?|parameters|模型|参数))?")
SIZE_TOKEN = re.compile(r"(?<![a-z0-9.])(?:(?:\d+x)?\d+(?:\.\d+)?b|\d{2,4}m)(?![a-z0-9])")
VARIANTS = ("instruct", "chat", "it", "base", "hf", "pt", "sft", "dpo", "rl", "thinking", "preview", "text")
"""Words that name a further training of a model, not another architecture."""
VISION = re.compile(r"vl(?![a-z])|vision|omni|audio|\dv(?!\d)")
GGUF_TYPE = re.compile(
    r"(?:^|[-_.:@/ ])((?:ud-)?(?:i?q\d(?:_[a-z0-9]{1,4}){0,2}|tq[12]_0|bf16|f16|f32)(?:_xl)?)(?:\.gguf)?$"
)
BPW = re.compile(
    r"[-_.:@ ](exl[23])[-_.:@ ]?(?:(\d+(?:\.\d+)?)\s*bpw)?$|[-_.:@ ](\d+(?:\.\d+)?)\s*bpw(?:[-_.](exl[23]))?$"
)
BRANCH = re.compile(r"-gptq[:@](?:gptq-)?(\d)bit-(-?\d+)g(?:-actorder_(?:true|false))?$")
"""A branch of TheBloke's GPTQ uploads behind the repository: ``gptq-4bit-32g-actorder_True``, ``gptq-3bit--1g``."""
PLAIN = re.compile(r"[-_.:@ ](?:bf16|fp16|f16|fp32|safetensors|hf|dequantized)$")


class Upload(NamedTuple):
    """A name taken apart: the model's own name, the weight format it states, and why that format."""

    base: str
    weight_format: str | None = None
    why: str = ""
    why_zh: str = ""


def normalised(name: str) -> str:
    """Lower case, full-width folded, single spaces; control characters become spaces."""
    folded = unicodedata.normalize("NFKC", name[: 2 * MAX_NAME])
    if not folded.isascii() or not folded.isprintable():
        folded = "".join(" " if unicodedata.category(char).startswith("C") else char for char in folded)
    return " ".join(folded.lower().split())[:MAX_NAME]


SEPARATORS = str.maketrans("", "", " \t\n-_:/")


def squeezed(key: str) -> str:
    """A key without spaces, hyphens, underscores, colons and slashes; dots are kept."""
    return key.translate(SEPARATORS)


def tokens(key: str) -> list[str]:
    """The parts of a key between its separators."""
    return [part for part in re.split(r"[\s\-_:/@]+", key) if part]


def billions(text: str) -> float | None:
    """The billions of parameters that a bare size such as ``0.5b`` or ``560m`` means, else None."""
    found = SIZE.fullmatch(text)
    if found is None:
        return None
    return float(found[1]) * {"b": 1.0, "m": 1e-3, "t": 1e3}[found[2]]


def without_variants(key: str) -> str:
    """A name less the words at its end that only say how the model was trained on."""
    pattern = rf"[-_.: ](?:{'|'.join(VARIANTS)})$"
    while (shorter := re.sub(pattern, "", key)) != key:
        key = shorter
    return key


def sees(key: str) -> bool:
    """Whether a name says that the model takes images or sound."""
    return VISION.search(key) is not None


def sizes(key: str) -> set[str]:
    """Every size that a name states, such as ``7b``, ``8x7b``."""
    return set(SIZE_TOKEN.findall(key.replace("_", "-").replace(":", "-").replace("/", "-")))


@cache
def marks() -> tuple[tuple[str, str, str], ...]:
    """Marks of quantised uploads: as they end a name, the weight format they mean, and why."""
    rows = csv.DictReader(read_text("upload_marks.csv").splitlines())
    return tuple((row["mark"], row["weight_format"], row["why"]) for row in rows)


def split_upload(key: str) -> Upload:
    """Takes the mark of a quantised upload off a normalised name."""
    bare = key.removesuffix(".gguf")
    for reading in (_gguf_type, _bits_per_weight, _branch, _mark):
        found = reading(bare)
        if found is not None:
            return found
    return Upload(key)


def _gguf_type(key: str) -> Upload | None:
    found = GGUF_TYPE.search(key)
    if found is None or found[1] in ("bf16", "f16", "f32"):
        return None
    base = _without(key[: found.start()], "gguf")
    return Upload(base, gguf_name(found[1]), "the file type in the name")


def gguf_name(text: str) -> str:
    """A GGUF type as llama.cpp spells it; unsloth's dynamic ``ud-`` mixes count as the type they start from."""
    name = text.lower().removeprefix("ud-").removesuffix("_xl")
    if name in ("q2_k", "q3_k", "q4_k", "q5_k") and text.lower().endswith("_xl"):
        return f"{name}_m".upper() if name != "q2_k" else "Q2_K"
    return name.upper()


def _bits_per_weight(key: str) -> Upload | None:
    found = BPW.search(key)
    if found is None:
        return None
    scheme, bits = found[1] or found[4] or "exl2", found[2] or found[3] or "4.0"
    return Upload(key[: found.start()], f"{scheme}-{float(bits):g}bpw", "the bits per weight in the name")


def _branch(key: str) -> Upload | None:
    found = BRANCH.search(key)
    return found and Upload(key[: found.start()], f"gptq-{found[1]}bit-g{found[2]}", "the branch in the name")


def _mark(key: str) -> Upload | None:
    if key.startswith("mlx-community/") and key.endswith("-4bit") and not key.endswith("mlx-4bit"):
        key = key.removesuffix("4bit") + "mlx-4bit"
    for mark, weight_format, why in marks():
        shorter = _without(key, mark)
        if shorter != key and shorter:
            if mark == "gptq" and ungrouped(key, shorter):
                return Upload(shorter, "gptq-4bit-g-1", *WITHOUT_GROUPS)
            return Upload(shorter, weight_format, why)
    plain = PLAIN.sub("", key)
    return Upload(plain) if plain != key else None


UNGROUPED_FROM = 30.0
"""Billions from which TheBloke's cards say of the main branch "No group size, to lower VRAM requirements".

The sizes they give bear it out: 23.81 GB for Mixtral 8x7B and 35.33 GB for Llama 2 70B, 4 bits a weight.
"""

WITHOUT_GROUPS = (
    "TheBloke's main branches of 30B and more have no groups; write another branch behind the name, as "
    "TheBloke/Llama-2-70B-GPTQ:gptq-4bit-128g-actorder_True",
    "TheBloke 30B 及以上的主分支不分组；其他分支请写在名称后，如 "
    "TheBloke/Llama-2-70B-GPTQ:gptq-4bit-128g-actorder_True",
)


def ungrouped(key: str, base: str) -> bool:
    """Whether a GPTQ upload's main branch was packed without groups."""
    if not key.startswith("thebloke/"):
        return False
    stated = (re.fullmatch(r"(?:(\d+)x)?(\d+(?:\.\d+)?)b", size) for size in sizes(base))
    return any(int(one[1] or 1) * float(one[2]) >= UNGROUPED_FROM for one in stated if one)


def _without(key: str, mark: str) -> str:
    """``key`` less a trailing ``mark`` in any of its spellings (``-awq-int4``, `` awq int4``, ``_awq_int4``)."""
    if mark[:3] not in key:
        return key
    pattern = r"[-_.:@ ]" + re.escape(mark).replace(r"\-", "[-_. ]?") + r"(?:[-_.][a-z0-9]{1,12})?$"
    shorter = re.sub(pattern, "", key)
    return shorter if shorter != key else key
