"""TGI: free memory after a warm-up prefill, less a margin, becomes cache slots."""

from estimator.serving.facts import facts, gib
from estimator.serving.memory import Cache, Memory, Share, Why
from estimator.serving.plan import Plan
from estimator.serving.vllm import per_token, rank_caches, weights_of


def memory(plan: Plan) -> Memory:
    """What one shard takes (TGI models/flash_causal_lm.py, warmup)."""
    table, weights = facts()["tgi"], weights_of(plan)
    outside, work = gib(table["non_torch_gib"]), warm_up(plan)
    token = int(per_token(rank_caches(plan)))
    needed = plan.users * plan.length * token
    left = None
    if plan.total is not None:
        share = plan.serving.gpu_memory_utilization or table["fraction"]
        left = int((share * plan.total - plan.taken - weights.bytes - outside - work) * table["wiggle"])
    held = needed if left is None else max(left, 0)
    tokens = held // token if token else 0
    concurrency = round(tokens / plan.length, 2)
    cache = Cache(
        bytes=held,
        needed=needed,
        per_token=float(token),
        tokens=tokens,
        concurrency=concurrency,
        longest=tokens if left is not None else None,
        users=int(concurrency) if left is not None else None,
        why=Why(f"{tokens:,} tokens x {token:,} B", f"{tokens:,} 个 token x {token:,} 字节"),
        need=lambda users, length: users * length * token,
    )
    shares = (Share("activations", work, Why("the warm-up prefill", "预热时的预填充")),)
    unsure = held // 20
    return Memory(
        weights=weights,
        cache=cache,
        shares=shares,
        outside=(outside // 2, outside, 2 * outside),
        uncertain=(unsure + plan.unsure_total, unsure),
        left=left,
        filled=None if left is None else weights.bytes + outside + work + max(left, 0),
        non_torch=outside,
    )


def warm_up(plan: Plan) -> int:
    """The widest rows of the prefill tokens, and their logits in fp32."""
    arch = plan.arch
    tokens = plan.serving.max_num_batched_tokens or facts()["tgi"]["prefill_tokens"]
    wide = 3 * arch.intermediate // plan.tensor + 4 * arch.hidden
    return int(tokens * (wide * 2 + arch.vocab * 6 // plan.tensor))
