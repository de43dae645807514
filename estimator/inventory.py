"""Every parameter tensor of a model, from its architecture: names as transformers 5.24.0 spells them."""

from functools import lru_cache
from typing import Any

from estimator.architecture import Architecture, Inventory, LayerKind, Weight
from estimator.catalogue import families

Weights = tuple[Weight, ...]


@lru_cache(maxsize=256)
def inventory(arch: Architecture) -> Inventory:
    """Stem, layer kinds in order and top of ``arch``; counts are exact for the families in the catalogue."""
    layout = Layout(arch)
    kinds: list[tuple[str, str]] = []
    order = []
    for kind in zip(arch.layer_types, arch.mlp_types, strict=True):
        if kind not in kinds:
            kinds.append(kind)
        order.append(kinds.index(kind))
    return Inventory(
        stem=layout.stem(),
        kinds=tuple(LayerKind(attention, mlp, layout.layer(attention, mlp)) for attention, mlp in kinds),
        layers=tuple(order),
        top=layout.top(),
    )


class Layout:
    """The blocks of one architecture under the names of its family."""

    def __init__(self, arch: Architecture) -> None:
        self.arch = arch
        self.family: dict[str, Any] = families.family(arch.model_type) or {}
        self.names: dict[str, str] = self.family["names"]

    def linear(self, part: str, out: int, inner: int, bias: bool) -> Weights:
        """A linear's matrix (out, in) and, with ``bias``, its vector."""
        name = self.names[part]
        weight = Weight(f"{name}.weight", (out, inner), "linear", part)
        return (weight, Weight(f"{name}.bias", (out,), "bias", part)) if bias else (weight,)

    def norm(self, part: str, width: int, name: str | None = None) -> Weights:
        """A norm's scale and, for a LayerNorm with bias, its shift."""
        name = name or self.names[part]
        if self.arch.norm == "layer-noweight":
            return ()
        weight = Weight(f"{name}.weight", (width,), "norm", part)
        if self.arch.norm != "layer":
            return (weight,)
        return (weight, Weight(f"{name}.bias", (width,), "norm", part))

    def embedding(self, part: str, rows: int, width: int) -> Weights:
        """A lookup table."""
        return (Weight(f"{self.names[part]}.weight", (rows, width), "embedding", part),)

    def stem(self) -> Weights:
        """Embeddings and what follows them before the first layer."""
        arch = self.arch
        width = arch.embedding_dim or arch.hidden
        found = self.embedding("embedding", arch.vocab, width)
        if "positions" in self.names:
            found += self.embedding("positions", arch.max_positions + arch.position_offset, arch.hidden)
        if width != arch.hidden:
            found += self.linear("project_in", arch.hidden, width, bias=False)
        if arch.embedding_norm:
            found += self.norm("embedding_norm", arch.hidden)
        return found

    def top(self) -> Weights:
        """The final norm and an untied head."""
        arch = self.arch
        width = arch.embedding_dim or arch.hidden
        found: Weights = self.norm("final_norm", arch.hidden) if arch.norm_first else ()
        if width != arch.hidden:
            found += self.linear("project_out", width, arch.hidden, bias=False)
        if not arch.tied:
            found += self.linear("head", arch.vocab, width, bias=False)
        return found

    def layer(self, attention: str, mlp: str) -> Weights:
        """One layer: attention, feed-forward, norms."""
        found = self.attention() + (self.experts() if mlp == "moe" else self.dense(self.arch.intermediate))
        for part, name in self.family["norms"].items():
            found += self.norm(part, self.arch.hidden, name)
        return found

    def attention(self) -> Weights:
        """The attention block's linears and norms."""
        if self.arch.latent:
            return self.latent()
        arch = self.arch
        q_width, kv_width = arch.heads * arch.head_dim, arch.kv_width
        if self.family["attention"] == "fused":
            found = self.linear("qkv_proj", q_width + 2 * kv_width, arch.hidden, arch.qkv_bias)
        else:
            found = self.linear("q_proj", q_width, arch.hidden, arch.qkv_bias)
            found += self.linear("k_proj", kv_width, arch.hidden, arch.qkv_bias)
            found += self.linear("v_proj", kv_width, arch.hidden, arch.qkv_bias)
        found += self.linear("o_proj", arch.hidden, q_width, arch.out_bias)
        if arch.qk_norm:
            full = arch.qk_norm_width == "full"
            found += self.norm("q_norm", q_width if full else arch.head_dim)
            found += self.norm("k_norm", kv_width if full else arch.head_dim)
        return found

    def latent(self) -> Weights:
        """Multi-head latent attention: compressed queries (when ranked) and keys/values."""
        arch, mla = self.arch, self.arch.latent
        assert mla is not None
        q_width = arch.heads * (mla.nope_dim + mla.rope_dim)
        if mla.q_rank:
            found = self.linear("q_a_proj", mla.q_rank, arch.hidden, arch.qkv_bias)
            found += self.norm("q_a_norm", mla.q_rank) + self.linear("q_b_proj", q_width, mla.q_rank, False)
        else:
            found = self.linear("q_proj", q_width, arch.hidden, False)
        found += self.linear("kv_a_proj", mla.kv_rank + mla.rope_dim, arch.hidden, arch.qkv_bias)
        found += self.norm("kv_a_norm", mla.kv_rank)
        found += self.linear("kv_b_proj", arch.heads * (mla.nope_dim + mla.value_dim), mla.kv_rank, False)
        return found + self.linear("o_proj", arch.hidden, arch.heads * mla.value_dim, arch.out_bias)

    def dense(self, width: int, prefix: str = "") -> Weights:
        """A feed-forward block of ``width``: gated (two matrices in, or one fused) or plain."""
        arch, bias = self.arch, self.arch.mlp_bias
        if self.family["mlp"] == "gated-fused" and not prefix:
            found = self.linear("gate_up_proj", 2 * width, arch.hidden, bias)
        elif arch.gated_mlp:
            found = self.linear(f"{prefix}gate_proj", width, arch.hidden, bias)
            found += self.linear(f"{prefix}up_proj", width, arch.hidden, bias)
        else:
            found = self.linear(f"{prefix}up_proj", width, arch.hidden, bias)
        return found + self.linear(f"{prefix}down_proj", arch.hidden, width, bias)

    def experts(self) -> Weights:
        """Router, the experts' two stacked 3-D tensors, and the shared expert."""
        arch, moe = self.arch, self.arch.experts
        assert moe is not None
        found = self.linear("router", moe.experts, arch.hidden, bias=False)
        up = "experts.gate_up_proj" if arch.gated_mlp else "experts.up_proj"
        inner = moe.width * (2 if arch.gated_mlp else 1)
        found += (Weight(self.names[up], (moe.experts, inner, arch.hidden), "expert", up),)
        down = "experts.down_proj"
        found += (Weight(self.names[down], (moe.experts, arch.hidden, moe.width), "expert", down),)
        if moe.shared_width:
            found += self.dense(moe.shared_width, "shared.")
        return found + (self.linear("shared_gate", 1, arch.hidden, False) if moe.shared_gate else ())
