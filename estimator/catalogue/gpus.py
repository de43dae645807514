"""From what a person calls a GPU to its real memory and abilities.

A name, an alias, a MIG slice, an Apple chip with its memory, or only a size ("8GB": a class of cards). The real total
comes from the card table, not from the sticker.
"""

import csv
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from estimator.catalogue.cards import GIB, Card, apple_chip, cards, class_totals, smallest_share
from estimator.catalogue.gpu_notes import age_said, sizes_said, vendor_said
from estimator.catalogue.gpu_text import Asked, asked, core, folded
from estimator.datafiles import read_text
from estimator.errors import EstimatorError

UNIFIED_SHARE = 0.75
"""Part of an Apple machine's memory that Metal recommends to use (gpus.csv: 19,069 MB seen on a 24 GB machine)."""


@dataclass(frozen=True, slots=True)
class GpuMatch:
    """A card and what it can do.

    ``usable_low``/``usable_high`` are bytes as torch sees the whole card, a range where several values were met.
    ``kind`` is consumer, laptop, workstation, datacenter, unified, npu, mig or class (only a size was given).
    """

    name: str
    vendor: str
    arch: str
    compute_capability: str
    usable_low: int
    usable_high: int
    nominal_gb: float
    kind: str
    bf16: bool
    fp8: bool
    flash_attn2: bool
    flash_attn3: bool
    count: int = 1
    candidates: tuple[str, ...] = ()
    note: str = ""
    note_zh: str = ""


@lru_cache(maxsize=1024)
def find_gpu(text: str) -> GpuMatch:
    """The GPU that ``text`` means; else an ``EstimatorError`` of one sentence."""
    wanted = asked(str(text))
    if wanted.count < 1:
        raise _problem(f"{_shown(text)} asks for no card; give at least one", f"{_shown(text)} 的数量应至少为 1")
    if wanted.size_only is not None:
        return replace(_size_class(wanted.size_only), count=wanted.count)
    found = _named(wanted, text)
    return replace(found, count=wanted.count)


def all_gpus() -> tuple[str, ...]:
    """Names of all cards, for completion."""
    return tuple(card.name for card in cards())


def _size_class(nominal: float) -> GpuMatch:
    """A size without a name: the smallest real total of NVIDIA cards of that class, the abilities of an Ampere card."""
    if not 0.5 <= nominal <= 1024:
        raise _problem(
            f"no card has {nominal:g} GB of memory; give a size between 1 and 1024 GB, or the card's name",
            f"没有 {nominal:g} GB 显存的显卡；请给出 1 到 1024 GB 之间的大小或显卡型号",
        )
    low, high = _class_memory(nominal)
    return GpuMatch(
        name=f"{nominal:g} GB card",
        vendor="NVIDIA",
        arch="",
        compute_capability="",
        usable_low=round(low * GIB),
        usable_high=round(high * GIB),
        nominal_gb=nominal,
        kind="class",
        bf16=True,
        fp8=False,
        flash_attn2=True,
        flash_attn3=False,
        note=f"cards sold as {nominal:g} GB really have {low:.2f} GiB or more; taken as Ampere or newer (bf16)",
        note_zh=f"{nominal:g} GB 显卡实际约有 {low:.2f} GiB 以上；按支持 bf16 的显卡（Ampere 及以后）计算",
    )


def _class_memory(nominal: float) -> tuple[float, float]:
    known = class_totals(int(nominal)) if nominal.is_integer() else None
    return known or (nominal * smallest_share(), nominal * 0.99)


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
        return _unified(chip, wanted)
    if not options:
        raise _unknown(text, wanted)
    fitting = _of_size(options, wanted.memory)
    card = (fitting or options)[0]
    if card.vendor == "Apple":
        return _unified(card, wanted)
    if card.low is None or card.high is None:
        raise _not_computed(card)
    if wanted.slice:
        return _slice(card, wanted.slice, wanted)
    if wanted.memory is None:
        return _described(card, options)
    match = _described(card, ())
    if not fitting:
        return _other_size(match, wanted.memory)
    return match if wanted.memory in card.nominal else _rounded(match, wanted.memory)


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
    """The card as a match, with what must be said about it: other sizes of the same name, vendor, age."""
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
    said = [*sizes_said(card, options), *vendor_said(card), *age_said(card)]
    return replace(
        match,
        candidates=tuple(dict.fromkeys(option.name for option in options)) if len(options) > 1 else (),
        note="; ".join(english for english, _chinese in said),
        note_zh="；".join(chinese for _english, chinese in said),
    )


def _rounded(match: GpuMatch, memory: int) -> GpuMatch:
    """A size that is another rounding of the one the card is sold with."""
    return _noted(
        match,
        f"took {match.name} for {memory} GB",
        f"{memory} GB 按 {match.name} 计算",
    )


def _noted(match: GpuMatch, note: str, note_zh: str) -> GpuMatch:
    return replace(
        match,
        note="; ".join(filter(None, (note, match.note))),
        note_zh="；".join(filter(None, (note_zh, match.note_zh))),
    )


def _other_size(match: GpuMatch, memory: int) -> GpuMatch:
    """A card with more or less memory than it is sold with (modded boards, rarer versions)."""
    low, high = _class_memory(float(memory))
    sized = replace(match, usable_low=round(low * GIB), usable_high=round(high * GIB), nominal_gb=float(memory))
    return _noted(
        sized,
        f"{match.name} is not known with {memory} GB; took the memory as stated",
        f"未收录 {memory} GB 的 {match.name}，显存按所写计算",
    )


def _slice(card: Card, profile: str, wanted: Asked) -> GpuMatch:
    """A MIG slice: its own memory, the abilities of its card."""
    options = [row for row in csv.DictReader(read_text("mig.csv").splitlines()) if core(row["card"]) == wanted.core]
    sized = [row for row in options if wanted.memory in (None, int(row["nominal_gb"]))]
    row = next((row for row in sized if row["slice"] == profile), None)
    if row is None:
        names = list(dict.fromkeys(row["slice"] for row in options))
        raise _problem(
            f"{card.name} has no MIG slice {profile}; known slices: {', '.join(names) or 'none'}",
            f"{card.name} 没有 MIG 切片 {profile}；已知切片：{'、'.join(names) or '无'}",
        )
    usable = round(float(row["gib"]) * GIB)
    return replace(
        _described(card, ()),
        name=f"{row['card']} {row['nominal_gb']}GB MIG {profile}",
        usable_low=usable,
        usable_high=usable,
        nominal_gb=float(profile.split(".")[1].removesuffix("gb")),
        kind="mig",
        note=f"a MIG slice: {float(row['gib']):g} GiB of the card, no NVLink between slices",
        note_zh=f"MIG 切片：{float(row['gib']):g} GiB，切片之间没有 NVLink",
    )


def _unified(card: Card, wanted: Asked) -> GpuMatch:
    if wanted.memory is None:
        sold = ", ".join(str(size) for size in card.nominal)
        raise _problem(
            f"say how much memory the {card.name} has ({sold} GB …), such as '{card.name} {card.nominal[-1]}GB'",
            f"请注明 {card.name} 的内存大小（如 {card.nominal[-1]}GB）",
        )
    usable = round(wanted.memory * UNIFIED_SHARE * GIB)
    return GpuMatch(
        name=f"{card.name} {wanted.memory}GB",
        vendor=card.vendor,
        arch=card.arch,
        compute_capability="",
        usable_low=usable,
        usable_high=usable,
        nominal_gb=float(wanted.memory),
        kind="unified",
        bf16=card.bf16 in ("yes", "partial"),
        fp8=False,
        flash_attn2=False,
        flash_attn3=False,
        note="Apple: memory is shared with the system, of which Metal uses about 75 %; CUDA-only parts "
        "(bitsandbytes, FlashAttention, fused optimizers) are missing, so read training figures as a guide",
        note_zh="Apple：与系统共用内存，Metal 约可用 75 %；没有 CUDA 专用部件（bitsandbytes、FlashAttention 等），"
        "训练数字仅供参考",
    )


def _not_computed(card: Card) -> EstimatorError:
    return _problem(
        f"{card.name} ({card.vendor}) is not computed here: its real memory and allocator are not known; "
        "name a CUDA, ROCm, Apple or Ascend card, or give a size",
        f"暂不支持 {card.name}（{card.vendor}）：其实际可用显存与分配器未知；"
        "请给出 CUDA、ROCm、Apple 或昇腾设备，或直接给出显存大小",
    )


def _unknown(text: str, wanted: Asked) -> EstimatorError:
    near = _nearest(wanted)
    return _problem(
        f"no GPU is known as {_shown(text)}; the nearest are {', '.join(near)}; or give its memory, such as 8GB",
        f"没有名为 {_shown(text)} 的显卡；最接近的有 {'、'.join(near)}；也可直接给出显存，如 8GB",
    )


def _nearest(wanted: Asked) -> list[str]:
    # Imported late: only a refusal needs it.
    from difflib import get_close_matches

    keys = {key: options[0].name for (key, _laptop), options in _index().items()}
    close = get_close_matches(wanted.core, keys, n=4, cutoff=0.5)
    return list(dict.fromkeys(keys[key] for key in close)) or ["RTX 3090", "RTX 4090", "A100 SXM4 80GB"]


def _shown(text: str) -> str:
    return repr(folded(str(text))[:60])


def _problem(message: str, message_zh: str) -> EstimatorError:
    return EstimatorError(message, message_zh, field="gpu")
