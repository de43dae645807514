"""Which kind of attention and of feed-forward block each layer has.

The rules are those by which transformers 5.24.0's config classes fill ``layer_types`` and ``mlp_layer_types``.
"""

from collections.abc import Callable
from typing import Any

from estimator.catalogue.config_reader import ConfigReader, whole, wrong

ATTENTION_WORDS = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "indexed_attention": "full",
    "sliding_attention": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "linear": "linear",
    "conv": "conv",
    "mamba": "ssm",
}
MLP_WORDS = {"dense": "dense", "sparse": "moe", "moe": "moe"}
MIXER_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
"""Nemotron-H: one letter a layer."""

Row = dict[str, Any]
Rule = Callable[[ConfigReader, Row, int], tuple[str, ...]]


def attention_types(reader: ConfigReader, family: Row, layers: int) -> tuple[str, ...]:
    """One word a layer: full, sliding, chunked, linear, conv, ssm or none."""
    rule = family.get("pattern") or {"rule": "full"}
    stated = reader.given("layer_types")
    if isinstance(stated, list) and rule["rule"] != "letters":
        return _stated("layer_types", stated, {**ATTENTION_WORDS, **rule.get("words", {})}, layers)
    return RULES[rule["rule"]](reader, rule, layers)


def mlp_types(reader: ConfigReader, family: Row, layers: int) -> tuple[str, ...]:
    """One word a layer: dense, moe or none."""
    if (family.get("pattern") or {}).get("rule") == "letters":
        return tuple({"moe": "moe", "mlp": "dense"}.get(mixer, "none") for mixer in _mixers(reader, layers))
    if family["mlp"] == "none":
        return ("none",) * layers
    if family["mlp"] != "moe" or not reader.get("num_experts"):
        return ("dense",) * layers
    stated = reader.given("mlp_layer_types")
    if isinstance(stated, list):
        return _stated("mlp_layer_types", stated, MLP_WORDS, layers)
    return tuple("moe" if _is_sparse(reader, index) else "dense" for index in range(layers))


def _stated(key: str, stated: list[Any], words: dict[str, str], layers: int) -> tuple[str, ...]:
    known = tuple(words.get(str(word), "") for word in stated[:layers])
    if len(known) != layers or "" in known:
        raise wrong(key, stated, f"a list of {layers} known layer kinds")
    return known


def _is_sparse(reader: ConfigReader, index: int) -> bool:
    period = reader.get("expert_layer_period")
    if period:
        return bool(index % whole("expert_layer_period", period) == reader.get("expert_layer_offset", 0))
    if index in (reader.get("mlp_only_layers") or ()):
        return False
    if index < (reader.get("first_k_dense_replace") or 0):
        return False
    step = reader.get("decoder_sparse_step") or reader.get("interleave_moe_layer_step") or 1
    return (index + 1) % whole("decoder_sparse_step", step) == 0


def _full(_reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    return ("full",) * layers


def _constant(_reader: ConfigReader, rule: Row, layers: int) -> tuple[str, ...]:
    return (rule["kind"],) * layers


def _window(reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    return ("sliding" if reader.get("sliding_window") else "full",) * layers


def _window_if_used(reader: ConfigReader, rule: Row, layers: int) -> tuple[str, ...]:
    return _window(reader, rule, layers) if reader.get("use_sliding_window") else ("full",) * layers


def _period(reader: ConfigReader, rule: Row, layers: int) -> tuple[str, ...]:
    """Every ``period``-th layer attends to everything, the others are of the rule's ``kind``."""
    key, kind = rule.get("key", "sliding_window_pattern"), rule.get("kind", "sliding")
    stated = reader.given(key)
    if isinstance(stated, str):
        return tuple("full" if stated[i % len(stated)].upper() == "G" else kind for i in range(layers))
    if kind == "sliding" and reader.states("sliding_window") and not reader.given("sliding_window"):
        return ("full",) * layers
    period = whole(key, stated or rule["period"])
    forced = {0} if rule.get("first_full") else {layers - 1} if rule.get("last_full") else set()
    return tuple("full" if index in forced or (index + 1) % period == 0 else kind for index in range(layers))


def _first_of(reader: ConfigReader, rule: Row, layers: int) -> tuple[str, ...]:
    """The first layer of every ``period`` attends to everything, the others have a window."""
    period = whole("period", reader.given(rule.get("key", "")) or rule["period"])
    return tuple("sliding" if index % period else "full" for index in range(layers))


def _offset(reader: ConfigReader, rule: Row, layers: int) -> tuple[str, ...]:
    """Attention in layers ``index % period == offset`` (Jamba)."""
    period = whole("attn_layer_period", reader.get("attn_layer_period") or 1)
    offset = reader.get("attn_layer_offset") or 0
    return tuple("full" if index % period == offset else rule["kind"] for index in range(layers))


def _from_layer(reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    """Qwen: a window from ``max_window_layers`` on, when ``use_sliding_window`` is set."""
    if not reader.get("use_sliding_window") or not reader.get("sliding_window"):
        return ("full",) * layers
    first = reader.get("max_window_layers") or 0
    return tuple("sliding" if index >= first else "full" for index in range(layers))


def _neo(reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    """GPT-Neo: global and local layers in turn, unless ``attention_layers`` says otherwise."""
    stated = reader.given("attention_layers") or ["global", "local"]
    return tuple(ATTENTION_WORDS.get(str(stated[index % len(stated)]), "full") for index in range(layers))


def _chunked(reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    """Llama-4: layers with rotary positions attend within chunks; every fourth has none and sees everything."""
    interval = whole("no_rope_layer_interval", reader.get("no_rope_layer_interval") or 4)
    return tuple("chunked" if (index + 1) % interval else "full" for index in range(layers))


def _minimax(reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    """MiniMax-01: ``attn_type_list`` has 1 for softmax and 0 for lightning attention; the class alternates."""
    stated = reader.given("attn_type_list") or [1, 0]
    return tuple("full" if stated[index % len(stated)] else "linear" for index in range(layers))


def _indices(reader: ConfigReader, rule: Row, layers: int) -> tuple[str, ...]:
    """Full attention in the layers that a key lists; the class's default is all of them (LFM2)."""
    listed = reader.given(rule["key"])
    full = range(layers) if listed is None else listed
    return tuple("full" if index in full else rule["kind"] for index in range(layers))


def _kimi(reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    """Kimi Linear lists its full-attention layers, counted from one; the class has them every fourth layer."""
    listed = reader.given("linear_attn_config.full_attn_layers")
    full = listed if listed is not None else range(5, layers + 1, 4)
    return tuple("full" if index + 1 in full else "linear" for index in range(layers))


def _letters(reader: ConfigReader, _rule: Row, layers: int) -> tuple[str, ...]:
    return tuple({"mamba": "ssm", "attention": "full"}.get(mixer, "none") for mixer in _mixers(reader, layers))


def _mixers(reader: ConfigReader, layers: int) -> list[str]:
    stated = reader.get("layer_types") or reader.get("hybrid_override_pattern") or ""
    mixers = [MIXER_LETTERS.get(str(word), str(word)) for word in stated]
    if len(mixers) < layers or not set(mixers) <= set(MIXER_LETTERS.values()):
        raise wrong("hybrid_override_pattern", stated, f"a pattern of {layers} known layer kinds")
    return mixers[:layers]


RULES: dict[str, Rule] = {
    "full": _full,
    "constant": _constant,
    "window": _window,
    "window-if-used": _window_if_used,
    "period": _period,
    "first-of": _first_of,
    "offset": _offset,
    "from-layer": _from_layer,
    "neo": _neo,
    "chunked": _chunked,
    "minimax": _minimax,
    "indices": _indices,
    "kimi": _kimi,
    "letters": _letters,
}
