"""llama.cpp and Ollama: weights, cache and one compute buffer, all taken at start.

Rules L1 to L4 of the published start-ups: tensors by the file's own mix; the cache of every token of every sequence;
the largest part of the graph for a micro-batch. 20 loads within 0.02 %, 39 caches within print resolution, 35 of 40
buffers within 1.1 %.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from estimator.architecture import Architecture
from estimator.catalogue.gguf import file_types
from estimator.errors import EstimatorError
from estimator.inventory import inventory
from estimator.schema import Assumption
from estimator.serving.facts import facts, gib
from estimator.serving.kv_sizes import LayerCache, layer_caches
from estimator.serving.llama_layers import FileBytes, dealt, file_bytes, on_cards
from estimator.serving.memory import Cache, Memory, Share, Why, note
from estimator.serving.plan import Plan
from estimator.step.regime import Regime
from estimator.weights import Part, Weights, weights

FULL = 4
UBATCH = 512
PLAIN = {4: "F32", 2: "F16"}
OLD_CONTEXT = 512
"""Context of builds before mid-2024 that were not told; their graph without flash attention took one row less."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How a file lies: layers on cards, the card of each, whether the output does, and layers whose experts do not."""

    first: int
    cards: tuple[int, ...]
    output: bool
    experts_on_host: frozenset[int]
    count: int


def memory(plan: Plan) -> Memory:
    """What the fullest card takes, and what all take together."""
    sizes, spread = file_bytes(plan.arch, file_type(plan)), spread_of(plan)
    tokens = plan.length * plan.users
    caches = by_kind(plan, tokens)
    held = cards_weights(sizes, spread)
    cached = [sum(caches.get(kind, 0) * count for kind, count in kinds) for kinds in kinds_of(plan.arch, spread)]
    buffer = compute_buffer(plan, spread, tokens)
    fullest = max(range(spread.count), key=lambda card: held[card] + cached[card])
    copied = expert_copy(plan, sizes) if spread.experts_on_host else 0
    context = [gib(value) for value in facts()["llama_cpp"]["context_gib"]]
    return Memory(
        weights=told_weights(plan, spread, held[fullest]),
        cache=cache_of(plan, cached[fullest], sum(cached), tokens),
        shares=(Share("activations", buffer, buffer_why(plan)), *tower_of(plan, spread)),
        outside=(context[0], context[1], context[2]),
        uncertain=(unasked_logits(plan, buffer), max(buffer // 6, copied - buffer)),
        compute_buffer=buffer,
        host=host_bytes(plan, sizes, spread, caches, tokens),
        peak_phase="decode",
        printed_weights=sum(held),
        printed_cache=sum(cached),
        layers_on_card=len(spread.cards) + spread.output,
        notes=notes_on(plan, spread),
    )


def file_type(plan: Plan) -> str:
    """The GGUF type of the run; plain weights are an F16 file.

    gpt-oss as published: Q8_0 beside its experts in files for llama.cpp, 16 bit in Ollama's tag (12.1 and 13.8 GB).
    """
    name = plan.fmt or PLAIN.get(plan.itemsize, "F16")
    if name == "mxfp4":
        name = "F16" if plan.engine == "ollama" and plan.arch.model_type == "gpt_oss" else "MXFP4_MOE"
    if name in file_types():
        return name
    raise EstimatorError(
        f"{plan.engine} reads GGUF files; weight_format {name} is none: use one of Q4_K_M, Q5_K_M, Q8_0, F16",
        f"{plan.engine} 只读取 GGUF 文件；{name} 不是 GGUF 类型，可用 Q4_K_M、Q5_K_M、Q8_0、F16",
        "weight_format",
    )


def spread_of(plan: Plan) -> Spread:
    """Where the layers lie."""
    kept = plan.serving.moe_on_cpu if plan.arch.experts else None
    return laid_out(len(inventory(plan.arch).layers), plan.serving.n_gpu_layers, kept, plan.run.gpu_count or 1)


@lru_cache(maxsize=1024)
def laid_out(layers: int, told: int | None, kept: bool | int | None, count: int) -> Spread:
    """``told`` layers of ``layers`` over ``count`` cards, experts of the first ``kept`` (or all) on the host."""
    offloaded = layers + 1 if told is None or told < 0 else told
    on_card = on_cards(layers, min(offloaded, layers))
    output = offloaded > layers
    places = dealt(max(len(on_card) + output, 1), (1.0,) * count)
    host = range(layers) if kept is True else range(min(int(kept or 0), layers))
    return Spread(on_card.start, tuple(places[: len(on_card)]), output, frozenset(host), count)


def layers_of(spread: Spread, card: int) -> list[int]:
    """The layers of one card."""
    return [spread.first + number for number, place in enumerate(spread.cards) if place == card]


@lru_cache(maxsize=1024)
def kinds_of(arch: Architecture, spread: Spread) -> tuple[tuple[tuple[str, int], ...], ...]:
    """How many layers of each kind lie on each card."""
    return tuple(
        tuple(Counter(arch.layer_types[layer % arch.layers] for layer in layers_of(spread, card)).items())
        for card in range(spread.count)
    )


@lru_cache(maxsize=1024)
def cards_weights(sizes: FileBytes, spread: Spread) -> tuple[int, ...]:
    """Bytes of the tensors on each card."""
    return tuple(card_weights(sizes, spread, card) for card in range(spread.count))


def card_weights(sizes: FileBytes, spread: Spread, card: int) -> int:
    """Bytes of the tensors on one card; the last has the output."""
    held = sum(
        sizes.layers[layer].rest + (0 if layer in spread.experts_on_host else sizes.layers[layer].experts)
        for layer in layers_of(spread, card)
    )
    return held + (sizes.output if spread.output and card == spread.count - 1 else 0)


def by_kind(plan: Plan, tokens: int) -> dict[str, int]:
    """Bytes of the cache of one layer of each kind for ``tokens`` of all sequences."""
    ubatch, pad = plan.serving.ubatch or UBATCH, facts()["llama_cpp"]["cell_pad"]
    caches = layer_caches(plan.arch, cache_type(plan), 1, states_in=FULL)
    return {cache.kind: _layer_bytes(cache, tokens, plan.users, ubatch, pad) for cache in caches}


def _layer_bytes(cache: LayerCache, tokens: int, users: int, ubatch: int, pad: int) -> int:
    """Windowed layers keep a window of each sequence."""
    cells = tokens
    if cache.window:
        cells = min(tokens, -(-(cache.window * users + ubatch) // pad) * pad)
    return cells * cache.token + users * cache.state


def cache_type(plan: Plan) -> str:
    """Element types of keys and values: f16 unless told."""
    return "f16" if plan.kv_dtype == "auto" else plan.kv_dtype


def compute_buffer(plan: Plan, spread: Spread, tokens: int) -> int:
    """The largest part of the graph: logits, feed-forward, or attention where its mask or scores are written out."""
    arch, ubatch = plan.arch, plan.serving.ubatch or UBATCH
    eager = plan.run.attention == "eager"
    rows = logits_rows(plan, old=eager and tokens <= OLD_CONTEXT)
    parts = [arch.vocab + int(rows * arch.hidden), 2 * arch.intermediate + 2 * arch.hidden + min(tokens, OLD_CONTEXT)]
    if eager and tokens > OLD_CONTEXT:
        parts.append((arch.heads + 1) * tokens + 2 * (arch.heads * arch.head_dim + arch.hidden))
    if not eager:  # the mask in 32 bit and its copy in 16, beside four rows of the hidden size
        parts.append(tokens + tokens // 2 + 4 * arch.hidden)
    width = max(parts)
    if spread.count > 1 and not spread.experts_on_host and spread.output:
        width += (facts()["llama_cpp"]["pipeline_copies"] - 1) * tokens + 4 * arch.hidden
    return FULL * ubatch * width


def unasked_logits(plan: Plan, buffer: int) -> int:
    """What newer builds do without: they keep logits of the sequences, not of the whole micro-batch.

    Seen by loading models of these shapes in llama.cpp: b9093 keeps all, b9538 and b11549 do not; what is left is three
    rows of the feed-forward and four of the hidden size, with a mask in 16 bit.
    """
    arch, ubatch = plan.arch, plan.serving.ubatch or UBATCH
    left = FULL * ubatch * (3 * arch.intermediate + 4 * arch.hidden + plan.length * plan.users // 2)
    logits = FULL * max(ubatch - plan.users, 0) * arch.vocab
    return max(min(logits, buffer - left), buffer // 50)


def logits_rows(plan: Plan, old: bool) -> float:
    """Rows of the hidden size beside the logits; between what old and new builds have where the build is not stated."""
    table = facts()["llama_cpp"]
    if plan.arch.model_type in table["two_rows"]:
        return 2
    if old or (any(plan.version) and plan.version <= (table["one_row_until"],)):
        return 1
    return 2 if plan.version >= (table["two_rows_from"],) else 1.5


def expert_copy(plan: Plan, sizes: FileBytes) -> int:
    """A long prompt's experts are copied to the card one tensor at a time, with their rows beside it."""
    moe = plan.arch.experts
    if moe is None:
        return 0
    row = moe.per_token * (3 * moe.width + 2 * plan.arch.hidden) + plan.arch.hidden
    return sizes.largest_expert + FULL * (plan.serving.ubatch or UBATCH) * row


def host_bytes(plan: Plan, sizes: FileBytes, spread: Spread, caches: dict[str, int], tokens: int) -> int:
    """Host memory: embedding, layers and experts that stay, their cache, and the pinned buffer of the masks."""
    held = sizes.host + (0 if spread.output else sizes.output) + kept_layers(sizes, spread)
    held += sum(caches.get(kind, 0) for kind in plan.arch.layer_types[: spread.first])
    return held + FULL * (plan.serving.ubatch or UBATCH) * (tokens + plan.arch.hidden)


@lru_cache(maxsize=1024)
def kept_layers(sizes: FileBytes, spread: Spread) -> int:
    """Weights of layers, and of experts, that lie on no card."""
    whole = sum(size.total for size in sizes.layers[: spread.first])
    later = (layer for layer in spread.experts_on_host if layer >= spread.first)
    return whole + sum(sizes.layers[layer].experts for layer in later)


@lru_cache(maxsize=256)
def whole_file(arch: Architecture, name: str) -> Weights:
    """A file's tensors by what they are, all on one card."""
    return weights(arch, inventory(arch), Regime(training=False, trainable="none", quantised=name))


def told_weights(plan: Plan, spread: Spread, held: int) -> Weights:
    """The weights of the fullest card with their reason."""
    whole = whole_file(plan.arch, file_type(plan))
    if spread.output and spread.count == 1 and not spread.experts_on_host:
        return whole
    part = Part(
        "tensors on this card", "位于该卡的张量", held, f"of a {file_type(plan)} file", f"{file_type(plan)} 文件"
    )
    return Weights(held, whole.parameters, (part,), ())


def cache_of(plan: Plan, held: int, all_cards: int, tokens: int) -> Cache:
    """The cache of the fullest card."""
    kind = cache_type(plan)
    caches = layer_caches(plan.arch, kind, 1, states_in=FULL)
    token = sum(cache.layers * cache.token for cache in caches)
    why = Why(
        f"{tokens:,} tokens x {token:,} B in {kind} over all layers ({all_cards:,} B with windows and states)",
        f"{tokens:,} 个 token x {token:,} 字节（{kind}，全部层；含窗口与状态共 {all_cards:,} 字节）",
    )
    return Cache(held, held, float(token), tokens, float(plan.users), None, None, why)


def tower_of(plan: Plan, spread: Spread) -> tuple[Share, ...]:
    """The image tower in 16 bit: Ollama's tags carry it, llama.cpp loads it where ``--mmproj`` names it.

    Published sizes: gemma3:27b 17 GB against 15.8 of a file of the same type without it, qwen2.5vl:7b 6.0 GB.
    """
    tower = plan.arch.vision
    if tower is None or plan.engine != "ollama" or not spread.cards:
        return ()
    count = tower.params + tower.projector_params
    why = Why(f"{count:,} parameters x 2 B, part of Ollama's tag", f"{count:,} 个参数 x 2 字节，包含在 Ollama 标签中")
    return (Share("vision_tower", count * 2, why),)


def buffer_why(plan: Plan) -> Why:
    """The compute buffer's reason."""
    ubatch = plan.serving.ubatch or UBATCH
    return Why(f"compute buffer for a micro-batch of {ubatch} tokens", f"{ubatch} 个 token 微批的计算缓冲区")


def notes_on(plan: Plan, spread: Spread) -> list[Assumption]:
    """Layers and experts that stay in host memory."""
    layers = len(plan.arch.layer_types)
    found = []
    if not spread.output:
        count = len(spread.cards)
        found.append(
            note(
                "serving.n_gpu_layers",
                plan.serving.n_gpu_layers,
                f"{count} of {layers} layers lie on the card, the others and their cache in the computer's memory",
                f"{layers} 层中有 {count} 层在显卡上，其余层及其 KV 缓存在内存中",
            )
        )
    if spread.experts_on_host:
        found.append(
            note(
                "serving.moe_on_cpu",
                plan.serving.moe_on_cpu,
                f"the experts of {len(spread.experts_on_host)} layers stay in the computer's memory",
                f"{len(spread.experts_on_host)} 层的专家权重留在内存中",
            )
        )
    return found
