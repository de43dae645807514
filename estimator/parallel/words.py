"""What is said of a layout: which share a card holds, what every card holds whole."""

from collections.abc import Iterator

from estimator.parallel.layout import Layout
from estimator.schema import Block, Run
from estimator.setting import Setting

Note = tuple[str, object, str, str]
"""Field, value, and the sentence in both languages."""

COPIES = (
    "each card holds a full copy (DistributedDataParallel); the figures are per card",
    "每张卡各保存一份完整副本（DDP）；数字为单卡",
)
SHARES = (
    "the layers are dealt out over the cards (device_map); the figures are the fullest card's",
    "各层分摊到多张卡上（device_map）；数字为占用最多的那张卡",
)


def shared_out(block: Block, layout: Layout) -> Block:
    """The block of what one card stores, with the number of cards that share it."""
    cards = (layout.shards if layout.cut else 1) * layout.tensor
    if cards == 1 or not block.bytes:
        return block
    why = f"{block.why}: this card's share of {cards}"
    return block.model_copy(update={"why": why, "why_zh": f"{block.why_zh}（{cards} 卡分片后本卡的一份）"})


def layout_notes(run: Run, setting: Setting) -> Iterator[Note]:
    """What to know about the figures of a run on several cards."""
    count, layout = run.gpu_count or 1, setting.layout
    if layout.cut:
        yield ("parallel.engine", layout.engine, *_sharded(layout))
    elif layout.engine == "ddp":
        yield ("gpu_count", count, *COPIES)
    elif count > 1 and run.task != "train":
        yield ("gpu_count", count, *SHARES)
    if layout.tensor > 1:
        yield ("parallel.tensor", layout.tensor, *_tensor(layout))


def _sharded(layout: Layout) -> tuple[str, str]:
    """Rank 0 is the fullest: its pieces are rounded up."""
    name = {"fsdp1": "FSDP", "fsdp2": "FSDP2", "deepspeed": "ZeRO-3"}[layout.engine]
    copies = f", {layout.replicas} such groups" if layout.replicas > 1 else ""
    copies_zh = f"，共 {layout.replicas} 组" if layout.replicas > 1 else ""
    return (
        f"{name} over {layout.shards} cards{copies}: the figures are those of rank 0, the fullest card; activations, "
        "buffers and the unit in use do not shrink with more cards",
        f"{name}，{layout.shards} 卡分片{copies_zh}：数字为占用最多的 rank 0；激活、缓冲区与正在使用的单元不随卡数减少",
    )


def _tensor(layout: Layout) -> tuple[str, str]:
    """What every rank of a tensor-parallel group holds whole."""
    stream = "" if layout.sequence else ", the residual stream"
    stream_zh = "" if layout.sequence else "、残差流"
    logits = "" if layout.loss_parallel else ", the logits"
    logits_zh = "" if layout.loss_parallel else "、logits"
    return (
        f"{layout.tensor} cards share every layer; each holds whole: the norms{stream}{logits}, and the gradient that "
        "the embedding's backward makes",
        f"每层由 {layout.tensor} 张卡共同承担；每张卡仍完整保存：归一化参数{stream_zh}{logits_zh}，"
        "以及词嵌入反向产生的梯度",
    )
