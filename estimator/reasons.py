"""Why each traced part of the peak is as large as it is, in figures, in English and Chinese."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from estimator import caches
from estimator.architecture import Architecture
from estimator.schema import Block
from estimator.step.program import Dimensions, Kind, Program, Walk
from estimator.step.regime import Regime

SMALL_SHARE = 0.99
"""What is told by token must come to this share of the whole."""
SMALL_BUFFER = 1 << 20
"""Buffers below this many bytes are left out of the summary of the weights."""

Entry = tuple[str, int, int, int]
"""Scope, kind, how many, bytes."""


class Situation(NamedTuple):
    """What the sentences mention: the model, the dimensions, and how it is run."""

    arch: Architecture
    at: Dimensions
    regime: Regime
    phase: str
    whole: bool
    """Nothing that the forward kept is gone yet."""
    cached: caches.CacheContents | None = None
    """What is cached at the end, where the peak lies in decoding."""

    @property
    def tokens(self) -> int:
        """Tokens of all rows."""
        return self.at.batch * self.at.length


SCOPES = {"norm": "归一化", "attention": "注意力", "mlp": "MLP", "experts": "专家", "": "其他"}


def blocks(program: Program, walked: Walk, alive: Mapping[int, int], at: Situation) -> list[Block]:
    """The traced part of a moment as blocks, one per item."""
    by_item: dict[str, list[Entry]] = {}
    for kind, count in alive.items():
        item, scope = _item(program.kinds[kind], at.arch), program.kinds[kind][3]
        by_item.setdefault(item, []).append((scope, kind, count, count * walked.size(program.kinds[kind])))
    return [_block(item, entries, program, at) for item, entries in by_item.items()]


def _item(kind: Kind, arch: Architecture) -> str:
    """The item of a storage; what is as large as the embedding or the head is the gradient of one of them."""
    rows, width, item, _ = kind
    if item == "other" and rows == "1" and width and width % (arch.vocab * (arch.embedding_dim or arch.hidden)) == 0:
        return "gradients"
    return item


def _block(item: str, entries: list[Entry], program: Program, at: Situation) -> Block:
    total = sum(entry[3] for entry in entries)
    why, why_zh = _sentence(item, total, entries, program, at)
    if item == "kv_cache":
        why, why_zh = _cache(total, entries, program, at)
    scopes = _by_scope(entries)
    if len(scopes) == 1:
        return block(item, total, why, why_zh)
    parts = [block(item, size, scope or "between layers", SCOPES.get(scope, scope)) for scope, size in scopes]
    return block(item, total, why, why_zh, parts)


def block(item: str, size: int, why: str, why_zh: str, parts: list[Block] | None = None) -> Block:
    """A block of the breakdown."""
    return Block(item=item, bytes=size, why=why, why_zh=why_zh, parts=parts)


def _by_scope(entries: Iterable[Entry]) -> list[tuple[str, int]]:
    scopes: dict[str, int] = {}
    for scope, _, _, size in entries:
        scopes[scope] = scopes.get(scope, 0) + size
    return sorted(scopes.items(), key=lambda pair: -pair[1])


def _sentence(item: str, total: int, entries: list[Entry], program: Program, at: Situation) -> tuple[str, str]:
    if item == "activations":
        return _with_mask(total, _mask_bytes(entries, program), at)
    if item in ("logits_loss", "other") and (each := _logit_bytes(entries, program, at)):
        return _logits(each, at)
    if item == "logits_loss" and at.regime.loss == "chunked":
        return "one tile of logits at a time, never the full matrix", "每次只算一块 logits，不产生完整矩阵"
    if item == "weights":
        return TEXTS["gathered"]
    if item == "other" and not at.regime.training:
        return "the next tokens", "下一个 token"
    if item in EACH:
        return _by_token(item, total, at)
    if item in ("gradients", "weight_casts"):
        return _by_element(item, total, at)
    return TEXTS.get(item, (f"{total:,} B", f"{total:,} 字节"))


EACH = ("recompute", "other")
"""Items of a training step told in bytes per token."""


def _by_token(item: str, total: int, at: Situation) -> tuple[str, str]:
    """So many bytes for each token."""
    each, (why, why_zh) = round(total / max(at.tokens, 1)), TEXTS[item]
    if not at.regime.training or each * at.tokens < SMALL_SHARE * total:
        return why, why_zh
    return f"{at.tokens:,} tokens x {each:,} B: {why}", f"{at.tokens:,} 个 token x {each:,} 字节：{why_zh}"


def _by_element(item: str, total: int, at: Situation) -> tuple[str, str]:
    """So many parameters, in the type of the gradient or of the copy."""
    regime, (why, why_zh) = at.regime, TEXTS[item]
    size = 2 if item == "weight_casts" else regime.adapter.itemsize if regime.adapter else regime.itemsize
    return f"{total // size:,} parameters x {size} B: {why}", f"{total // size:,} 个参数 x {size} 字节：{why_zh}"


def workspaces(total: int, training: bool) -> tuple[str, str]:
    """One for each thread that multiplies: forward, and backward when training."""
    count, (why, why_zh) = 2 if training else 1, TEXTS["workspace"]
    return f"{count} x {total // count:,} B: {why}", f"{count} x {total // count:,} 字节：{why_zh}"


MASK_ROWS = frozenset(("ss", "bss", "bss8", "sK", "bsK", "bsK8", "sW", "bsW", "bsW8"))
MASK_WIDTH = 4
"""Bytes of a mask's element at most; scores have one for every head."""


def _mask_bytes(entries: list[Entry], program: Program) -> int:
    """Bytes of what has an element for each pair of tokens, whatever the number of heads."""
    found = 0
    for _, kind, _, size in entries:
        rows, width, _, _ = program.kinds[kind]
        name = rows[1] if isinstance(rows, tuple) and len(rows) == 2 else rows
        if name in MASK_ROWS and width <= MASK_WIDTH:
            found += size
    return found


def _with_mask(total: int, mask: int, at: Situation) -> tuple[str, str]:
    """The activations' reason, their mask told apart where it is a tenth of them or more."""
    if mask * 10 < total or mask < SMALL_BUFFER:
        return _activations(total, at)
    why, why_zh = _activations(total - mask, at)
    size = mask / (1 << 30)
    return f"{why}, and {size:.2f} GiB attention mask", f"{why_zh}，另有 {size:.2f} GiB 注意力掩码"


def _activations(total: int, at: Situation) -> tuple[str, str]:
    layers, regime = at.arch.layers, at.regime
    if at.at.source:
        layers, at = _both_stacks(at)
    if at.phase == "decode":
        return f"one layer at work on {at.at.batch:,} new tokens", f"一层处理 {at.at.batch:,} 个新 token 时的张量"
    if not regime.training:
        return f"one layer at work on {at.tokens:,} tokens", f"一层处理 {at.tokens:,} 个 token 时的张量"
    if regime.offload_saved or regime.checkpointing == "offload":
        each = round(total / max(at.tokens, 1))
        return (
            f"{at.tokens:,} tokens x {each:,} B left on the card; the layers' inputs wait in host memory",
            f"{at.tokens:,} 个 token x {each:,} 字节留在显卡上；各层输入暂存于主机内存",
        )
    if not at.whole:
        each = round(total / max(at.tokens, 1))
        return (
            f"{at.tokens:,} tokens x {each:,} B that the backward has yet to use",
            f"{at.tokens:,} 个 token x {each:,} 字节，反向尚未用到的部分",
        )
    each = round(total / max(layers * at.tokens, 1))
    figures, figures_zh = (
        f"{layers} layers x {at.tokens:,} tokens x {each:,} B",
        f"{layers} 层 x {at.tokens:,} 个 token x {each:,} 字节",
    )
    kept, kept_zh = _kept(regime)
    return f"{figures}{kept}", f"{figures_zh}{kept_zh}"


def _both_stacks(at: Situation) -> tuple[int, Situation]:
    """Layers of encoder and decoder, and the mean of what they read; of a prompt what the encoder reads."""
    read = (at.at.source + at.at.length) // 2 if at.regime.training else at.at.source
    return at.arch.layers + (at.arch.decoder_layers or at.arch.layers), at._replace(at=at.at._replace(length=read))


KEPT = {
    "none": (" kept for the backward", "，为反向保留"),
    "full": (": the layers' inputs (checkpointing)", "：各层输入（梯度检查点）"),
    "int8": (
        ": the layers' inputs (checkpointing) and the inputs that bitsandbytes' int8 linears hold on to",
        "：各层输入（梯度检查点）以及 bitsandbytes int8 线性层保留的输入",
    ),
    "selective-op": (
        ": the layers' inputs, the results of attention and of every second matrix product (selective checkpointing)",
        "：各层输入、注意力结果与一半矩阵乘法结果（选择性检查点）",
    ),
    "selective-attention": (
        " kept for the backward; attention's core is computed again (selective checkpointing)",
        "，为反向保留；注意力核心重新计算（选择性检查点）",
    ),
    "every": (
        " on average: of one layer in {every} the input alone (checkpointing), of the others everything",
        "（平均）：每 {every} 层中有一层只保留输入（梯度检查点），其余全部保留",
    ),
}
"""What the forward keeps, by kind of checkpointing."""


def _kept(regime: Regime) -> tuple[str, str]:
    kind = regime.checkpointing
    if regime.quantised == "int8" and kind == "full":
        kind = "int8"
    kept, kept_zh = KEPT[kind]
    return kept.format(every=regime.every), kept_zh.format(every=regime.every)


def _cache(total: int, entries: list[Entry], program: Program, at: Situation) -> tuple[str, str]:
    """In decoding what is cached at the end and the copy being made; in the prompt what is there by then."""
    if at.cached is not None:
        more = total - at.cached.bytes
        return caches.told(at.cached, more if more >= SMALL_BUFFER else 0)
    held = caches.contents(program, {kind: count for _, kind, count, _ in entries}, at.at)
    why, why_zh = caches.told(held, 0)
    if not at.arch.sliding_window or at.regime.cache == "static" or at.at.length <= at.arch.sliding_window:
        return why, why_zh
    return (
        f"{why}; layers with a window too hold the whole prompt until the first token",
        f"{why_zh}；滑动窗口层在生成首个 token 前也保留整个提示",
    )


def _logit_bytes(entries: list[Entry], program: Program, at: Situation) -> int:
    """Bytes per token and vocabulary entry that are alive in logits-sized tensors."""
    found = 0
    for _, kind, count, _ in entries:
        rows, width, _, _ = program.kinds[kind]
        if rows in ("T", "Tm") and width % at.arch.vocab == 0:
            found += count * width // at.arch.vocab
    return found


def _logits(each: int, at: Situation) -> tuple[str, str]:
    vocab = at.arch.vocab
    return (
        f"{at.tokens:,} tokens x vocabulary {vocab:,} x {each} B",
        f"{at.tokens:,} 个 token x 词表 {vocab:,} x {each} 字节",
    )


TEXTS = {
    "waiting": ("one copy from the earlier micro-steps", "前几个微步累积的一份梯度"),
    "buckets": ("DistributedDataParallel's gradient buckets", "DistributedDataParallel 的梯度桶"),
    "gathered": ("units in use, gathered whole from the other cards", "正在使用的单元，已从其他卡聚合为完整参数"),
    "communication": ("buffers of all-gather and reduce-scatter", "all-gather 与 reduce-scatter 的缓冲区"),
    "optimizer_temp": ("temporaries of the optimizer's step", "优化器更新时的临时张量"),
    "loading": (
        "passing tensors of loading: the 16-bit form of a linear being packed, or fp32 weights before the cast",
        "加载时的过渡张量：正在量化的线性层的 16 位副本，或转换前的 fp32 权重",
    ),
    "scores": (
        "fp32 scores of every generated token, gathered and stacked",
        "每个生成 token 的 fp32 分数，收集后再堆叠",
    ),
    "workspace": ("cuBLAS", "cuBLAS"),
    "weight_casts": ("half-precision copies of weights in use", "使用中的权重的半精度副本"),
    "recompute": ("one layer computed again", "为反向重新计算的一层"),
    "gradients": ("gradients made by then", "此刻已产生的梯度"),
    "other": ("temporaries of the backward, gradients of activations", "反向过程的临时张量与激活梯度"),
    "logits_loss": ("values of the loss", "损失值"),
}
