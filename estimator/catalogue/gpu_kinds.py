"""Cards told by something else than a name: by their size, as a slice of a card, as an Apple chip with its memory."""

import csv
from dataclasses import replace

from estimator.catalogue.cards import GIB, Card, class_totals, smallest_share
from estimator.catalogue.gpu_match import GpuMatch, problem
from estimator.catalogue.gpu_text import Asked, core
from estimator.datafiles import read_text

UNIFIED_SHARE = 0.75
"""Part of an Apple machine's memory that Metal recommends to use (gpus.csv: 19,069 MB seen on a 24 GB machine)."""


def size_class(nominal: float) -> GpuMatch:
    """A size without a name: the smallest real total of NVIDIA cards of that class, the abilities of an Ampere card."""
    if not 0.5 <= nominal <= 1024:
        raise problem(
            f"no card has {nominal:g} GB of memory; give a size between 1 and 1024 GB, or the card's name",
            f"没有 {nominal:g} GB 显存的显卡；请给出 1 到 1024 GB 之间的大小或显卡型号",
        )
    low, high = class_memory(nominal)
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


def class_memory(nominal: float) -> tuple[float, float]:
    """The least and the most, in GiB, that cards of a size really have."""
    known = class_totals(int(nominal)) if nominal.is_integer() else None
    return known or (nominal * smallest_share(), nominal * 0.99)


def _profiles() -> list[dict[str, str]]:
    return list(csv.DictReader(read_text("mig.csv").splitlines()))


def slice_alone(profile: str) -> GpuMatch:
    """A MIG slice of a card that is not named: its own memory, the least and the most that any card gives it."""
    gigabytes = float(profile.split(".")[1].removesuffix("gb"))
    known = [(float(row["gib"]), row["card"]) for row in _profiles() if row["slice"] == profile]
    low, high = (min(known)[0], max(known)[0]) if known else class_memory(gigabytes)
    owners = ", ".join(dict.fromkeys(card for _gib, card in known))
    return replace(
        size_class(gigabytes),
        name=f"MIG {profile}",
        usable_low=round(low * GIB),
        usable_high=round(high * GIB),
        kind="mig",
        note="a MIG slice of a card that is not named" + (f" ({owners})" if owners else "") + "; taken as Ampere",
        note_zh="MIG 切片，未注明显卡" + (f"（{owners}）" if owners else "") + "；按 Ampere 计算",
    )


def slice_of(card: Card, match: GpuMatch, wanted: Asked) -> GpuMatch:
    """A MIG slice: its own memory, the abilities of its card."""
    profile = wanted.slice
    options = [row for row in _profiles() if core(row["card"]) == wanted.core]
    sized = [row for row in options if wanted.memory in (None, int(row["nominal_gb"]))]
    row = next((row for row in sized if row["slice"] == profile), None)
    if row is None:
        names = list(dict.fromkeys(row["slice"] for row in options))
        raise problem(
            f"{card.name} has no MIG slice {profile}; known slices: {', '.join(names) or 'none'}",
            f"{card.name} 没有 MIG 切片 {profile}；已知切片：{'、'.join(names) or '无'}",
        )
    usable = round(float(row["gib"]) * GIB)
    return replace(
        match,
        name=f"{row['card']} {row['nominal_gb']}GB MIG {profile}",
        usable_low=usable,
        usable_high=usable,
        nominal_gb=float(row["slice"].split(".")[1].removesuffix("gb")),
        kind="mig",
        note=f"a MIG slice: {float(row['gib']):g} GiB of the card, no NVLink between slices",
        note_zh=f"MIG 切片：{float(row['gib']):g} GiB，切片之间没有 NVLink",
    )


def unified(card: Card, wanted: Asked) -> GpuMatch:
    """An Apple chip, of whose memory Metal uses a part."""
    if wanted.memory is None:
        sold = ", ".join(str(size) for size in card.nominal)
        raise problem(
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
