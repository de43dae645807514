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
    "sliding_attention": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "conv": "conv",
    "mamba": "ssm",
    "ssm": "ssm",
}
MLP_WORDS = {"dense": "dense", "sparse": "moe", "moe": "moe", "none": "none"}

Rule = Callable[[ConfigReader, dict[str, Any], int], tuple[str, ...]]


def attention_types(reader: ConfigReader, family: dict[str, Any], layers: int) -> tuple[str, ...]:
    """One word a layer: full, sliding, chunked, linear, conv, ssm or none."""
    stated = reader.given("layer_types")
    if isinstance(stated, list):
        return _stated("layer_types", stated, {**ATTENTION_WORDS, **family.get("words", {})}, layers)
    rule = family.get("pattern") or {"rule": "full"}
    return RULES[rule["rule"]](reader, rule, layers)


def mlp_types(reader: ConfigReader, family: dict[str, Any], layers: int) -> tuple[str, ...]:
    """One word a layer: dense, moe or none."""
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
    return (index + 1) % whole("decoder_sparse_step", step) == 0 if step else True


def _full(_reader: ConfigReader, _rule: dict[str, Any], layers: int) -> tuple[str, ...]:
    return ("full",) * layers


def _constant(_reader: ConfigReader, rule: dict[str, Any], layers: int) -> tuple[str, ...]:
    return (rule["kind"],) * layers


def _window(reader: ConfigReader, _rule: dict[str, Any], layers: int) -> tuple[str, ...]:
    return ("sliding" if reader.get("sliding_window") else "full",) * layers


def _period(reader: ConfigReader, rule: dict[str, Any], layers: int) -> tuple[str, ...]:
    """Every ``period``-th layer attends to everything, the others are of the rule's ``kind``."""
    key = rule.get("key", "sliding_window_pattern")
    stated = reader.given(key)
    if isinstance(stated, str):
        return tuple("full" if stated[i % len(stated)].upper() == "G" else "sliding" for i in range(layers))
    period = whole(key, stated or rule["period"])
    kind = rule.get("kind", "sliding")
    if kind == "sliding" and reader.states("sliding_window") and not reader.given("sliding_window"):
        return ("full",) * layers
    last = "full" if rule.get("last_full") else None
    kinds = [kind if (index + 1) % period else "full" for index in range(layers)]
    return tuple(kinds[:-1]) + (last or kinds[-1],)


def _offset(reader: ConfigReader, rule: dict[str, Any], layers: int) -> tuple[str, ...]:
    """Attention in layers ``index % period == offset`` (Jamba)."""
    period = whole("attn_layer_period", reader.get("attn_layer_period") or 1)
    offset = reader.get("attn_layer_offset") or 0
    return tuple("full" if index % period == offset else rule["kind"] for index in range(layers))


def _from_layer(reader: ConfigReader, _rule: dict[str, Any], layers: int) -> tuple[str, ...]:
    """Qwen: a window from ``max_window_layers`` on, when ``use_sliding_window`` is set."""
    if not reader.get("use_sliding_window") or not reader.get("sliding_window"):
        return ("full",) * layers
    first = reader.get("max_window_layers") or 0
    return tuple("sliding" if index >= first else "full" for index in range(layers))


RULES: dict[str, Rule] = {
    "full": _full,
    "constant": _constant,
    "window": _window,
    "period": _period,
    "offset": _offset,
    "from-layer": _from_layer,
}
