"""vLLM: a share of the card, less weights and what a profiling run takes, is cut into cache blocks."""

from estimator.serving.adapters import adapter_slots, draft_of
from estimator.serving.facts import at_version, by_ranks, facts, gib
from estimator.serving.kv_sizes import LayerCache, layer_caches
from estimator.serving.memory import Cache, Memory, Share, Why
from estimator.serving.plan import Plan
from estimator.serving.pool import Pool, pool_of
from estimator.serving.profile import (
    Profile,
    graphs_counted,
    graphs_of,
    load_extra,
    non_torch,
    profile_of,
    profiles_length,
)
from estimator.serving.rank_weights import rank_weights
from estimator.weights import Weights

GROUPED_SINCE = (0, 9)
PRINTS_CAPACITY_SINCE = (0, 21)


def memory(plan: Plan) -> Memory:
    """What one rank takes."""
    weights = weights_of(plan)
    slots, (draft, draft_token) = adapter_slots(plan), draft_of(plan)
    loading = load_extra(plan, weights)
    profile = profile_of(plan)
    pool = with_draft(pool_for(plan), draft_token)
    outside, graphs = non_torch(plan), graphs_of(plan)
    budget = budget_of(plan)
    left = None
    if budget is not None:
        left = budget - weights.bytes - loading - slots - draft - profile.peak - outside - graphs_counted(plan)
    cache = cache_of(plan, pool, left, profile.limits.tokens)
    unsure = int(spread_of(plan) * max(left or cache.bytes, profile.peak))
    return Memory(
        weights=weights,
        cache=cache,
        shares=tuple(share for share in shares_of(plan, profile, slots, draft, loading) if share.bytes),
        outside=(outside // 2, outside + graphs, outside + 2 * graphs),
        uncertain=(unsure + plan.unsure_total, unsure),
        left=left,
        filled=budget,
        beyond=beyond_share(plan),
        non_torch=outside,
        graphs=graphs,
        printed_weights=weights.bytes + loading + slots + draft,
    )


def utilization(plan: Plan) -> float:
    """The share of the card: stated, else the version's default."""
    stated = plan.serving.gpu_memory_utilization
    return float(stated or at_version(facts()["vllm"]["utilization"], plan.version)["value"])


def budget_of(plan: Plan) -> int | None:
    """Bytes that the engine may use."""
    return None if plan.total is None else int(utilization(plan) * plan.total)


def beyond_share(plan: Plan) -> tuple[int, int, int]:
    """Graphs that the profile did not count: captured after the cache, all of them up to 0.20."""
    rest = graphs_of(plan) - graphs_counted(plan)
    return 0, rest, 2 * rest


def pool_for(plan: Plan) -> Pool:
    """The layout of one rank's cache."""
    caches = rank_caches(plan)
    return pool_of(caches, grouped=plan.version >= GROUPED_SINCE or any(cache.state for cache in caches))


def rank_caches(plan: Plan) -> tuple[LayerCache, ...]:
    """The caches of one rank: of the layers of its stage."""
    dtype = "fp32" if plan.kv_dtype == "auto" and plan.itemsize == 4 else plan.kv_dtype
    caches = layer_caches(plan.arch, dtype, plan.tensor)
    if plan.stages == 1:
        return caches
    return tuple(cache._replace(layers=-(-cache.layers // plan.stages)) for cache in caches)


def with_draft(pool: Pool, token: int) -> Pool:
    """A draft model's keys and values lie in the same blocks."""
    blocks = [group.block for group in pool.groups if group.block]
    return pool._replace(block_bytes=pool.block_bytes + token * max(blocks, default=0)) if token else pool


def cache_of(plan: Plan, pool: Pool, left: int | None, batched: int) -> Cache:
    """The cache in ``left`` bytes; without a card as many as the requests take."""
    needed = pool.bytes_for(plan.users, plan.length, batched)
    held = needed if left is None else max(left, 0)
    least = held if left is None else max(held - least_rank(plan), 0)
    concurrency = pool.concurrency(least, plan.length, batched)
    tokens = pool.printed_tokens(least, plan.length)
    if len(pool.groups) > 1 and plan.version >= PRINTS_CAPACITY_SINCE:
        tokens = int(concurrency * plan.length)
    return Cache(
        bytes=held,
        needed=needed,
        per_token=per_token(rank_caches(plan)),
        tokens=tokens,
        concurrency=round(concurrency, 2),
        longest=pool.longest(least, batched) if left is not None else None,
        users=int(concurrency) if left is not None else None,
        why=cache_why(plan, pool, left, tokens),
        need=None if profiles_length(plan) else lambda users, length: pool.bytes_for(users, length, batched),
    )


def least_rank(plan: Plan) -> int:
    """What the rank with the least memory has less: tokens are counted there."""
    return gib(by_ranks(facts()["vllm"]["least_rank"]["amd"], plan.tensor)) if plan.amd else 0


def per_token(caches: tuple[LayerCache, ...]) -> float:
    """Bytes that one more token takes in all layers that keep it."""
    return float(sum(cache.layers * cache.token for cache in caches))


def cache_why(plan: Plan, pool: Pool, left: int | None, tokens: int) -> Why:
    """How the cache's size came about."""
    size, count = pool.block_bytes, pool.blocks(left or 0)
    if left is None:
        cost = pool.bytes_for(1, plan.length, plan.length) // size
        return Why(
            f"{plan.users:,} requests x {plan.length:,} tokens: {cost:,} blocks each x {size:,} B",
            f"{plan.users:,} 个请求 x {plan.length:,} 个 token：每个 {cost:,} 块 x {size:,} 字节",
        )
    share = f"{utilization(plan):g}"
    return Why(
        f"the rest of {share} of the card: {count:,} blocks x {size:,} B",
        f"显存的 {share} 扣除其余部分：{count:,} 块 x {size:,} 字节",
    )


def shares_of(plan: Plan, profile: Profile, slots: int, draft: int, loading: int) -> list[Share]:
    """Activations, adapter slots and the draft model."""
    limits = profile.limits
    if profile.sampler >= profile.forward:
        work = Why(
            f"sampling {limits.seqs:,} sequences over a vocabulary of {plan.arch.vocab:,}",
            f"对 {limits.seqs:,} 个序列、{plan.arch.vocab:,} 词表采样",
        )
    else:
        work = Why(f"a forward of {limits.tokens:,} tokens", f"一次前向处理 {limits.tokens:,} 个 token")
    extra, extra_zh = "", ""
    if profile.workspaces:
        extra += f" + {profile.workspaces:,} B of expert workspaces"
        extra_zh += f" + 专家内核工作区 {profile.workspaces:,} 字节"
    if profile.encoder:
        extra += f" + {profile.encoder:,} B of profiled images"
        extra_zh += f" + 预置图像 {profile.encoder:,} 字节"
    served = plan.serving.lora_slots
    return [
        Share("activations", profile.peak, Why(work.english + extra, work.chinese + extra_zh)),
        Share("adapter", slots, Why(f"{served} LoRA slots", f"{served} 个 LoRA 槽位")),
        Share("other", draft, Why("draft model", "草稿模型")),
        Share("allocator_rounding", loading, Why("segments left over from loading", "加载时剩余的显存段")),
    ]


def spread_of(plan: Plan) -> float:
    """How far the cache may lie off, as a share of it."""
    table = facts()["vllm"]["spread"]
    if plan.amd:
        return float(table["amd"])
    mixed = plan.arch.experts is not None or plan.arch.vision is not None
    return float(table["mixed" if mixed else "plain"])


def weights_of(plan: Plan) -> Weights:
    """The weights of one rank."""
    fmt = facts()["vllm"]["formats"].get(plan.fmt, plan.fmt)
    return rank_weights(plan.arch, fmt, plan.itemsize, plan.tensor, plan.stages, packs_experts=True)
