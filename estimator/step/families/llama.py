"""Llama and its kin: pre-norm decoder with RMS norms, rotary positions, grouped queries and a gated MLP."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import rotate
from estimator.step.families import blocks
from estimator.step.masks import causal_mask, positions, sliding_mask
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import FULL, HALF, Tensor
from estimator.step.written import attend, by_token


class Shared:
    """What all layers read: position ids, rotary tables, and the masks of full and of windowed layers."""

    def __init__(self, ids: Tensor, cos: Tensor, sin: Tensor, full: Tensor | None, sliding: Tensor | None) -> None:
        self.ids, self.cos, self.sin = ids, cos, sin
        self.full, self.sliding = full, sliding

    def mask(self, layer: Layer) -> Tensor | None:
        """The mask of a layer of this kind."""
        return self.sliding if windowed(layer) else self.full

    def of(self, layer: Layer) -> "Shared":
        """What one layer is handed: it alone lives until a checkpointed layer's backward."""
        full, sliding = (None, self.sliding) if windowed(layer) else (self.full, None)
        return Shared(self.ids, self.cos, self.sin, full, sliding)


def windowed(layer: Layer) -> bool:
    """Whether the layer attends to a window."""
    return layer.kind is not None and layer.kind.attention == "sliding"


def rotary(model: Model, itemsize: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine tables of one length: made in fp32, cast to ``itemsize``."""
    tape, size = model.tape, int(model.arch.head_dim * model.arch.rotary_fraction)
    angles = tape.new("s", size // 2, FULL)
    table = ops.concat([angles, angles])
    cos = ops.scale(ops.scale(table))
    sin = ops.scale(ops.scale(table))
    return ops.cast(cos, itemsize), ops.cast(sin, itemsize)


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings."""
    return embedded(model, "embed_tokens.weight", ids)


def lookup(model: Model, ids: Tensor) -> Tensor:
    """The lookup alone, for an embedding module that goes on to change what it finds."""
    return model.look_up(model.stem.weight("embed_tokens.weight"), ids, model.arch.hidden)


def shared(model: Model, hidden: Tensor) -> Shared:
    """Tables and masks, made once per forward; tables in the type of the residual stream."""
    return gathered(model, hidden, hidden.itemsize)


def gathered(model: Model, hidden: Tensor, itemsize: int, attention: str = "") -> Shared:
    """Position ids, the masks that the layers' kinds call for, and tables of ``itemsize``."""
    kinds = model.arch.layer_types
    ids = positions(model)
    full = causal_mask(model, hidden, attention) if "full" in kinds else None
    sliding = sliding_mask(model, hidden, attention) if "sliding" in kinds else None
    return Shared(ids, *rotary(model, itemsize), full, sliding)


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp)


def attention(model: Model, layer: Layer, x: Tensor, around: Shared) -> tuple[Tensor, Tensor | None]:
    """Projections, rotary, attention, output projection."""
    q, k, v = projected(layer, x)
    q, k = rotate(q, around.cos, around.sin), rotate(k, around.cos, around.sin)
    k, v = layer.cached(k, v)
    return attended(model, layer, q, k, v, around)


def projected(layer: Layer, x: Tensor, *, turned: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values from a linear each. The gradient of what is ``turned`` comes back head after head."""
    q = layer.linear(x, "self_attn.q_proj")
    k = layer.linear(x, "self_attn.k_proj")
    v = layer.linear(x, "self_attn.v_proj")
    return (by_token(q), by_token(k), v) if turned else (q, k, v)


def attended(
    model: Model,
    layer: Layer,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    around: Shared,
    *,
    by_head: bool = False,
    kv_heads: int = 0,
    projection: str = "self_attn.o_proj",
) -> tuple[Tensor, Tensor | None]:
    """Attention and output projection, and beside it the scores of written-out attention, which the layer holds.

    ``by_head``: queries lie head after head, so that the flash kernel's result is copied to token order. ``kv_heads``:
    where layers differ in them.
    """
    mask = around.mask(layer)
    out, scores = attend(model, q, k, values(model, q, v, mask), mask, by_head=by_head, kv_heads=kv_heads)
    return layer.linear(out, projection), scores


def values(model: Model, q: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Values as a view by heads: the flash kernel, and any kernel without repetition, give a gradient by tokens."""
    flash = _flash(model, q, mask)
    padded = flash and bool(v.width // model.arch.kv_heads % 8)
    repeats = model.arch.heads > model.arch.kv_heads and not flash
    return by_token(v) if repeats or padded or model.regime.attention == "eager" else v


def unturned(model: Model, q: Tensor, k: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Queries and keys without positions: keys as ``values``, queries as the kernel gives their gradient."""
    written = model.arch.heads > model.arch.kv_heads and mask is None and not _flash(model, q, mask)
    k = values(model, q, k, mask)
    return (by_token(q) if written or model.regime.attention == "eager" else q), k


def _flash(model: Model, q: Tensor, mask: Tensor | None) -> bool:
    half = q.itemsize == HALF or model.tape.autocast
    return half and mask is None and q.width // model.arch.heads <= 256


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``down(act(gate(x)) * up(x))``."""
    act = activation(model.arch.activation)
    return layer.linear(ops.mul(act(layer.linear(x, "mlp.gate_proj")), layer.linear(x, "mlp.up_proj")), "mlp.down_proj")


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.rms_norm(x, "norm")
