"""AutoAWQ's own generation: packed linears, fused layers, a window of keys and values made with the model.

Read in casper-hansen/AutoAWQ 0.1.8, awq/modules/fused/{attn,block,cache,model}.py, awq/utils/fused_utils.py and
awq/models/: keys and values of ``max_seq_len`` (``max_new_tokens`` before 0.2) positions in fp16 for every sequence of
the batch, rolled when they are full, so the longer of prompt and answer is counted; every layer has a rotary table of
twice as many positions in complex64, or ALiBi's bias. The prompt's attention is written out: fp16 scores, their fp32
copy and its softmax live together. Queries, keys and values of Llama's kin are joined in new tensors while the old
ones are still held. The head makes logits for all positions and the models that do turn them to fp32.
"""

from estimator.architecture import Architecture
from estimator.catalogue import weight_format
from estimator.habits import HALF_LOSS
from estimator.inventory import inventory
from estimator.schema import Phase
from estimator.serving.facts import gib
from estimator.serving.kv_sizes import layer_caches
from estimator.serving.memory import Cache, Memory, Share, Why
from estimator.serving.plan import Plan
from estimator.serving.rank_weights import rank_weights

JOINED = {"llama", "mistral", "mixtral", "qwen2", "gemma", "gemma2", "starcoder2", "stablelm", "cohere", "qwen3"}
"""Types whose layers are fused with queries, keys and values joined."""

SCORE_BYTES = 2 + 4 + 4
"""fp16 scores, fp32 copy, softmax."""

WORKSPACE = Share("workspace", 8_519_680, Why("8,519,680 B: cuBLAS", "8,519,680 字节：cuBLAS"))

UNSURE, UNSURE_UNFUSED = 0.035, 0.08
"""Share of everything below and above: workspaces, kernels' buffers; for others the prompt's attention as well."""


def memory(plan: Plan) -> Memory:
    """What one card takes; several share the layers."""
    count, users = plan.run.gpu_count or 1, plan.users
    weights = rank_weights(plan.arch, plan.fmt, plan.itemsize, 1, count, absorbs=False)
    token = sum(cache.layers * cache.token for cache in layer_caches(plan.arch, "fp16"))
    prompt, fused = int(plan.run.context_len or 1), is_fused(plan.arch)
    positions = max(prompt, plan.length - prompt) if fused else plan.length
    held = -(-positions * users * token // count)
    counted = Why(
        f"{positions * users:,} positions x {token:,} B, made with the model",
        f"{positions * users:,} 个位置 x {token:,} 字节，加载时即分配",
    )
    shares: tuple[Share, ...] = (_logits(plan, prompt),)
    phase: Phase = "prefill"
    if fused:
        shares, phase = _shares(plan, positions, prompt, count)
    unsure = int((UNSURE if fused else UNSURE_UNFUSED) * (weights.bytes + held + sum(share.bytes for share in shares)))
    return Memory(
        weights=weights,
        cache=Cache(held, held, float(token), positions * users, float(users), None, None, counted),
        shares=shares,
        outside=(gib(0.25), gib(0.45), gib(0.75)),
        uncertain=(unsure, unsure),
        peak_phase=phase,
    )


def is_fused(arch: Architecture) -> bool:
    """Whether AutoAWQ puts its own blocks in the place of the model's; of Falcon only in the 7B's (one key head)."""
    return arch.model_type in JOINED or arch.model_type == "mpt" or (arch.model_type == "falcon" and arch.kv_heads == 1)


def _shares(plan: Plan, positions: int, prompt: int, count: int) -> tuple[tuple[Share, ...], Phase]:
    """What lies beside weights and cache at the peak: the end of loading, the prompt's attention or its logits."""
    tables, joined = _tables(plan, positions, count), _joined(plan, count)
    scores, logits = _attention(plan, prompt), _logits(plan, prompt)
    rest = _residual(plan, prompt)
    found: list[tuple[tuple[Share, ...], Phase]]
    found = [((joined,), "load"), ((scores, rest, WORKSPACE), "prefill"), ((logits, WORKSPACE), "prefill")]
    largest, phase = max(found, key=lambda one: sum(share.bytes for share in one[0]))
    return (tables, *largest), phase


def _tables(plan: Plan, positions: int, count: int) -> Share:
    arch, layers = plan.arch, -(-plan.arch.layers // count)
    if arch.positions == "alibi":
        size, kind = arch.heads * 4, f"{arch.heads} heads x 4 B"
    else:
        size, kind = arch.head_dim * 8, f"2 x {arch.head_dim // 2} x 8 B"
    why = Why(f"{layers} layers x {positions:,} positions x {kind}", f"{layers} 层 x {positions:,} 个位置 x {kind}")
    return Share("other", layers * positions * size, why)


def _joined(plan: Plan, count: int) -> Share:
    """What loading holds twice: packed queries, keys and values, or a head whose file has it beside the embedding."""
    arch = plan.arch
    if arch.model_type == "falcon":
        why = f"{arch.vocab:,} x {arch.hidden:,} x 2 B"
        return Share(
            "other", arch.vocab * arch.hidden * 2, Why(f"head before it is tied, {why}", f"绑定前的输出层 {why}")
        )
    parts = inventory(arch)
    numel = sum(
        weight.numel
        for layer in parts.layers
        for weight in parts.kinds[layer].weights
        if weight.name.removesuffix(".weight").rsplit(".", 1)[-1] in ("q_proj", "k_proj", "v_proj")
    )
    bits = weight_format(plan.fmt).bits if plan.fmt else 0
    packed = int(numel * bits / 8) // count if arch.model_type in JOINED else 0
    joined = Why(
        f"queries, keys and values joined: {numel:,} parameters packed again", f"合并 q/k/v：{numel:,} 个参数的副本"
    )
    return Share("weight_casts", packed, joined)


def _attention(plan: Plan, prompt: int) -> Share:
    """Written-out scores of one layer."""
    heads, size = plan.arch.heads, plan.users * plan.arch.heads * prompt * prompt * SCORE_BYTES
    why = f"{plan.users} x {heads} x {prompt:,} x {prompt:,} x (2 + 4 + 4) B"
    return Share("activations", size, Why(f"attention scores {why}", f"注意力分数 {why}"))


def _residual(plan: Plan, prompt: int) -> Share:
    """Residual stream, norm, joined projection, rotated queries and keys, stored keys, repeated keys and values."""
    arch = plan.arch
    query, keys = arch.heads * arch.head_dim, arch.kv_width
    width = 2 * arch.hidden + (query + 2 * keys) + keys
    width += query + keys if arch.positions != "alibi" else 0
    width += 2 * query if arch.model_type in JOINED else 0
    mask = 2 * prompt * prompt
    why = f"{plan.users * prompt:,} x {width:,} x 2 B + {mask:,} B"
    return Share("activations", plan.users * prompt * width * 2 + mask, Why(f"layer {why}", f"层内 {why}"))


def _logits(plan: Plan, prompt: int) -> Share:
    half = plan.arch.model_type in HALF_LOSS
    tokens, sizes = prompt * plan.users, "2" if half else "2 + 4"
    made = Why(
        f"{tokens:,} prompt tokens x vocabulary {plan.arch.vocab:,} x ({sizes}) B",
        f"{tokens:,} 个提示 token x 词表 {plan.arch.vocab:,} x ({sizes}) 字节",
    )
    return Share("logits_loss", tokens * plan.arch.vocab * (2 if half else 6), made)
