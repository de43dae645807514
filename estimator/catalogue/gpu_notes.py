"""What must be said about a card beside its figures, in English and Chinese."""

from estimator.catalogue.cards import Card

Said = list[tuple[str, str]]


def sizes_said(card: Card, options: tuple[Card, ...]) -> Said:
    """That cards of one name are sold with several sizes, and which was taken."""
    sold = sorted({size for option in options for size in option.nominal})
    if len(sold) < 2:
        return []
    listed, listed_zh = (mark.join(map(str, sold)) for mark in (", ", "、"))
    return [
        (
            f"cards of this name have {listed} GB; took {card.name}, say the size if it is another",
            f"同名显卡有 {listed_zh} GB 几种，取 {card.name}；如不同请注明显存",
        )
    ]


def vendor_said(card: Card) -> Said:
    """What changes off NVIDIA's cards."""
    if card.name.startswith("MI250"):
        return [
            (
                "one MI250 is two devices of 64 GB each to the software; the figures are for one of them",
                "一张 MI250 在软件中是两个 64 GB 设备，数字按其中一个计算",
            )
        ]
    return {
        "AMD": [
            (
                "AMD: sizes hold under ROCm; allocator overheads differ, bitsandbytes, FlashAttention need ROCm builds",
                "AMD：ROCm 下大小基本相同，但分配器开销不同，bitsandbytes 与 FlashAttention 需用 ROCm 版本",
            )
        ],
        "Huawei": [
            (
                "Ascend: tensor sizes hold under torch_npu, but its allocator, kernels and quantisation support differ",
                "昇腾：torch_npu 下张量大小相同，但分配器、算子与量化支持不同",
            )
        ],
        "Intel": [
            (
                "Intel: tensor sizes hold under torch.xpu, but its kernels and allocator differ",
                "Intel：torch.xpu 下张量大小相同，但算子与分配器不同",
            )
        ],
    }.get(card.vendor, _shared_said(card))


def _shared_said(card: Card) -> Said:
    if card.kind != "unified":
        return []
    return [("memory is shared with the processor and what else runs", "显存与处理器及其他程序共用内存")]
