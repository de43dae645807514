"""ModernBERT: pre-norm encoder with rotary positions in fp32, a gated block, and windows of local attention."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import rotate_half
from estimator.step.families.classic import Around, normed, shared
from estimator.step.families.encoder import Heads, both_ways, masked_lm
from estimator.step.families.llama import rotary
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import BOOL, FULL, LONG, Tensor
from estimator.step.written import attend, rate

__all__ = ["layer", "loss", "shared", "stem", "top"]


class Windows:
    """A mask and tables for layers that see everything, and for those with a window."""

    def __init__(self, masks: dict[str, Tensor | None], tables: dict[str, tuple[Tensor, Tensor]]) -> None:
        self.masks, self.tables = masks, tables

    def of(self, layer: Layer) -> Around:
        """What one layer is handed."""
        kind = layer.kind.attention if layer.kind is not None else "full"
        return Around(None, self.masks[kind], *self.tables[kind])


def stem(model: Model, ids: Tensor) -> Tensor:
    """Embeddings, their norm and dropout."""
    model.held.append(model.tape.new("s", 1, LONG))
    hidden = model.stem.layer_norm(embedded(model, "tok_embeddings.weight", ids), "norm")
    hidden = ops.dropout(hidden, rate(model, model.arch.embedding_dropout))
    model.held.append(hidden)
    masks = {"full": both_ways(model), "sliding": window_mask(model, hidden)}
    tables = {kind: rotary(model, hidden.itemsize) for kind in sorted(set(model.arch.layer_types))}
    model.around = Windows(masks, tables)
    return hidden


def window_mask(model: Model, hidden: Tensor) -> Tensor | None:
    """The window: distances in 64 bit, their absolute values, comparisons; texts are taken to be longer than it."""
    if model.given_mask is not None:
        return model.given_mask
    tape = model.tape
    distances = tape.new("ss", 1, LONG)
    absolute = tape.like(distances)
    del distances
    near = tape.like(absolute, BOOL)
    del absolute
    near = tape.like(near)
    allowed = tape.like(near)
    del near
    if model.regime.attention != "eager":
        return Tensor(tape, allowed.storage, "bss", 1, BOOL)
    return tape.new("bss", 1, hidden.itemsize)


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One layer; the first has no norm in front of its attention."""
    with model.tape.inside("attention"):
        h = normed(model, layer, x, "attn_norm") if layer.has("attn_norm.weight") else x
        attended, _weights = attention(model, layer, h, around)
        del h
    x = ops.add(x, attended)
    with model.tape.inside("mlp"):
        return ops.add(x, mlp(model, layer, normed(model, layer, x, "mlp_norm")))


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Fused projection, rotary positions, attention, output projection."""
    qkv = layer.linear(x, "attn.Wqkv")
    q, k, v = ops.split(qkv, [model.arch.hidden] * 3)
    q, k = turned(q, k, *around.tables)
    out, weights = attend(model, q, k, v, around.mask)
    out = ops.dropout(layer.linear(out, "attn.Wo"), rate(model, model.arch.attention_dropout))
    del qkv
    return out, weights


def turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotary positions in fp32; queries and keys are cast for each half of the sum, and cast back at the end."""
    q_turned = ops.add(ops.mul(ops.cast(q, FULL), cos), ops.mul(rotate_half(ops.cast(q, FULL)), sin))
    k_turned = ops.add(ops.mul(ops.cast(k, FULL), cos), ops.mul(rotate_half(ops.cast(k, FULL)), sin))
    return ops.cast(q_turned, q.itemsize), ops.cast(k_turned, k.itemsize)


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``down(act(a) * b)``, both halves of one projection."""
    first, gate = ops.split(layer.linear(x, "mlp.Wi"), [model.arch.intermediate] * 2)
    return layer.linear(ops.mul(activation(model.arch.activation)(first), gate), "mlp.Wo")


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "final_norm")


def loss(model: Model, hidden: Tensor, labels: Tensor) -> Heads:
    """Masked language modelling over all positions, of logits in fp32."""
    return masked_lm(model, hidden, labels, transformed, "decoder", full=True)


def transformed(model: Model, x: Tensor) -> Tensor:
    """Linear, GELU, norm in front of the vocabulary."""
    return model.top.layer_norm(ops.gelu(model.top.linear(x, "dense")), "norm")
