"""From a Hugging Face ``config.json`` to an ``Architecture``."""

from typing import Any

from estimator import families
from estimator.architecture import Architecture
from estimator.catalogue.config_blocks import experts, latent, linear, state_space
from estimator.catalogue.config_facts import rotary_fraction, stated_facts
from estimator.catalogue.config_reader import ConfigReader, missing, whole
from estimator.catalogue.patterns import attention_types, mlp_types
from estimator.errors import EstimatorError

Row = dict[str, Any]

TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config", "text_model_config")
GATED = ("gated", "gated-fused", "moe")


def read(config: Row) -> Architecture:
    """The architecture of ``config``; what it leaves out takes the class default of transformers 5.24.0."""
    if not isinstance(config, dict):
        raise missing("?", "model_type")
    text, model_type = text_part(config)
    family, note, note_zh = families.family(model_type), None, None
    reader = ConfigReader(text, model_type, nested=text is not config)
    if family is None:
        family = _stand_in(reader)
        note = f"model_type {model_type[:60]!r} is not described here: counted like a Llama"
        note_zh = f"尚未收录 model_type {model_type[:60]!r}：按 Llama 计数"
    try:
        return _architecture(reader, family)._replace(approximate=note, approximate_zh=note_zh)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, EstimatorError):
            raise
        raise malformed(model_type) from error


def text_part(config: Row) -> tuple[Row, str]:
    """The language model's part of a config, and its model type."""
    model_type = config.get("model_type")
    for part in TEXT_PARTS:
        inner = config.get(part)
        if isinstance(inner, dict):
            return _inner(inner, config, str(model_type))
    if not isinstance(model_type, str) or not model_type:
        raise missing("?", "model_type")
    return config, families.text_type(model_type)


def _inner(inner: Row, config: Row, outer_type: str) -> tuple[Row, str]:
    model_type = str(inner.get("model_type") or families.text_type(outer_type))
    shared: Row = {key: config[key] for key in ("tie_word_embeddings", "architectures") if key in config}
    return {**shared, **inner}, families.text_type(model_type)


LLAMA_FACTS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def _stand_in(reader: ConfigReader) -> Row:
    """Llama's blocks, with experts and latent attention where stated, for a type that is not described."""
    widths = [reader.given(key) for key in ("intermediate_size", "moe_intermediate_size")]
    if widths == [None, None] or any(reader.given(key) is None for key in LLAMA_FACTS):
        raise unknown_type(reader.model_type)
    base = families.family("deepseek_v2" if reader.given("kv_lora_rank") else "llama") or {}
    return {**base, "mlp": "moe" if reader.given("num_experts") else "gated", "latent_experts": "moe_latent_size"}


def unknown_type(model_type: str) -> EstimatorError:
    """The refusal for a model type whose layers are not described."""
    near = families.nearest_types(model_type)
    return EstimatorError(
        f"model_type {model_type[:60]!r} is not known here; the nearest known ones are {', '.join(near)}",
        f"尚不支持 model_type {model_type[:60]!r}；最接近的已知类型：{'、'.join(near)}",
        field="model",
    )


def malformed(model_type: str) -> EstimatorError:
    """The refusal for a config whose values are of the wrong kind."""
    return EstimatorError(
        f"the config of model_type {model_type[:60]!r} has a value of the wrong kind; paste its own config.json",
        f"model_type {model_type[:60]!r} 的配置中有类型错误的值；请粘贴模型自带的 config.json",
        field="model",
    )


def _architecture(reader: ConfigReader, family: Row) -> Architecture:
    hidden, layers = reader.count("hidden_size"), reader.count("num_hidden_layers")
    heads = 0 if family["attention"] == "none" else reader.count("num_attention_heads")
    flags = {name: reader.flag(rule) for name, rule in family.get("flags", {}).items()}
    kinds, mlps = attention_types(reader, family, layers), mlp_types(reader, family, layers)
    facts = {
        "activation": reader.get("hidden_act", "silu"),
        "gated_mlp": _is_gated(reader, family),
        **{name: value for name, value in flags.items() if value is not None},
        **_extras(reader, family),
    }
    return Architecture(
        model_type=reader.model_type,
        hidden=hidden,
        layers=layers,
        heads=heads,
        **_head_shapes(reader, family, heads, hidden),
        intermediate=_intermediate(reader, family, hidden, mlps),
        vocab=reader.count("vocab_size"),
        max_positions=reader.optional("max_position_embeddings") or 0,
        tied=bool(reader.get("tie_word_embeddings", family.get("tied", False))),
        layer_types=kinds,
        mlp_types=mlps,
        norm_names=_norm_names(reader, family),
        sliding_window=reader.optional("sliding_window"),
        dropout=reader.number("dropout"),
        attention_dropout=reader.number("attention_dropout"),
        embedding_dropout=reader.number("embedding_dropout"),
        experts=experts(reader, family) if "moe" in mlps else None,
        latent=latent(reader) if family["attention"] == "latent" else None,
        linear=linear(reader, family, heads, hidden) if "linear" in kinds else None,
        ssm=state_space(reader, family, hidden) if {"ssm", "hybrid"} & set(kinds) else None,
        **_typed(facts),
    )


BOOLEANS = (
    "qk_norm",
    "qk_norm_full",
    "qkv_bias",
    "out_bias",
    "mlp_bias",
    "parallel_residual",
    "norm_first",
    "router_buffer",
    "router_full",
)


def _typed(facts: Row) -> Row:
    full = facts.get("qk_norm") == "full"
    typed = {name: bool(value) if name in BOOLEANS else value for name, value in facts.items()}
    return {**typed, "qk_norm_full": full or typed.get("qk_norm_full", False)}


def _extras(reader: ConfigReader, family: Row) -> Row:
    """Facts that most models leave at their defaults."""
    dims = tuple((name, reader.get(key)) for name, key in family.get("dims", {}).items())
    return {
        "kind": family.get("kind", "decoder"),
        "embedding_dim": reader.optional("word_embed_proj_dim"),
        "logit_softcap": reader.get("final_logit_softcapping"),
        "attention_softcap": reader.get("attn_logit_softcapping"),
        "rotary_fraction": rotary_fraction(reader),
        "default_dtype": _dtype(reader.given("dtype")),
        "head_kind": _head_kind(reader, family),
        "type_vocab": reader.optional("type_vocab_size") or 0,
        "decoder_layers": reader.optional("num_decoder_layers") or 0,
        "relative_buckets": reader.optional("relative_attention_num_buckets") or 0,
        "extra": dims + stated_facts(reader),
    }


def _dtype(stated: Any) -> str | None:
    return str(stated).removeprefix("torch.") if stated else None


def _head_kind(reader: ConfigReader, family: Row) -> str:
    if family.get("kind") != "encoder":
        return "lm"
    classes = reader.config.get("architectures") or [""]
    if any(word in str(classes[0]) for word in ("MaskedLM", "CausalLM", "LMHead", "PreTraining")):
        return "mlm"
    return "pooler" if family.get("pooler", True) else "none"


def _is_gated(reader: ConfigReader, family: Row) -> bool:
    if family.get("kind") == "encoder-decoder":
        return str(reader.get("feed_forward_proj", "relu")).startswith("gated")
    return family["mlp"] in GATED and not family.get("plain_experts")


def _norm_names(reader: ConfigReader, family: Row) -> tuple[tuple[str, str], ...]:
    for rule, norms in family.get("norms_when", ()):
        if reader.flag(rule):
            return tuple(norms.items())
    return tuple(family["norms"].items())


def _head_shapes(reader: ConfigReader, family: Row, heads: int, hidden: int) -> Row:
    """Key/value heads and head width; Gemma 4's full layers have their own, the plain keys are the windowed ones'."""
    kv_heads, head_dim = _kv_heads(reader, family, heads), reader.optional("head_dim") or hidden // max(heads, 1)
    if not family.get("global_heads"):
        windowed = reader.optional("swa_num_key_value_heads") or kv_heads * family.get("sliding_kv_factor", 1)
        return {"kv_heads": kv_heads, "head_dim": head_dim, "sliding_kv_heads": windowed}
    return {
        "kv_heads": reader.optional("num_global_key_value_heads") or kv_heads,
        "head_dim": reader.optional("global_head_dim") or 512,
        "sliding_kv_heads": kv_heads,
        "sliding_head_dim": head_dim,
    }


def _kv_heads(reader: ConfigReader, family: Row, heads: int) -> int:
    """Falcon and GPT-BigCode say multi_query instead of a count, unless Falcon's newer architecture is used."""
    if family.get("kv_rule") == "multi-query" and not reader.get("new_decoder_architecture"):
        return 1 if reader.get("multi_query") else heads
    return reader.optional("num_key_value_heads") or heads


def _intermediate(reader: ConfigReader, family: Row, hidden: int, mlps: tuple[str, ...]) -> int:
    """Width of the dense feed-forward block; where the class leaves it out it is four times the hidden size."""
    if "dense_width" in family and reader.get(family["dense_width"]):
        return whole(family["dense_width"], reader.get(family["dense_width"]))
    needed = "dense" in mlps and "intermediate_size" in reader.defaults
    width = reader.count("intermediate_size") if needed else reader.optional("intermediate_size")
    if family.get("ff_rule") == "lfm2" and width:
        return _lfm2_width(reader, width)
    width = width or 4 * hidden
    return width // 2 if family.get("halved_intermediate") else width


def _lfm2_width(reader: ConfigReader, width: int) -> int:
    """LFM2 takes two thirds of its width and rounds it up (transformers 5.24.0 models/lfm2, Lfm2MLP)."""
    if not reader.get("block_auto_adjust_ff_dim", True):
        return width
    scaled = int(float(reader.get("block_ffn_dim_multiplier") or 1.0) * int(2 * width / 3))
    multiple = whole("block_multiple_of", reader.get("block_multiple_of") or 1)
    return -(-scaled // multiple) * multiple
