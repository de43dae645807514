"""From what a provider calls a GPU to the name of the card table; what cannot be told is left to a person."""

import re
from functools import cache

from bot.prices.snapshot import snapshot_offers
from estimator.catalogue.cards import Card, cards
from estimator.catalogue.gpus import find_gpu
from estimator.errors import EstimatorError

SAME_MEMORY = 0.15
"""A card whose stated memory is further off than this is another card."""
FORMS = ("sxm", "pcie", "nvl")
FORM_WORDS = {"nvlink": "sxm", "hgx": "sxm", "sxm4": "sxm", "sxm5": "sxm", "80s": "sxm", "141s": "sxm", "hbm3": "sxm"}
NEEDS_FORM = frozenset({"A100", "H100", "V100", "H800", "A800"})
"""Names of several boards with prices of their own; a name without a form factor tells too little."""
AMBIGUOUS = frozenset({"RTX6000", "RTXPRO6000"})
"""Names of several boards of one size; even the memory does not tell which."""
GOOGLE = {
    "a2-highgpu": "A100 SXM4 40GB", "a2-megagpu": "A100 SXM4 40GB", "a2-ultragpu": "A100 SXM4 80GB",
    "a3-highgpu": "H100 SXM5 80GB", "a3-megagpu": "H100 SXM5 80GB", "a3-edgegpu": "H100 SXM5 80GB",
    "a3-ultragpu": "H200 SXM 141GB", "a4-highgpu": "B200 SXM", "g2-standard": "L4",
}  # fmt: skip
"""Families of Google's machine types that have one card."""
SUFFIX_S = {"RTX 4070S Ti": "RTX 4070 Ti SUPER", "RTX 4080S": "RTX 4080 SUPER", "RTX 4070S": "RTX 4070 SUPER",
            "RTX PRO 6000 S": "RTX PRO 6000 Blackwell Server", "RTX PRO 6000 WS": "RTX PRO 6000 Blackwell WS",
            "RTXPRO6000S": "RTX PRO 6000 Blackwell Server"}  # fmt: skip


class NotTold(ValueError):
    """The name does not say which card it is; the text says why."""


def card_of(name: str, memory_gb: float | None = None, provider: str = "", instance: str = "") -> str:
    """The card of the table. ``memory_gb``: per card, as the provider states it. Raises NotTold."""
    known = _known_instance(provider, instance)
    if known:
        return _checked(known, memory_gb, name)
    spoken = SUFFIX_S.get(name, name)
    if _bare(spoken) in AMBIGUOUS and not (_bare(spoken) == "RTX6000" and memory_gb):
        raise NotTold(f"{name} is the name of several cards")
    form = _form(f"{name} {instance}")
    if _family(spoken) in NEEDS_FORM and not form:
        raise NotTold(f"{name}: SXM or PCIe is not stated")
    return _checked(_found(spoken, form, memory_gb), memory_gb, name)


def _bare(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", name.upper())


def _family(name: str) -> str:
    return re.split(r"[-_ ]", re.sub(r"(?i)^(nvidia|tesla)[-_ ]", "", name).upper())[0]


def _form(text: str) -> str:
    words = re.split(r"[^a-z0-9]+", text.casefold())
    for word in words:
        for form in FORMS:
            if word.startswith(form) and not word.startswith("nvlink"):
                return form
        if word in FORM_WORDS:
            return FORM_WORDS[word]
    return next((FORM_WORDS[word] for word in words if word in FORM_WORDS), "")


def _found(name: str, form: str, memory_gb: float | None) -> str:
    plain = re.sub(r"(?i)[-_ ]*(sxm\d?|pcie|nvl(ink)?|hgx|mega)\b", "", name.replace("_", " "))
    plain = re.sub(r"(?i)[-_ ]?\d+\s?gb?$", "", plain) if memory_gb else plain
    size = f" {memory_gb:.0f}GB" if memory_gb else ""
    for text in (f"{plain} {form.upper()}{size}".strip(), f"{plain}{size}", plain):
        try:
            match = find_gpu(text)
        except EstimatorError:
            continue
        if form and form not in match.name.casefold() and _has_form(plain, form):
            continue
        return match.name
    exact = next((card.name for card in cards() if _bare(card.name) == _bare(name)), None)
    if exact is None:
        raise NotTold(f"{name} is no card of the table")
    return exact


def _has_form(plain: str, form: str) -> bool:
    return any(form in card.name.casefold() and card.name.upper().startswith(plain.upper()) for card in cards())


def _checked(name: str, memory_gb: float | None, said: str) -> str:
    card = next((one for one in cards() if one.name == name), None)
    if card is None:
        raise NotTold(f"{said} is no card of the table")
    if memory_gb is None or _near(card, memory_gb):
        return name
    sibling = next((one for one in _siblings(card) if _near(one, memory_gb)), None)
    if sibling is None:
        raise NotTold(f"{said} with {memory_gb:.0f} GB is not a card of the table")
    return sibling.name


def _near(card: Card, memory_gb: float) -> bool:
    return any(abs(memory_gb / size - 1) <= SAME_MEMORY for size in card.nominal)


def _siblings(card: Card) -> list[Card]:
    """Boards of the same name with other memory: A100 40 and 80 GB, a 4090 rebuilt with 48 GB."""
    start = re.sub(r" ?\d+ ?GB.*$", "", card.name)
    return [one for one in cards() if one is not card and re.sub(r" ?\d+ ?GB.*$", "", one.name) == start]


def google_family(instance: str) -> str:
    """The family of a machine type of Google's: "a2-highgpu" of "a2-highgpu-1g"."""
    return re.sub(r"-\d+g?(-\w+)?$", "", instance)


@cache
def _instances() -> dict[tuple[str, str], str]:
    """Cards of instances that the snapshot knows, and of families of them that have one card throughout."""
    found: dict[tuple[str, str], set[str]] = {}
    for offer in snapshot_offers():
        for key in {offer.instance, offer.instance.split(".")[0]}:
            if key not in ("", "-"):
                found.setdefault((offer.provider, key.casefold()), set()).add(offer.gpu)
    return {key: next(iter(names)) for key, names in found.items() if len(names) == 1}


def _known_instance(provider: str, instance: str) -> str | None:
    if not provider or not instance or provider == "vast":
        return None
    if provider == "gcp" and google_family(instance) in GOOGLE:
        return GOOGLE[google_family(instance)]
    return _instances().get((provider, instance.casefold())) or _instances().get(
        (provider, instance.split(".")[0].casefold())
    )
