"""From what a person calls a GPU to its real memory and abilities.

A name, an alias, a MIG slice, an Apple chip with its memory, or only a size ("8GB": a class of cards). The real total
comes from the card table, not from the sticker.
"""

import csv
import re
from dataclasses import replace
from functools import cache, lru_cache

from estimator.catalogue.cards import GIB, Card, apple_chip, cards
from estimator.catalogue.gpu_kinds import class_memory, size_class, slice_alone, slice_of, unified
from estimator.catalogue.gpu_match import GpuMatch, noted, problem, shown
from estimator.catalogue.gpu_notes import sizes_said, vendor_said
from estimator.catalogue.gpu_text import Asked, asked, core, folded
from estimator.datafiles import read_text
from estimator.errors import EstimatorError

SERIES = re.compile(r"(?<![a-z])(?:gtx|rtx|gt|mx|quadro|tesla|geforce)\s*[a-z]?\d{3,4}")


@lru_cache(maxsize=1024)
def find_gpu(text: str) -> GpuMatch:
    """The GPU that ``text`` means; else an ``EstimatorError`` of one sentence."""
    wanted = asked(str(text))
    if wanted.count < 1:
        raise problem(f"{shown(text)} asks for no card; give at least one", f"{shown(text)} 的数量应至少为 1")
    if wanted.size_only is not None:
        return replace(size_class(wanted.size_only), count=wanted.count)
    if wanted.slice and not wanted.core:
        return replace(slice_alone(wanted.slice), count=wanted.count)
    return replace(_named(wanted, text), count=wanted.count)


def all_gpus() -> tuple[str, ...]:
    """Names of all cards, for completion."""
    return tuple(card.name for card in cards())


@cache
def _index() -> dict[tuple[str, bool], tuple[Card, ...]]:
    """Core of a name or alias, and whether it is a laptop's, to the cards it may mean, in the table's order."""
    found: dict[tuple[str, bool], tuple[Card, ...]] = {}
    for card in cards():
        laptop = card.kind == "laptop"
        for key in dict.fromkeys(core(name) for name in (card.name, *card.aliases)):
            if key:
                found[key, laptop] = (*found.get((key, laptop), ()), card)
    return found


@cache
def _readings() -> dict[str, tuple[str, tuple[str, ...]]]:
    listed = csv.DictReader(read_text("gpu_readings.csv").splitlines())
    return {row["key"]: (row["default"], tuple(row["others"].split("|")) if row["others"] else ()) for row in listed}


def _named(wanted: Asked, text: str) -> GpuMatch:
    options = _of_form(_options(wanted), wanted.form)
    chip = None if options else apple_chip(wanted.core)
    if chip is not None:
        return unified(chip, wanted)
    if not options and wanted.laptop and _options(replace(wanted, laptop=False)):
        return _as_desktop(wanted, text)
    if not options and wanted.memory and SERIES.search(folded(text)):
        return _unlisted(text, float(wanted.memory))
    if not options:
        raise _unknown(text, wanted)
    fitting = _of_size(options, wanted.memory)
    card = (fitting or options)[0]
    if card.vendor == "Apple":
        return unified(card, wanted)
    if card.low is None or card.high is None:
        raise _not_computed(card)
    if wanted.slice:
        return slice_of(card, _described(card, ()), wanted)
    if wanted.memory is None:
        return _described(card, options)
    match = _described(card, ())
    if not fitting:
        return _other_size(match, wanted.memory)
    return match if wanted.memory in card.nominal else _rounded(match, wanted.memory)


def _unlisted(text: str, memory: float) -> GpuMatch:
    """A card of a known series that the table lacks, with its memory stated: that memory, and no newer abilities."""
    return replace(
        size_class(memory),
        bf16=False,
        flash_attn2=False,
        note=f"{shown(text)} is not in the table of cards; took the {memory:g} GB as stated, without bf16 or "
        "FlashAttention",
        note_zh=f"显卡表中没有 {shown(text)}；显存按所写的 {memory:g} GB 计算，按不支持 bf16 和 FlashAttention 处理",
    )


def _as_desktop(wanted: Asked, text: str) -> GpuMatch:
    """A laptop version that the table does not list: its desktop card, which may have more memory."""
    match = _named(replace(wanted, laptop=False), text)
    return noted(
        match,
        f"the laptop version of {match.name} is not listed; took the desktop card, say the memory if it differs",
        f"未收录 {match.name} 的笔记本版，按台式卡计算；如显存不同请注明",
    )


def _options(wanted: Asked) -> tuple[Card, ...]:
    """The cards a name may mean, the one that goes by the bare name first; modded boards only by their size."""
    if wanted.core in _readings() and not wanted.laptop:
        default, others = _readings()[wanted.core]
        return tuple(card for name in (default, *others) for card in cards() if card.name == name)
    found = _index().get((wanted.core, wanted.laptop), ())
    plain = [card for card in found if wanted.memory is not None or "(modded)" not in card.name]
    return tuple(sorted(plain, key=lambda card: not _goes_by(card, wanted.core)))


def _goes_by(card: Card, bare: str) -> bool:
    return any("".join(folded(name).split()) == bare for name in (card.name, *card.aliases))


def _of_size(options: tuple[Card, ...], memory: int | None) -> tuple[Card, ...]:
    if memory is None:
        return options
    exact = tuple(card for card in options if memory in card.nominal)
    # Nominal sizes are rounded differently by vendors, clouds and users (H20: 96 or 98 GB).
    return exact or tuple(card for card in options if any(abs(memory - size) <= 0.03 * size for size in card.nominal))


def _of_form(options: tuple[Card, ...], form: str) -> tuple[Card, ...]:
    return tuple(card for card in options if form and form in card.name.lower()) or options


def _described(card: Card, options: tuple[Card, ...]) -> GpuMatch:
    """The card as a match, with what must be said about it: other sizes of the same name, vendor."""
    low, high = card.low or 0.0, card.high or 0.0
    halves = 2 if card.name.startswith("MI250") else 1
    match = GpuMatch(
        name=card.name,
        vendor=card.vendor,
        arch=card.arch,
        compute_capability=card.compute_capability,
        usable_low=round(low * GIB / halves),
        usable_high=round(high * GIB / halves),
        nominal_gb=card.nominal[0] / halves,
        kind=card.kind,
        bf16=card.bf16 == "yes",
        fp8=card.fp8 == "yes",
        flash_attn2=card.flash2 == "yes",
        flash_attn3=card.flash3 == "yes",
    )
    said = [*sizes_said(card, options), *vendor_said(card)]
    return replace(
        match,
        candidates=tuple(dict.fromkeys(option.name for option in options)) if len(options) > 1 else (),
        note="; ".join(english for english, _chinese in said),
        note_zh="；".join(chinese for _english, chinese in said),
    )


def _rounded(match: GpuMatch, memory: int) -> GpuMatch:
    """A size that is another rounding of the one the card is sold with."""
    return noted(
        match,
        f"took {match.name} for {memory} GB",
        f"{memory} GB 按 {match.name} 计算",
    )


def _other_size(match: GpuMatch, memory: int) -> GpuMatch:
    """A card with more or less memory than it is sold with (modded boards, rarer versions)."""
    low, high = class_memory(float(memory))
    sized = replace(match, usable_low=round(low * GIB), usable_high=round(high * GIB), nominal_gb=float(memory))
    return noted(
        sized,
        f"{match.name} is not known with {memory} GB; took the memory as stated",
        f"未收录 {memory} GB 的 {match.name}，显存按所写计算",
    )


def _not_computed(card: Card) -> EstimatorError:
    return problem(
        f"{card.name} ({card.vendor}) is not computed here: its real memory and allocator are not known; "
        "name a CUDA, ROCm, Apple or Ascend card, or give a size",
        f"暂不支持 {card.name}（{card.vendor}）：其实际可用显存与分配器未知；"
        "请给出 CUDA、ROCm、Apple 或昇腾设备，或直接给出显存大小",
    )


def _unknown(text: str, wanted: Asked) -> EstimatorError:
    near = _nearest(wanted)
    return problem(
        f"no GPU is known as {shown(text)}; the nearest are {', '.join(near)}; or give its memory, such as 8GB",
        f"没有名为 {shown(text)} 的显卡；最接近的有 {'、'.join(near)}；也可直接给出显存，如 8GB",
    )


def _nearest(wanted: Asked) -> list[str]:
    # Imported late: only a refusal needs it.
    from difflib import get_close_matches

    keys = {key: options[0].name for (key, _laptop), options in _index().items()}
    close = get_close_matches(wanted.core, keys, n=4, cutoff=0.5)
    return list(dict.fromkeys(keys[key] for key in close)) or ["RTX 3090", "RTX 4090", "A100 SXM4 80GB"]
