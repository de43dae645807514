"""SGLang: what a load leaves, less a share of the card kept free, is the pool of keys, values and states."""

from estimator.serving.adapters import adapter_slots, draft_of
from estimator.serving.facts import by_ranks, facts, gib, version_of
from estimator.serving.memory import Cache, Memory, Share, Why
from estimator.serving.plan import Plan
from estimator.serving.vllm import per_token, rank_caches, weights_of

MIB = 1 << 20


def memory(plan: Plan) -> Memory:
    """What one rank takes."""
    weights, lora, (draft, draft_token) = weights_of(plan), adapter_slots(plan), draft_of(plan)
    extra = gib(facts()["sglang"]["load_extra_gib"])
    held = weights.bytes + lora + draft + extra
    before, work = gib(facts()["sglang"]["before_gib"]["amd" if plan.amd else "nvidia"]), activation(plan)
    static = None if plan.total is None else int(fraction(plan) * (plan.total - plan.taken - before))
    pool = None if static is None else static - held
    slots, state = states_of(plan, pool)
    left = None if pool is None else pool - slots * state
    cache = cache_of(plan, left, slots, state, draft_token)
    graphs = gib(facts()["sglang"]["graphs_gib"]) if plan.graphs else 0
    unsure = int(0.05 * (left if left is not None and left > 0 else cache.bytes))
    shares = (
        Share("activations", work, Why("prefill of one chunk, outside the pool", "一个预填充分块，位于缓存池之外")),
        Share("adapter", lora, Why(f"{plan.serving.lora_slots} LoRA slots", f"{plan.serving.lora_slots} 个 LoRA 槽位")),
        Share("other", draft, Why("draft model", "草稿模型")),
        Share(
            "kv_cache",
            slots * state,
            Why(f"{slots:,} slots for recurrent states x {state:,} B", f"{slots:,} 个循环状态槽 x {state:,} 字节"),
        ),
        Share("allocator_rounding", extra, Why("what a load takes beyond its tensors", "加载时张量之外的占用")),
    )
    return Memory(
        weights=weights,
        cache=cache,
        shares=tuple(one for one in shares if one.bytes),
        outside=(before // 2, before + graphs, 3 * before // 2 + 2 * graphs),
        uncertain=(unsure + plan.unsure_total, unsure),
        left=left,
        filled=None if static is None else static + before + work,
        beyond=(0, graphs, 2 * graphs),
        non_torch=before,
        graphs=graphs,
        printed_weights=held,
    )


def fraction(plan: Plan) -> float:
    """``mem_fraction_static``: stated, by ranks in old versions, computed from the card in newer ones."""
    table, total = facts()["sglang"], plan.total or 0
    if plan.serving.gpu_memory_utilization:
        return float(plan.serving.gpu_memory_utilization)
    multimodal = table["fraction"]["multimodal_share"] if plan.arch.vision else 1.0
    if plan.version < version_of(table["fraction"]["computed_since"]):
        return float(by_ranks(table["fraction"]["by_ranks"], plan.ranks)) * float(multimodal)
    return (1 - reserve(plan) / max(total // MIB, 1)) * float(multimodal)


def reserve(plan: Plan) -> float:
    """MiB kept free for chunks, graphs and ranks."""
    table, total = facts()["sglang"], (plan.total or 0) // MIB
    row = chunk_row(plan)
    captured = row["many" if plan.tensor >= 4 else "few"]
    keep = table["reserve"]["base_mib"] + table["reserve"]["mib_per_chunk_token"] * row["chunk"]
    keep += table["reserve"]["mib_per_captured"] * captured + table["reserve"]["mib_per_rank"] * plan.ranks
    return float(max(keep, table["reserve"]["large_mib"]) if total > table["reserve"]["large_from_mib"] else keep)


def chunk_row(plan: Plan) -> dict[str, int]:
    """The defaults for the card's memory."""
    total = (plan.total or 0) // MIB
    rows: list[dict[str, int]] = facts()["sglang"]["computed"]
    return [row for row in rows if row["from_mib"] <= total][-1]


def activation(plan: Plan) -> int:
    """A chunk's widest rows and the logits of the running sequences."""
    chunk = plan.serving.max_num_batched_tokens or chunk_row(plan)["chunk"]
    wide = 3 * plan.arch.intermediate // plan.tensor + 4 * plan.arch.hidden
    return chunk * wide * 2 + (plan.serving.max_num_seqs or plan.users) * plan.arch.vocab * 4


def states_of(plan: Plan, pool: int | None) -> tuple[int, int]:
    """Slots for recurrent states, and bytes of one: as many as the running requests take, else a share of the pool."""
    one, table = sum(cache.layers * cache.state for cache in rank_caches(plan)), facts()["sglang"]["states"]
    if not one:
        return 0, 0
    stated = plan.serving.max_num_seqs
    if pool is None or stated:
        slots = table["slots_per_request"] * (stated or plan.users) + 1
        return (slots if pool is None else min(slots, max(pool, 0) // one)), one
    return int(max(pool, 0) * table["ratio"] / (1 + table["ratio"])) // one, one


def token_of(plan: Plan) -> int:
    """Bytes of a token in all layers; windowed layers of some models have a smaller pool of their own."""
    caches, table = rank_caches(plan), facts()["sglang"]["windows"]
    if plan.version < version_of(table["since"]) or plan.arch.model_type not in table["models"]:
        return int(per_token(caches))
    whole = per_token(tuple(cache for cache in caches if not cache.window))
    return int(whole + table["share"] * per_token(tuple(cache for cache in caches if cache.window)))


def cache_of(plan: Plan, left: int | None, slots: int, state: int, draft_token: int) -> Cache:
    """Keys and values in the pool's part for them: tokens are real ones, full layers keep all of them."""
    token = token_of(plan) + draft_token
    each = int(facts()["sglang"]["states"]["slots_per_request"])

    def need(users: int, length: int) -> int:
        return users * length * token + max(each * users + 1 - slots, 0) * state

    needed = need(plan.users, plan.length)
    held = plan.users * plan.length * token if left is None else max(left, 0)
    tokens = held // token if token else 0
    possible = min(int(tokens / plan.length), (slots - 1) // each) if state else int(tokens / plan.length)
    return Cache(
        bytes=held,
        needed=held if left is None else needed,
        per_token=float(token),
        tokens=tokens,
        concurrency=round(tokens / plan.length, 2),
        longest=tokens if left is not None else None,
        users=max(possible, 0) if left is not None else None,
        why=Why(f"{tokens:,} tokens x {token:,} B", f"{tokens:,} 个 token x {token:,} 字节"),
        need=None if left is None else need,
    )
