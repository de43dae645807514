"""A model's architecture as facts, and the inventory of its parameters.

``Architecture`` normalises a Hugging Face ``config.json`` or a catalogue row. ``Inventory`` lists every parameter
tensor once: parameter counts, adapter targets, quantisation and the step timeline all read it.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from estimator.catalogue import families
from estimator.catalogue.config_reader import TEXT_PARTS, ConfigReader, missing, whole
from estimator.catalogue.patterns import attention_types, mlp_types
from estimator.errors import EstimatorError

Role = Literal["linear", "expert", "embedding", "norm", "bias", "conv", "other"]


@dataclass(frozen=True, slots=True)
class Weight:
    """One parameter tensor; ``name`` is the module path inside its layer, as transformers spells it.

    ``shape`` of a linear is (out, in), also where the class stores it transposed (GPT-2's Conv1D). ``part`` is the
    same tensor's name in every family: q_proj, k_proj, v_proj, qkv_proj, o_proj, gate_proj, up_proj, gate_up_proj,
    down_proj, router, experts.gate_up_proj, pre_attention (a norm), embedding, head ….
    """

    name: str
    shape: tuple[int, ...]
    role: Role
    part: str = ""

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class LayerKind:
    """A kind of layer: all layers of one kind are alike in shape and in what they compute.

    ``attention`` is full | sliding | linear | ssm | none | chunked, ``mlp`` is dense | moe | none.
    """

    attention: str
    mlp: str
    weights: tuple[Weight, ...]

    @property
    def numel(self) -> int:
        """Parameters of one layer of this kind."""
        return sum(weight.numel for weight in self.weights)


@dataclass(frozen=True, slots=True)
class Inventory:
    """Every parameter of a model: ``stem`` (embeddings), ``layers`` in order (as indices into ``kinds``), ``top``.

    ``top`` holds the final norm and, when it is not tied to the embedding, the head.
    """

    stem: tuple[Weight, ...]
    kinds: tuple[LayerKind, ...]
    layers: tuple[int, ...]
    top: tuple[Weight, ...]

    @property
    def numel(self) -> int:
        """All parameters, a tied head counted once."""
        own = sum(weight.numel for weight in self.stem + self.top)
        return own + sum(self.kinds[index].numel for index in self.layers)


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: widths in elements, counts per token."""

    experts: int
    per_token: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    dense_first_layers: int = 0
    every: int = 1
    dense_layers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek): ranks of the compressed projections and head widths."""

    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta-net or similar linear attention layers."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int


@dataclass(frozen=True, slots=True)
class StateSpace:
    """Mamba-like layers."""

    version: int
    inner: int
    state: int
    conv_kernel: int
    heads: int = 0
    groups: int = 1
    dt_rank: int = 0
    head_dim: int = 0


@dataclass(frozen=True, slots=True)
class Architecture:
    """The facts that decide memory. Dimensions in elements; ``model_type`` is transformers' name."""

    model_type: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_positions: int
    tied: bool
    gated_mlp: bool = True
    activation: str = "silu"
    norm: Literal["rms", "layer", "layer-nobias", "layer-noweight"] = "rms"
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    positions: str = "rope"
    sliding_window: int | None = None
    layer_types: tuple[str, ...] = ()
    parallel_residual: bool = False
    embedding_dim: int | None = None
    dropout: float = 0.0
    attention_dropout: float = 0.0
    logit_softcap: float | None = None
    attention_softcap: float | None = None
    rotary_fraction: float = 1.0
    experts: Experts | None = None
    latent: LatentAttention | None = None
    linear: LinearAttention | None = None
    ssm: StateSpace | None = None
    default_dtype: str | None = None
    kind: str = "decoder"
    extra: tuple[tuple[str, int | float | str | bool | None], ...] = field(default=())
    mlp_types: tuple[str, ...] = ()
    qk_norm_width: Literal["head", "full"] = "head"
    norm_plus_one: bool = False
    norm_first: bool = True
    embedding_norm: bool = False
    embedding_dropout: float = 0.0
    position_offset: int = 0
    approximate: str | None = None

    @property
    def kv_width(self) -> int:
        """Elements of one token's keys (or values) in one full-attention layer."""
        return self.kv_heads * self.head_dim


def from_config(config: dict[str, Any]) -> Architecture:
    """The architecture that a Hugging Face ``config.json`` describes.

    What the config leaves out takes the class default of transformers 5.24.0; a missing dimension is an error that
    names its key. Nested text configs are read through.
    """
    text, model_type = text_part(config)
    family = families.family(model_type)
    if family is None:
        raise unknown_type(model_type)
    return _architecture(ConfigReader(text, model_type, nested=text is not config), family)


def text_part(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The language model's part of a config, and its model type."""
    for part in TEXT_PARTS:
        inner = config.get(part)
        if isinstance(inner, dict):
            return inner, str(inner.get("model_type") or config.get("model_type"))
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise missing("?", "model_type")
    return config, model_type


def unknown_type(model_type: str) -> EstimatorError:
    """The refusal for a model type whose layers are not described."""
    return EstimatorError(
        f"model_type {model_type[:60]!r} is not known here; known are {', '.join(families.known_types()[:8])} and others",
        f"尚不支持 model_type {model_type[:60]!r}",
        field="model",
    )


def _architecture(reader: ConfigReader, family: dict[str, Any]) -> Architecture:
    hidden, layers = reader.count("hidden_size"), reader.count("num_hidden_layers")
    heads = reader.count("num_attention_heads")
    flags = {name: reader.flag(rule) for name, rule in family.get("flags", {}).items()}
    qk_norm = flags.pop("qk_norm", None)
    return Architecture(
        model_type=reader.model_type,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=reader.optional("num_key_value_heads") or heads,
        head_dim=reader.optional("head_dim") or hidden // max(heads, 1),
        intermediate=_intermediate(reader, hidden),
        vocab=reader.count("vocab_size"),
        max_positions=reader.optional("max_position_embeddings") or 0,
        tied=bool(reader.get("tie_word_embeddings", True)),
        gated_mlp=family["mlp"] != "plain",
        activation=flags.pop("activation", None) or reader.get("hidden_act", "silu"),
        qk_norm=bool(qk_norm),
        qk_norm_width="full" if qk_norm == "full" else "head",
        layer_types=attention_types(reader, family, layers),
        mlp_types=mlp_types(reader, family, layers),
        sliding_window=reader.optional("sliding_window"),
        embedding_dim=reader.optional("word_embed_proj_dim"),
        dropout=reader.number("dropout"),
        attention_dropout=reader.number("attention_dropout"),
        embedding_dropout=reader.number("embedding_dropout"),
        logit_softcap=reader.get("final_logit_softcapping"),
        attention_softcap=reader.get("attn_logit_softcapping"),
        rotary_fraction=float(reader.get("partial_rotary_factor") or reader.get("rotary_pct") or 1.0),
        experts=_experts(reader, family),
        latent=_latent(reader, family),
        default_dtype=reader.given("dtype"),
        **{name: value for name, value in flags.items() if value is not None},
    )


def _intermediate(reader: ConfigReader, hidden: int) -> int:
    stated = reader.given("intermediate_size")
    if stated is None and "intermediate_size" in reader.defaults and not reader.get("num_experts"):
        return reader.count("intermediate_size")
    return whole("intermediate_size", stated or reader.get("intermediate_size") or 4 * hidden)


def _experts(reader: ConfigReader, family: dict[str, Any]) -> Experts | None:
    if family["mlp"] != "moe" or not reader.get("num_experts"):
        return None
    width = reader.optional("moe_intermediate_size") or reader.count("intermediate_size")
    shared = reader.optional("shared_expert_intermediate_size")
    if shared is None:
        shared = (reader.optional("num_shared_experts") or 0) * width
    return Experts(
        experts=reader.count("num_experts"),
        per_token=reader.count("num_experts_per_tok"),
        width=width,
        shared_width=shared,
        shared_gate=bool(family.get("shared_gate")),
        dense_first_layers=reader.optional("first_k_dense_replace") or 0,
    )


def _latent(reader: ConfigReader, family: dict[str, Any]) -> LatentAttention | None:
    if family["attention"] != "latent":
        return None
    return LatentAttention(
        q_rank=reader.optional("q_lora_rank"),
        kv_rank=reader.count("kv_lora_rank"),
        nope_dim=reader.count("qk_nope_head_dim"),
        rope_dim=reader.count("qk_rope_head_dim"),
        value_dim=reader.count("v_head_dim"),
    )
