"""Which words of a message are names of the catalogue."""

import re
from bisect import bisect_left
from functools import cache, lru_cache
from typing import NamedTuple

from estimator.catalogue import aliases, rows
from estimator.catalogue.cards import apple_chip, cards
from estimator.catalogue.gpu_text import core
from estimator.catalogue.gpus import find_gpu
from estimator.catalogue.models import find_model
from estimator.catalogue.names import billions as sizes_in_billions
from estimator.catalogue.names import normalised, squeezed
from estimator.errors import EstimatorError

RELEASES = ("hub", "repo", "other", "short")
"""Kinds of names that are a release's own."""
NEAR_SIZE = 0.25
"""A bare size may be told by a model this much larger or smaller, when the answer says so."""


class KnownModel(NamedTuple):
    """A model that a name means; ``family`` when it names several, ``size`` when it is only a number of parameters."""

    hub_id: str
    family: bool
    size: bool

    @property
    def params_b(self) -> float | None:
        """Parameters in billions."""
        total = rows.model_row(self.hub_id).params_total
        return total / 1e9 if total else None


LEAST_BEGUN = 6
"""Letters of a name that is not whole."""
SHOWN = 3
"""Letters by which a word is told to begin no name."""


@cache
def _beginnings() -> frozenset[str]:
    return frozenset(key[:length] for key in aliases.all_squeezed() for length in range(1, SHOWN + 1))


@lru_cache(maxsize=4096)
def may_begin_model(word: str) -> bool:
    """Whether any name of the catalogue begins with the first letters of a word."""
    return squeezed(normalised(word))[:SHOWN] in _beginnings()


@cache
def _card_beginnings() -> frozenset[str]:
    return frozenset(key[:length] for key in _sizes_by_core() for length in range(1, SHOWN + 1))


APPLE = ("m", "imac", "silicon")
"""How the names of Apple's machines begin, which no table lists."""


@lru_cache(maxsize=4096)
def may_begin_card(word: str) -> bool:
    """Whether any card's name begins with the first letters of a word, or with a maker's name as this one is."""
    bare = core(word.lower())
    plain = bare.isascii() and bare != "rx" and not bare.startswith(APPLE)
    return not (bare and plain) or bare[:SHOWN] in _card_beginnings()


@lru_cache(maxsize=4096)
def model_named(text: str) -> KnownModel | None:
    """The model that a text names exactly, spaces and hyphens aside; a text that is only similar is none."""
    known = aliases.exact(normalised(text)) or aliases.squeezed_key(squeezed(normalised(text)))
    return KnownModel(known.id, known.ambiguous, known.type == "size") if known else None


@lru_cache(maxsize=512)
def has_experts(text: str) -> bool:
    """Whether a text names a mixture of experts."""
    known = model_meant(text)
    try:
        return known is not None and find_model(known.hub_id).architecture.experts is not None
    except EstimatorError:
        return False


def is_other_release(text: str) -> bool:
    """Whether a text names a release that shares its architecture with the model it is counted as: -it for -pt."""
    known = aliases.squeezed_key(squeezed(normalised(text)))
    if known is None or known.ambiguous:
        return False
    if known.type == "nick":
        return _shares_no_word(text, known.id)
    if known.type not in RELEASES:
        return False
    return squeezed(normalised(text.rsplit("/", 1)[-1])) not in squeezed(normalised(known.id))


def _shares_no_word(text: str, hub_id: str) -> bool:
    """Whether nothing of a name stands in the model's own: bge-m3 for XLM-RoBERTa's body."""
    own = squeezed(normalised(hub_id.rsplit("/", 1)[-1]))
    words = re.split(r"[\s/_.-]+", text.strip())
    return text.isascii() and not any(squeezed(normalised(word)) in own for word in words if word)


@lru_cache(maxsize=512)
def model_meant(text: str) -> KnownModel | None:
    """The model of ``text`` as the estimator reads it: uploads, fine-tunes and slips of the keyboard included."""
    if known := model_named(text):
        return known
    try:
        match = find_model(text)
    except EstimatorError:
        return None
    return KnownModel(match.id, False, match.how == "bare size")


@cache
def _sorted_names() -> list[str]:
    return sorted(aliases.all_squeezed())


@lru_cache(maxsize=1024)
def begins_model(text: str) -> bool:
    """Whether a text of some length is the beginning of a name of the catalogue: phi-3-medium of phi-3-medium-4k."""
    key = squeezed(normalised(text))
    names = _sorted_names()
    at = bisect_left(names, key) if len(key) >= LEAST_BEGUN else len(names)
    return at < len(names) and names[at].startswith(key)


class KnownCard(NamedTuple):
    """A card that a name means: the memory it usually has, in GB, and whether it needs saying which size is meant."""

    memory_gb: float | None
    several_sizes: bool
    unified: bool = False
    sizes: frozenset[int] = frozenset()


@cache
def _sizes_by_core() -> dict[str, tuple[bool, frozenset[int]]]:
    """Core of every name and alias to whether it is a gamer's card and to the sizes it is sold with."""
    found: dict[str, tuple[bool, frozenset[int]]] = {}
    for card in cards():
        for name in (card.name, *card.aliases):
            key = core(name)
            known = found.get(key, (False, frozenset()))
            found[key] = (known[0] or card.kind == "consumer", known[1] | frozenset(card.nominal))
    found.pop("", None)
    return found


@lru_cache(maxsize=4096)
def card_named(text: str) -> KnownCard | None:
    """The card that a text names exactly, with or without its memory; a text that is only similar is none."""
    bare = core(text.lower())
    known = _sizes_by_core().get(bare) or ((False, frozenset()) if apple_chip(bare) else None)
    if known is None:
        return None
    try:
        memory = find_gpu(text).nominal_gb
    except EstimatorError:
        memory = None
    consumer, sizes = known
    return KnownCard(memory, len(sizes) > 1 and not consumer, apple_chip(bare) is not None, sizes)


def full_card_name(text: str) -> str:
    """The card's name with its memory where every card that goes by ``text`` has the same: A800 is an A800 80GB."""
    try:
        match = find_gpu(text)
    except EstimatorError:
        return text
    alone = not match.candidates and match.name.endswith(f"{match.nominal_gb:g}GB")
    return f"{text} {match.nominal_gb:g}GB" if alone and match.kind == "datacenter" else text


NUMBERED = ("910",)
"""Cards that go by their number alone, which is none of a maker's series: the Ascend 910B."""
DESCRIBED = ("laptop", "notebook", "mobile", "mac", "free", "colab")


def plain_card_name(text: str) -> str:
    """The catalogue's name for a card that is described rather than named: 昇腾910B, "laptop 4060", "mac studio m2"."""
    if text.isascii() and not text.lower().startswith((*DESCRIBED, *NUMBERED)):
        return text
    chip = apple_chip(core(text.lower()))
    return chip.name if chip else card_name(text)


@lru_cache(maxsize=512)
def card_name(text: str) -> str:
    """The catalogue's name of a card; the text itself when it is none."""
    try:
        return find_gpu(text).name
    except EstimatorError:
        return text


def nearest_sized(billions: float) -> KnownModel | None:
    """The usual model of the known size that is nearest to ``billions``; None when none is near."""
    known = ((size, sizes_in_billions(size)) for size in aliases.sizes())
    near = [(abs(value / billions - 1), size) for size, value in known if value]
    distance, size = min(near, default=(1.0, ""))
    return model_named(size) if distance <= NEAR_SIZE else None
