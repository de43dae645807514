"""Taking apart what people write for a GPU: how many, how much memory, desktop or laptop, slice, and the name left."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

MAX_TEXT = 120
NUMERALS = {"一": 1, "两": 2, "二": 2, "双": 2, "三": 3, "四": 4, "五": 5, "六": 6, "八": 8, "十": 10, "单": 1}
NUMBER = r"(\d{1,3}|[一两二双三四五六八十单])"
COUNTS = (
    # Without a space at most three digits count, so that 7900xtx stays a card.
    re.compile(rf"^{NUMBER}\s*[x×*]\s*(?P<rest>\S*(?:[a-z]|\d{{2}}).*)$"),
    re.compile(r"^(\d{1,6})\s+[x×*]\s*(?P<rest>\S*[a-z].*)$"),
    re.compile(r"^(?P<rest>.*\S(?<!rt)(?<!gt))\s*[x×*]\s*(\d{1,3})$"),
    re.compile(rf"^{NUMBER}\s*(?:张|块|卡|片|枚|个|台|路)\s*(?P<rest>\S.*)$"),
    re.compile(rf"^(?P<rest>.*\S)\s+{NUMBER}\s*(?:张|块|卡|片|枚)$"),
    re.compile(r"^(\d{1,3})\s+(?P<rest>(?!g|gb|gib)[a-z].*)$"),
)
CLASS_WORDS = r"(?:的?(?:显卡|显存|卡|内存)|gpu|cards?|vram|of vram|memory)"
SIZE_ONLY = re.compile(rf"^(?:gpu|vram|显存)?\s*(\d{{1,5}}(?:\.\d+)?)\s*(?:g|gb|gib)(?:\s*{CLASS_WORDS})*$")
# One letter and a number are a card of their own: the 10G of an A10G is no memory.
MEMORY = re.compile(r"(?<![\d.])(?<!\b[a-z])(\d{1,4})\s*(?:gib|gb|g)(?![a-z0-9.])")
SLICE = re.compile(r"(\d)g[.\-_](\d{1,3})gb?")
LAPTOP = re.compile(r"laptop|notebook|mobile|笔记本|游戏本|移动版|移动端|(?<=\d)m(?![a-z0-9])|(?<=ti)m(?![a-z0-9])")
NOISE = re.compile(
    r"nvidia|geforce|rtx|gtx|tesla|quadro|amd|radeon|instinct|intel|apple|huawei|ascend|华为|昇腾|英伟达|魔改|"
    r"graphics|显卡|显存|gpus?|cards?|generation|edition|ampere|vram|mig|(?<![a-z])rx(?=[\s-]*\d)"
)
FORM = re.compile(r"pcie|sxm\d?|nvl(?:ink)?|hbm\d?e?|smx\d?|oam")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a text asks for: ``core`` is the model without vendor, form factor and memory, in one word."""

    core: str
    form: str
    memory: int | None
    laptop: bool
    slice: str | None
    count: int
    size_only: float | None


def folded(text: str) -> str:
    """Lower case, full-width folded, single spaces, bounded length."""
    narrow = unicodedata.normalize("NFKC", text[: 2 * MAX_TEXT]).lower()
    clean = "".join(" " if unicodedata.category(char).startswith("C") else char for char in narrow)
    return " ".join(clean.split())[:MAX_TEXT]


def asked(text: str) -> Asked:
    """The parts of a description of one or several cards."""
    rest, count = _counted(folded(text))
    size = SIZE_ONLY.match(rest)
    if size:
        return Asked("", "", None, False, None, count, float(size[1]))
    cut = SLICE.search(rest)
    name = SLICE.sub(" ", rest)
    memory = MEMORY.search(name)
    name = MEMORY.sub(" ", name)
    laptop = LAPTOP.search(name) is not None
    form = FORM.search(name)
    return Asked(
        core=core(name),
        form=form[0] if form else "",
        memory=int(memory[1]) if memory else None,
        laptop=laptop,
        slice=f"{cut[1]}g.{cut[2]}gb" if cut else None,
        count=count,
        size_only=None,
    )


@lru_cache(maxsize=4096)  # the tables of cards are read more than once
def core(name: str) -> str:
    """A card's model in one word: ``RTX 4060 Ti Laptop GPU`` gives ``4060ti``."""
    bare = FORM.sub(" ", NOISE.sub(" ", LAPTOP.sub(" ", MEMORY.sub(" ", name.lower()))))
    return "".join(filter(_is_of_name, re.sub(r"\([^)]*\)", " ", bare)))


def _is_of_name(character: str) -> bool:
    """Latin letters, digits, the plus of "a100+", and Chinese."""
    return (character.isascii() and character.isalnum()) or character == "+" or "\u4e00" <= character <= "\u9fff"


def _counted(text: str) -> tuple[str, int]:
    if SIZE_ONLY.match(text):
        return text, 1
    for pattern in COUNTS:
        found = pattern.match(text)
        if found:
            number = found[3 - pattern.groupindex["rest"]]
            return found["rest"].strip(), NUMERALS.get(number) or int(number)
    return text, 1
