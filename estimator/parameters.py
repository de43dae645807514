"""The parameter tensors of one block, under the names of the model's family.

Common blocks (attention, feed-forward, experts, norms) are code; the tensors of rarer ones (state-space, linear
attention, short convolutions, indexers, sinks) are tables in ``families.jsonl``: a name and its shape in symbols.
"""

from math import prod
from typing import Any

from estimator import families
from estimator.architecture import Architecture, Role, Weight

Weights = tuple[Weight, ...]


class Blocks:
    """Makes the tensors of one architecture, block by block."""

    def __init__(self, arch: Architecture) -> None:
        self.arch = arch
        self.family: dict[str, Any] = families.family(arch.model_type) or families.family("llama") or {}
        self.names: dict[str, str] = self.family["names"]
        self.tables: dict[str, dict[str, str]] = self.family.get("tensors", {})

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
        return (weight, Weight(f"{name}.bias", (width,), "norm", part)) if self.arch.norm == "layer" else (weight,)

    def embedding(self, part: str, rows: int, width: int) -> Weights:
        """A lookup table."""
        return (Weight(f"{self.names[part]}.weight", (rows, width), "embedding", part),)

    def table(self, kind: str) -> Weights:
        """The family's own tensors for a kind of block: attention, latent, linear, ssm, conv, moe or layer."""
        sizes = symbols(self.arch)
        made = (_table_weight(name, shape, sizes) for name, shape in self.tables.get(kind, {}).items())
        return tuple(weight for weight in made if weight.numel)

    def attention(self, kind: str) -> Weights:
        """What mixes tokens in a layer of ``kind``."""
        if kind == "none":
            return ()
        if kind in ("linear", "ssm", "conv"):
            return self.table(kind)
        if kind == "hybrid":
            return self.heads(kind) + self.table("ssm")
        if self.arch.latent:
            return self.latent() + self.table("latent")
        return self.heads(kind) + self.table("attention") + self.table(kind)

    def heads(self, kind: str) -> Weights:
        """Multi-head attention: queries, keys and values apart or fused, output, norms of queries and keys."""
        arch = self.arch
        kv_heads, head_dim = arch.kv_shape(kind)
        q_width, k_width = arch.heads * head_dim, kv_heads * head_dim
        v_width = kv_heads * (arch.value_head_dim or head_dim)
        q_rows = q_width * (2 if arch.query_gate else 1)
        if self.family["attention"] == "fused":
            found = self.linear("qkv_proj", q_rows + k_width + v_width, arch.hidden, arch.qkv_bias)
        else:
            found = self.linear("q_proj", q_rows, arch.hidden, arch.qkv_bias)
            found += self.linear("k_proj", k_width, arch.hidden, arch.qkv_bias)
            if not (arch.key_is_value and kind == "full"):
                found += self.linear("v_proj", v_width, arch.hidden, arch.qkv_bias)
        found += self.linear("o_proj", arch.hidden, arch.heads * (arch.value_head_dim or head_dim), arch.out_bias)
        if arch.qk_norm:
            found += self.norm("q_norm", q_width if arch.qk_norm_full else head_dim)
            found += self.norm("k_norm", k_width if arch.qk_norm_full else head_dim)
        return found

    def latent(self) -> Weights:
        """Multi-head latent attention: compressed queries (when ranked) and keys/values."""
        arch, mla = self.arch, self.arch.latent
        if mla is None:
            return ()
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

    def mlp(self, kind: str) -> Weights:
        """The feed-forward block of a layer of ``kind``: dense, moe or none."""
        if kind == "none":
            return ()
        if kind == "dense":
            return self.dense(self.arch.intermediate)
        beside = self.dense(self.arch.intermediate) if self.family.get("beside") else ()
        return beside + self.experts() + self.table("moe")

    def dense(self, width: int, prefix: str = "") -> Weights:
        """A feed-forward block of ``width``: gated (two matrices in, or one fused) or plain."""
        arch, bias = self.arch, self.arch.mlp_bias
        fused = self.family["mlp"] == "gated-fused" or self.family.get("shared_fused")
        if fused and f"{prefix}gate_up_proj" in self.names:
            found = self.linear(f"{prefix}gate_up_proj", 2 * width, arch.hidden, bias)
        elif arch.gated_mlp:
            found = self.linear(f"{prefix}gate_proj", width, arch.hidden, bias)
            found += self.linear(f"{prefix}up_proj", width, arch.hidden, bias)
        else:
            plain = "plain_up_proj" if "plain_up_proj" in self.names else f"{prefix}up_proj"
            found = self.linear(plain, width, arch.hidden, bias)
        return found + self.linear(f"{prefix}down_proj", arch.hidden, width, bias)

    def experts(self) -> Weights:
        """Router, the experts' two stacked 3-D tensors (transformers 5's layout), and the shared expert."""
        arch, moe = self.arch, self.arch.experts
        if moe is None:
            return ()
        width = moe.latent or arch.hidden
        router = self.linear("router", moe.experts, arch.hidden, bool(self.family.get("router_bias")))
        found = tuple(weight._replace(full=arch.router_full) for weight in router)
        if arch.router_buffer:
            found += (Weight(f"{self.names['router']}.e_score_correction_bias", (moe.experts,), "buffer", "router"),)
        up = "experts.gate_up_proj" if arch.gated_mlp else "experts.up_proj"
        rows = moe.width * (2 if arch.gated_mlp else 1)
        found += (Weight(self.names[up], (moe.experts, rows, width), "expert", up),)
        down = "experts.down_proj"
        found += (Weight(self.names[down], (moe.experts, width, moe.width), "expert", down),)
        if moe.latent:
            found += self.linear("latent_in", moe.latent, arch.hidden, arch.mlp_bias)
            found += self.linear("latent_out", arch.hidden, moe.latent, arch.mlp_bias)
        if moe.shared_width:
            found += self.dense(moe.shared_width, "shared.")
        return found + (self.linear("shared_gate", 1, arch.hidden, False) if moe.shared_gate else ())

    def norms(self) -> Weights:
        """The norms that stand between the blocks of one layer."""
        named = (self.norm(part, self.arch.hidden, name) for part, name in self.arch.norm_names)
        return tuple(weight for weights in named for weight in weights)


def symbols(arch: Architecture) -> dict[str, int]:
    """The sizes that the tables of ``families.jsonl`` speak of."""
    sizes = {
        "hidden": arch.hidden,
        "vocab": arch.vocab,
        "layers": arch.layers,
        "intermediate": arch.intermediate,
        "heads": arch.heads,
        "q_width": arch.heads * arch.head_dim,
    }
    if arch.experts:
        sizes |= {"experts": arch.experts.experts, "width": arch.experts.width}
    if arch.latent:
        sizes |= {"q_rank": arch.latent.q_rank or arch.hidden}
    if arch.linear:
        linear = arch.linear
        sizes |= {"value_heads": linear.value_heads, "value_dim": linear.value_dim, "lin_kernel": linear.conv_kernel}
        sizes |= {"key_width": linear.key_heads * linear.key_dim, "value_width": linear.value_heads * linear.value_dim}
    if arch.ssm:
        ssm = arch.ssm
        sizes |= {"inner": ssm.inner, "state": ssm.state, "kernel": ssm.conv_kernel, "groups": ssm.groups}
        sizes |= {"ssm_heads": ssm.heads, "dt_rank": ssm.dt_rank}
    stated = {name: value or 0 for name, value in arch.extra if value is None or isinstance(value, int)}
    return sizes | stated | {"present": int(bool(stated.get("ple")))}


def _table_weight(name: str, shape: str, sizes: dict[str, int]) -> Weight:
    dims = tuple(size(term, sizes) for term in shape.split(","))
    return Weight(name, dims, _role(name, dims), _part(name))


def size(expression: str, sizes: dict[str, int]) -> int:
    """A sum of products of symbols and numbers, such as ``2*inner+groups*state``."""
    return sum(prod(_factor(word.strip(), sizes) for word in term.split("*")) for term in expression.split("+"))


def _factor(word: str, sizes: dict[str, int]) -> int:
    return int(word) if word.isdigit() else sizes[word]


def _role(name: str, dims: tuple[int, ...]) -> Role:
    if "conv" in name.rsplit(".", 1)[0].rsplit(".", 1)[-1]:
        return "conv"
    if name.endswith("bias"):
        return "bias"
    if len(dims) == 2 and name.endswith(".weight"):
        return "linear"
    return "norm" if "norm" in name else "other"


def _part(name: str) -> str:
    return name.removesuffix(".weight").removesuffix(".bias").rsplit(".", 1)[-1]
