"""ExLlama: packed linears, 16-bit embeddings, the whole context's cache, and a fixed set of buffers."""

from estimator.serving.facts import facts, gib
from estimator.serving.kv_sizes import layer_caches
from estimator.serving.memory import Cache, Memory, Share, Why
from estimator.serving.plan import Plan
from estimator.serving.rank_weights import rank_weights


def memory(plan: Plan) -> Memory:
    """What one card takes; several share the layers."""
    count = plan.run.gpu_count or 1
    weights = rank_weights(plan.arch, plan.fmt, plan.itemsize, 1, count, absorbs=False)
    whole = rank_weights(plan.arch, plan.fmt, plan.itemsize, 1, 1, absorbs=False)
    caches = layer_caches(plan.arch, "fp16" if plan.kv_dtype == "auto" else plan.kv_dtype)
    token = sum(cache.layers * cache.token for cache in caches)
    tokens = plan.length * plan.users
    states = plan.users * sum(cache.layers * cache.state for cache in caches)
    held = -(-(tokens * token + states) // count)
    buffers = gib(facts()["exllama"]["buffers_gib"])
    why = Why(f"{tokens:,} tokens x {token:,} B", f"{tokens:,} 个 token x {token:,} 字节")
    return Memory(
        weights=weights,
        cache=Cache(held, held, float(token), tokens, float(plan.users), None, None, why),
        shares=(Share("activations", buffers, Why("buffers of the kernels", "内核缓冲区")),),
        outside=(gib(0.25), gib(0.45), gib(0.75)),
        uncertain=(buffers, buffers),
        peak_phase="decode",
        printed_weights=whole.bytes,
        printed_cache=tokens * token + states,
    )
