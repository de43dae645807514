"""A model's architecture as facts, and the inventory of its parameters.

``Architecture`` normalises a Hugging Face ``config.json`` or a catalogue row. ``Inventory`` lists every parameter
tensor once: parameter counts, adapter targets, quantisation and the step timeline all read it.
"""

from collections import Counter
from math import prod
from typing import Any, Literal, NamedTuple

Role = Literal["linear", "expert", "embedding", "norm", "bias", "conv", "buffer", "other"]
"""What a tensor is for; a buffer is stored and held but never trained."""


UNPACKED = "wo"
"""The part of a linear that transformers keeps out of every quantisation, and in fp32 beside fp16 (T5's ``wo``)."""


class Weight(NamedTuple):
    """One parameter tensor; ``name`` is the module path inside its layer, as transformers spells it.

    ``shape`` of a linear is (out, in), also where the class stores it transposed (GPT-2's Conv1D). ``part`` is the
    same tensor's name in every family: q_proj, k_proj, v_proj, qkv_proj, o_proj, gate_proj, up_proj, gate_up_proj,
    down_proj, router, experts.gate_up_proj, pre_attention (a norm), embedding, head …. ``full``: fp32 whatever the
    model's type.
    """

    name: str
    shape: tuple[int, ...]
    role: Role
    part: str = ""
    full: bool = False

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)


class LayerKind(NamedTuple):
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


class Inventory(NamedTuple):
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
        return own + sum(times * self.kinds[index].numel for index, times in Counter(self.layers).items())


class Experts(NamedTuple):
    """A mixture of experts: widths in elements, counts per token.

    ``latent`` is the width the routed experts work in when it is not the hidden size (Nemotron-3), else 0.
    """

    experts: int
    per_token: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    dense_first_layers: int = 0
    every: int = 1
    dense_layers: tuple[int, ...] = ()
    latent: int = 0


class LatentAttention(NamedTuple):
    """Multi-head latent attention (DeepSeek): ranks of the compressed projections and head widths."""

    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


class LinearAttention(NamedTuple):
    """Gated delta-net or similar linear attention layers."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int


class StateSpace(NamedTuple):
    """Mamba-like layers."""

    version: int
    inner: int
    state: int
    conv_kernel: int
    heads: int = 0
    groups: int = 1
    dt_rank: int = 0
    head_dim: int = 0


class Vision(NamedTuple):
    """The image tower in front of a language model: a ViT and its projector.

    ``params`` and ``projector_params`` are counts of parameters; ``tokens_per_image`` is what one image of
    ``image_size`` pixels adds to the row, None where it follows the image's own size. ``family``: transformers' type
    of the whole model.
    """

    model_type: str
    hidden: int
    layers: int
    heads: int
    intermediate: int
    patch: int
    image_size: int
    params: int
    projector_params: int
    tokens_per_image: int | None = None
    family: str = ""


class Architecture(NamedTuple):
    """The facts that decide memory. Dimensions in elements; ``model_type`` is transformers' name.

    ``layer_types`` and ``mlp_types`` have one word a layer. ``norm_names`` pairs the place of each norm of a layer
    (pre_attention, post_attention, pre_mlp, post_mlp) with its module name; a parallel block has only the first.
    ``head_kind`` is what sits on the last layer: lm (a language-model head), mlm (BERT's transform and bias),
    pooler, score (a reward model's one output), or none. ``approximate`` (and ``approximate_zh``) says why a count is
    not exact, None when it is.
    """

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
    extra: tuple[tuple[str, int | float | str | bool | None], ...] = ()
    mlp_types: tuple[str, ...] = ()
    norm_names: tuple[tuple[str, str], ...] = ()
    qk_norm_full: bool = False
    norm_plus_one: bool = False
    norm_first: bool = True
    embedding_norm: bool = False
    embedding_dropout: float = 0.0
    position_offset: int = 0
    query_gate: bool = False
    router_buffer: bool = False
    router_full: bool = False
    key_is_value: bool = False
    head_bias: bool = False
    head_kind: Literal["lm", "mlm", "pooler", "score", "none"] = "lm"
    type_vocab: int = 0
    decoder_layers: int = 0
    relative_buckets: int = 0
    sliding_kv_heads: int | None = None
    sliding_head_dim: int | None = None
    value_head_dim: int | None = None
    vision: "Vision | None" = None
    approximate: str | None = None
    approximate_zh: str | None = None

    def __hash__(self) -> int:
        """Few fields tell architectures apart; equality still compares all."""
        return hash((self.model_type, self.hidden, self.layers, self.intermediate, self.vocab))

    @property
    def kv_width(self) -> int:
        """Elements of one token's keys (or values) in one full-attention layer."""
        return self.kv_heads * self.head_dim

    def kv_shape(self, kind: str) -> tuple[int, int]:
        """Key/value heads and their width in a layer of ``kind``: windowed layers may differ from full ones."""
        if kind != "sliding":
            return self.kv_heads, self.head_dim
        return self.sliding_kv_heads or self.kv_heads, self.sliding_head_dim or self.head_dim


def from_config(config: dict[str, Any]) -> Architecture:
    """The architecture that a Hugging Face ``config.json`` describes.

    What the config leaves out takes the class default of transformers 5.24.0; a missing dimension is an
    ``EstimatorError`` that names its key. Nested text configs are read through.
    """
    # Imported late: the reader builds the dataclasses above.
    from estimator.catalogue.config import read

    return read(config)
