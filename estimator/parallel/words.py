"""What is said of a layout: which share a card holds, what every card holds whole."""

from collections.abc import Iterator

from estimator.catalogue import find_gpu
from estimator.parallel.layout import Layout
from estimator.parallel.links import bus_of, has_fabric
from estimator.schema import Block, Run
from estimator.setting import Setting
from estimator.step.tape import FULL, HALF

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
    if not block.bytes or layout.weights_on != "none":
        return block  # offloaded: only buffers are left, which every card holds whole
    full = layout.stored == FULL and layout.gather == HALF and block.item == "weights"
    type_, type_zh = (", stored in fp32 and gathered in 16 bit", "，以 fp32 保存、以 16 位聚合") if full else ("", "")
    share, share_zh = (f": this card's share of {cards}", f"{cards} 卡分片后本卡的一份") if cards > 1 else ("", "")
    told_zh = f"{share_zh}{type_zh}".removeprefix("，")
    return block.model_copy(
        update={"why": f"{block.why}{share}{type_}", "why_zh": block.why_zh + (f"（{told_zh}）" if told_zh else "")}
    )


def layout_notes(run: Run, setting: Setting) -> Iterator[Note]:
    """What to know about the figures of a run on several cards."""
    count, layout = run.gpu_count or 1, setting.layout
    if layout.cut:
        yield ("parallel.engine", layout.engine, *_sharded(layout))
    elif layout.engine == "deepspeed":
        yield ("parallel.zero", layout.zero, *_zero(layout))
    elif layout.engine == "ddp":
        yield ("gpu_count", count, *COPIES)
    elif count > 1 and run.task != "train":
        yield ("gpu_count", count, *SHARES)
    if layout.stage and layout.engine == "fsdp2":
        yield ("parallel.reshard_after_forward", layout.reshard, *_kept_gathered(layout))
    elif layout.whole_gradients and setting.regime.accumulates:
        yield (
            "grad_accum",
            run.grad_accum,
            "gradients of the earlier micro-steps wait whole (no_sync); details.sync_each true (accelerate's "
            "sync_each_batch) reduces each and keeps one card's share",
            "前几个微步的梯度以完整形式保留（no_sync）；details.sync_each 设为 true（accelerate 的 sync_each_batch）"
            "则每步归约，只保留本卡的一份",
        )
    yield from _stages(run, layout)
    yield from _hardware(run)
    if layout.tensor > 1:
        yield ("parallel.tensor", layout.tensor, *_tensor(layout, setting.regime.adapter is not None))


def _sharded(layout: Layout) -> tuple[str, str]:
    """Rank 0 is the fullest: its pieces are rounded up."""
    name = {"fsdp1": "FSDP", "fsdp2": "FSDP2", "deepspeed": "ZeRO-3"}[layout.engine]
    if layout.shards == 1:
        return (
            f"{name} on one card: nothing is shared out; a unit is gathered beside its stored piece, and buffers are "
            "the same as on many cards",
            f"{name} 仅用一张卡：不做分片；使用中的单元与其保存的分片并存，缓冲区与多卡时相同",
        )
    copies = f", {layout.replicas} such groups" if layout.replicas > 1 else ""
    copies_zh = f"，共 {layout.replicas} 组" if layout.replicas > 1 else ""
    return (
        f"{name} over {layout.shards} cards{copies}: the figures are those of rank 0, the fullest card; activations, "
        "buffers and the unit in use do not shrink with more cards",
        f"{name}，{layout.shards} 卡分片{copies_zh}：数字为占用最多的 rank 0；激活、缓冲区与正在使用的单元不随卡数减少",
    )


def _zero(layout: Layout) -> tuple[str, str]:
    """Stages 1 and 2: weights are whole on every card."""
    dealt, dealt_zh = ("states", "优化器状态") if layout.zero == 1 else ("states and gradients", "优化器状态与梯度")
    if layout.shards == 1:
        return (
            "DeepSpeed without partitions: weights, fp32 copies and states are whole on every card",
            "DeepSpeed 未分片：每张卡都保存完整的权重、fp32 副本与优化器状态",
        )
    return (
        f"ZeRO-{layout.zero} deals out {dealt} to {layout.shards} cards; weights and activations stay whole. The "
        "figures are those of rank 0, which holds the embedding's part",
        f"ZeRO-{layout.zero} 由 {layout.shards} 张卡分担{dealt_zh}；权重与激活仍各存一份。"
        "数字为 rank 0（负责词嵌入部分）",
    )


def _kept_gathered(layout: Layout) -> tuple[str, str]:
    """PyTorch's pipeline schedules reduce once; torchtitan gathers once where nothing else is said."""
    if layout.reshard:
        return (
            "gradients of a stage wait whole until its last micro-batch (PyTorch's pipeline schedules)",
            "一个阶段的梯度以完整形式保留到最后一个微批（PyTorch 的流水线调度）",
        )
    return (
        "a stage stays gathered from its first micro-batch to its last, and its gradients wait whole (torchtitan under "
        "pipeline stages); parallel.reshard_after_forward true lets the parameters go between micro-batches",
        "一个阶段的参数从首个微批到末个微批始终保持聚合，梯度也完整保留（torchtitan 流水线下的默认做法）；"
        "parallel.reshard_after_forward 设为 true 可在微批之间释放参数",
    )


def _tensor(layout: Layout, adapters: bool) -> tuple[str, str]:
    """What every rank of a tensor-parallel group holds whole."""
    stream = "" if layout.sequence else ", the residual stream"
    stream_zh = "" if layout.sequence else "、残差流"
    logits = "" if layout.loss_parallel else ", the logits"
    logits_zh = "" if layout.loss_parallel else "、logits"
    last, last_zh = "the gradient that the embedding's backward makes", "词嵌入反向产生的梯度"
    if adapters:
        last, last_zh = "one of each adapter's two matrices", "每个适配器两个矩阵中的一个"
    return (
        f"{layout.tensor} cards share every layer; each holds whole: the norms{stream}{logits}, and {last}",
        f"每层由 {layout.tensor} 张卡共同承担；每张卡仍完整保存：归一化参数{stream_zh}{logits_zh}，以及{last_zh}",
    )


def queued(layout: Layout) -> tuple[str, str]:
    """Why a pipeline's stage keeps more than one micro-batch."""
    count = layout.in_flight - 1
    batches = "micro-batch" if count == 1 else "micro-batches"
    return f"of {count} further {batches} in flight", f"另外 {count} 个在途微批的激活"


def _stages(run: Run, layout: Layout) -> Iterator[Note]:
    """The stage that decides, experts dealt out, and Megatron's own kernels."""
    if layout.stage:
        name, name_zh = ("first", "第一个") if layout.stage == "first" else ("last", "最后一个")
        yield (
            "parallel.pipeline",
            layout.pipeline,
            f"{layout.pipeline} stages; the {name} needs most, with {layout.in_flight} "
            f"{'micro-batch' if layout.in_flight == 1 else 'micro-batches'} in flight: the "
            f"figures are its own{_evidence(layout)[0]}",
            f"{layout.pipeline} 个流水线阶段；{name_zh}阶段需求最大（{layout.in_flight} 个在途微批），数字为该阶段"
            f"{_evidence(layout)[1]}",
        )
    if layout.expert > 1:
        yield (
            "parallel.expert",
            layout.expert,
            f"experts dealt out to {layout.expert} cards, tokens balanced; the exchange as the engines' code makes it, "
            "described and not traced",
            f"专家由 {layout.expert} 张卡分担，假定 token 均衡；token 交换按引擎代码计算，未经跟踪验证",
        )
    if layout.engine == "megatron":
        yield (
            "parallel.engine",
            "megatron",
            "Megatron-core's weights, fp32 gradients and states; activations as transformers' code makes them",
            "权重、fp32 梯度与优化器状态按 Megatron-core 计算；激活按 transformers 的代码计算",
        )


def _evidence(layout: Layout) -> tuple[str, str]:
    """1F1B stages under FSDP2 were traced; the rest is the schedules' definition."""
    if layout.engine == "fsdp2" and not layout.reshard:
        return "", ""
    return "; read in the schedules' definition and not traced", "；依据调度定义，未经跟踪验证"


def _hardware(run: Run) -> Iterator[Note]:
    """Mixed cards and several machines: what holds the others back."""
    names = sorted(set(run.gpu)) if isinstance(run.gpu, list) else [run.gpu] if run.gpu else []
    if len(names) > 1:
        smallest = min((find_gpu(name) for name in names), key=lambda match: match.usable_low).name
        link, link_zh = _slowest_bus([find_gpu(name).name for name in names])
        yield (
            "gpu",
            names,
            f"mixed cards: every rank holds the same share, so {smallest}, the smallest, decides{link}",
            f"混用显卡：每张卡分到的份额相同，因此由最小的 {smallest} 决定{link_zh}",
        )
    elif names and run.task == "train" and run.parallel is not None and run.parallel.tensor > 1:
        yield from _without_fabric(find_gpu(names[0]).name)
    if (run.nodes or 1) > 1 and run.task == "train":
        yield (
            "nodes",
            run.nodes,
            f"{run.nodes} machines: the network between them is the slowest link; keep tensor parallel inside one",
            f"{run.nodes} 台机器：机器间网络是最慢的链路；张量并行请放在单机内",
        )


def _slowest_bus(names: list[str]) -> tuple[str, str]:
    """Unlike cards have no NVLink between them: they talk over the bus, at the pace of the slowest."""
    known = [(speed, bus) for bus, speed in map(bus_of, names) if speed]
    if len(known) < len(names):
        return "", ""
    speed, bus = min(known)
    return (
        f"; cards of different kinds share no NVLink, so {bus} ({speed:.0f} GB/s each way) is the slowest link",
        f"；不同型号的卡之间没有 NVLink，最慢的链路是 {bus}（单向 {speed:.0f} GB/s）",
    )


def _without_fabric(name: str) -> Iterator[Note]:
    """Tensor parallel sends activations in every layer; without NVLink they go over the bus."""
    bus, speed = bus_of(name)
    if speed and has_fabric(name) is False:
        yield (
            "parallel.tensor",
            name,
            f"{name} has no NVLink: tensor parallel exchanges activations in every layer over {bus} ({speed:.0f} GB/s "
            "each way), the slowest link",
            f"{name} 没有 NVLink：张量并行每层都要经 {bus}（单向 {speed:.0f} GB/s）交换激活值，这是最慢的链路",
        )
