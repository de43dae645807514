"""What a box of the command offers while a person types: models and cards of the catalogue, from memory."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from bot.intake.names import model_named
from estimator.catalogue import aliases, find_gpu, find_model, rows
from estimator.catalogue.cards import Card, cards
from estimator.catalogue.names import normalised, squeezed
from estimator.errors import EstimatorError

MOST = 25
LONGEST = 100
NEAR = 80
"""Similarity (0 to 100) from which a name is offered for a text that no name contains."""
INCOMPLETE = "D"
"""Confidence of a model some of whose facts are unknown."""
COMMON_SIZES = ("8GB", "12GB", "16GB", "24GB", "32GB", "48GB", "80GB", "96GB", "141GB")
COMMON_MODELS = ("0.5b", "1.5b", "3b", "4b", "7b", "8b", "14b", "20b", "30b", "32b", "70b", "72b", "235b", "671b")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A line of the list: what is shown, what is typed when it is chosen, and what is searched for it.

    ``key`` is the name without separators, ``words`` its parts and what else it is known by.
    """

    label: str
    value: str
    key: str
    words: tuple[str, ...] = ()

    def holds(self, words: tuple[str, ...]) -> bool:
        """Whether each of the words begins one of the parts."""
        return all(any(part.startswith(word) for part in self.words) for word in words)


def models(typed: str) -> list[Suggestion]:
    """Models for what was typed so far, the likeliest first; the usual model of each size for nothing."""
    if not typed.strip():
        return [_model(known.hub_id) for size in COMMON_MODELS if (known := model_named(size))]
    meant = model_named(typed)
    first = [_model(meant.hub_id)] if meant else []
    return _ranked(typed, first, _models())


def gpus(typed: str) -> list[Suggestion]:
    """Cards for what was typed so far; sizes that fit any card of that memory, then current cards, for nothing."""
    if not typed.strip():
        return [*map(_size, COMMON_SIZES), *_cards()][:MOST]
    sizes = [one for one in map(_size, COMMON_SIZES) if one.key.startswith(squeezed(normalised(typed)))]
    return _ranked(typed, sizes, _cards())


def _ranked(typed: str, first: list[Suggestion], known: Iterable[Suggestion]) -> list[Suggestion]:
    """Names that begin with the text, then those that contain all its words, then similar ones."""
    whole = squeezed(normalised(typed))
    words = _words(typed)
    begins = [one for one in known if one.key.startswith(whole)]
    contains = [one for one in known if whole in one.key]
    scattered = [one for one in known if one.holds(words)]
    found = list(dict.fromkeys([*first, *begins, *scattered, *contains]))
    return (found or _similar(whole, known))[:MOST]


def _similar(whole: str, known: Iterable[Suggestion]) -> list[Suggestion]:
    from rapidfuzz import fuzz, process  # only a slip of the keyboard needs it

    by_key = {one.key: one for one in known}
    found = process.extract(whole, list(by_key), scorer=fuzz.WRatio, limit=MOST, score_cutoff=NEAR)
    return [by_key[key] for key, *_ in found]


@cache
def _models() -> tuple[Suggestion, ...]:
    """Every model whose layers are known, the newest first."""
    complete = (row for row in map(rows.model_row, rows.model_ids()) if _is_complete(row))
    return tuple(_model(row.id) for row in sorted(complete, key=lambda row: row.release, reverse=True))


def _is_complete(row: rows.ModelRow) -> bool:
    """Whether the sizes of its layers are known; only the rows marked as incomplete are tried."""
    if row.confidence != INCOMPLETE:
        return True
    try:
        find_model(row.id)
    except EstimatorError:
        return False
    return True


@cache
def _model(hub_id: str) -> Suggestion:
    owner, _, name = hub_id.rpartition("/")
    total = rows.model_row(hub_id).params_total
    size = f"{total / 1e9:.3g}B" if total and total >= 1e8 else f"{(total or 0) / 1e6:.3g}M"
    label = f"{name} · {size} · {owner}" if total else f"{name} · {owner}"
    return Suggestion(label[:LONGEST], hub_id[:LONGEST], _key(name), (*_words(name), *_words(owner)))


@cache
def _size(size: str) -> Suggestion:
    return Suggestion(size.replace("GB", " GB"), size, size.lower())


@cache
def _cards() -> tuple[Suggestion, ...]:
    """Every card that can be estimated for, current ones of NVIDIA first."""
    order = ("consumer", "datacenter", "workstation", "laptop")
    ranked = sorted(
        cards(), key=lambda one: (one.vendor != "NVIDIA", order.index(one.kind) if one.kind in order else 9)
    )
    return tuple(_card(one, value) for one in ranked for value in _values(one))


def _card(card: Card, value: str) -> Suggestion:
    sizes = " / ".join(f"{size} GB" for size in card.nominal)
    label = value if not sizes or "GB" in value else f"{value} · {sizes}"
    words = (*_words(value), *(f"{size}gb" for size in card.nominal), card.vendor.lower())
    return Suggestion(label[:LONGEST], value[:LONGEST], _key(value), words)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[\s/_-]+", normalised(text)) if word)


def _key(value: str) -> str:
    return squeezed(normalised(value))


def _values(card: Card) -> list[str]:
    """The card's name, its memory added where the name alone means another or several."""
    if _means(card.name, card):
        return [card.name]
    return [name for size in card.nominal if _means(name := f"{card.name} {size}GB", card)]


def _means(name: str, card: Card) -> bool:
    try:
        return find_gpu(name).name in (card.name, name)
    except EstimatorError:
        return False


def warm() -> None:
    """Read what the lists need, so that the first key press is answered as fast as the others."""
    _models(), _cards(), aliases.exact("7b")
