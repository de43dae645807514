"""Any decoder as litgpt runs it under LoRA: its own model code, whatever the architecture is called elsewhere.

Read in litgpt 0.4 (litgpt/model.py, lora.py, finetune/lora.py) and lightning's fabric: queries, keys and values are one
linear; rotary positions are joined to the rest of the head by a concatenation; the adapter's product is spread over the
places of the adapted parts by ``index_copy``, which keeps it; logits come in chunks of 128 tokens and are turned to
fp32 as they leave the model.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.adapters import carries
from estimator.step.attention import repeated, rotate
from estimator.step.families.classic import Around
from estimator.step.families.rotary import cut
from estimator.step.model import Layer, Model, embedded, linear
from estimator.step.quantised import BITSANDBYTES_4BIT, in_two_steps, quantised_linear
from estimator.step.regime import Regime
from estimator.step.tape import FULL, HALF, Tensor
from estimator.step.written import attend

CHUNK = 128
"""Tokens whose logits are made at a time (finetune/lora.py)."""


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings."""
    return embedded(model, model.stem_name, ids)


def shared(model: Model, hidden: Tensor) -> Around:
    """Rotary tables, slices of buffers."""
    width = int(model.arch.head_dim * model.arch.rotary_fraction)
    cos, sin = (model.tape.new("1", 1, hidden.itemsize) for _ in range(2))
    tables = [Tensor(model.tape, table.storage, "s", width, hidden.itemsize) for table in (cos, sin)]
    return Around(None, None, *tables)


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block, its halves one after the other or in parallel, of one norm where the model has one."""
    names = [name for _, name in model.arch.norm_names]
    first = _norm(layer, x, names[0])
    with model.tape.inside("attention"):
        attended = _attention(model, layer, first, around)
    if not (model.arch.parallel_residual or len(names) == 1):
        x = ops.add(attended, x)
        changed = _mlp(model, layer, _norm(layer, x, names[1]))
        return ops.add(changed, x)
    second = first if len(names) == 1 else _norm(layer, x, names[1])
    changed = _mlp(model, layer, second)
    return ops.add(ops.add(changed, attended), x)


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    name = next(weight for weight in model.top.shapes if "norm" in weight or "ln" in weight)
    return _norm(model.top, x, name.rsplit(".", 1)[0])


def _norm(layer: Layer, x: Tensor, name: str) -> Tensor:
    """``nn.LayerNorm``, or the RMS norm whose square keeps the same fp32 copy as its product."""
    if layer.has(f"{name}.bias"):
        return layer.layer_norm(x, name)
    itemsize = x.itemsize
    h = ops.cast(x, FULL)
    variance = ops.mean(ops.mul(h, h))
    h = ops.mul(h, ops.rsqrt(ops.shift(variance)))
    return ops.mul(ops.cast(h, itemsize), layer.weight(f"{name}.weight"))


def _attention(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    arch = model.arch
    heads, groups = arch.heads, arch.kv_heads
    qkv = _qkv(model, layer, x)
    q, k, v = ops.split(qkv, [qkv.width - 2 * arch.kv_width, arch.kv_width, arch.kv_width])
    if groups != heads:
        q, k, v = ops.copy(q), repeated(k, heads, groups), repeated(v, heads, groups)
    q, k = (_turned(one, heads, around) for one in (q, k))
    out, _scores = attend(model, q, k, v, None, by_head=True, kv_heads=heads)
    return _linear(layer, out, layer.module_of("o_proj"))


def _turned(x: Tensor, heads: int, around: Around) -> Tensor:
    cos, sin = around.tables
    width = cos.width * heads
    if width == x.width:
        return ops.concat([rotate(x, cos, sin)])
    turned, rest = cut(x, width)
    return ops.concat([rotate(turned, cos, sin), rest])


def _qkv(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """The one linear of queries, keys and values, and what its adapter adds in their places."""
    adapter, arch = model.regime.adapter, model.arch
    fused = layer.module_of("qkv_proj")
    names = [fused] if fused else [layer.module_of(f"{part}_proj") for part in "qkv"]
    elements = sum(layer.shapes[f"{name}.weight"].numel for name in names)
    width = elements // x.width
    biased = layer.has(f"{names[0]}.bias")
    pretrained = _frozen(layer, x, elements, width, biased)
    query = width - 2 * arch.kv_width
    if fused:
        widths = [query, arch.kv_width] if carries(adapter, fused) else []
    else:
        sizes = (query, arch.kv_width, arch.kv_width)
        widths = [size for name, size in zip(names, sizes, strict=True) if carries(adapter, name)]
    if adapter is None or not widths:
        return pretrained
    low = adapter.rank * len(widths)
    down = layer.extra("attn.lora_A", x.width * low, adapter.itemsize)
    up = layer.extra("attn.lora_B", sum(widths) * adapter.rank, adapter.itemsize)
    after = linear(linear(ops.dropout(x, adapter.dropout), down, None, low), up, None, sum(widths))
    update = ops.scale(_placed(after, width) if sum(widths) < width else after)
    del after
    return ops.add(pretrained, update)


def _placed(x: Tensor, width: int) -> Tensor:
    """``zeros.index_copy(-1, places, x)``: its backward asks for the shape of ``x``, which is kept."""
    tape = x.tape
    kept = tape.save(x)
    out = tape.new(x.rows, width, x.itemsize)
    shape = ops.shape_of(x)
    return tape.attach(out, (x,), [kept], lambda g: (tape.new(*shape),))


def _mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """Gated, or one activation kernel between two linears."""
    up, down = layer.module_of("up_proj"), layer.module_of("down_proj")
    gate, fused = layer.module_of("gate_proj"), layer.module_of("gate_up_proj")
    if fused:  # litgpt's conversion takes it apart
        first, second = (_linear(layer, x, fused, half) for half in ("gate", "up"))
        h = ops.mul(ops.keeps_input(first), second)
    elif gate:
        first, second = _linear(layer, x, gate), _linear(layer, x, up)
        h = ops.mul(ops.keeps_input(first), second)
    else:
        h = ops.keeps_input(_linear(layer, x, up))
    return _linear(layer, h, down)


def _linear(layer: Layer, x: Tensor, name: str, half: str = "") -> Tensor:
    """A linear, or a half of one that is fused elsewhere, with its adapter where it carries one."""
    adapter, weight = layer.regime.adapter, layer.shapes[f"{name}.weight"]
    parts = 2 if half else 1
    width = layer.out_features(name, weight.shape) // parts
    out = _frozen(layer, x, weight.numel // parts, width, layer.has(f"{name}.bias"))
    if adapter is None or not carries(adapter, name):
        return out
    down = layer.extra(f"{name}.{half}lora_A", x.width * adapter.rank, adapter.itemsize)
    up = layer.extra(f"{name}.{half}lora_B", width * adapter.rank, adapter.itemsize)
    low = linear(ops.dropout(x, adapter.dropout), down, None, adapter.rank)
    return ops.add(out, ops.scale(linear(low, up, None, width)))


def _frozen(layer: Layer, x: Tensor, elements: int, width: int, biased: bool) -> Tensor:
    """A frozen linear: nothing is kept but what a packed one's kernel holds."""
    regime, tape = layer.regime, x.tape
    if regime.quantised is not None:
        kept = "inputs-kept" in regime.quirks
        twice = _packed_from_fp16(regime)
        out = quantised_linear(x, elements, width, regime.quantised, fp16=regime.fp16, kept=kept, twice=twice)
        return ops.copy(out) if biased else out
    out = tape.new(x.rows, width, x.itemsize)
    shape = ops.shape_of(x)
    return tape.attach(out, (x,), (), lambda g: (tape.new(*shape),)) if x.needs else out


def loss(model: Model, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    """Chunks of logits, all made before they are turned to fp32; the loop holds those through the backward.

    Every chunk has a cross-entropy of its own, whose temporaries go before the next one's. Autograd runs the nodes that
    were made last first: the cross-entropies of all chunks, each gradient in its saved scores' place, then all casts,
    and only then the head.
    """
    tape, vocab = hidden.tape, model.arch.vocab
    _head_made(model)
    chunks = tape.new(hidden.rows, vocab, hidden.itemsize)
    logits = tape.new(hidden.rows, vocab, FULL)
    del chunks
    scores = [tape.new(hidden.rows, vocab, FULL)]
    out = tape.new("1", 1, FULL)
    rows, shape, compute = hidden.rows, ops.shape_of(hidden), hidden.itemsize
    model.held.append(logits)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        chunk = [tape.new(("upto", CHUNK), vocab, size) for size in (FULL, FULL, compute)]
        del chunk
        scores.clear()
        halves = tape.new(rows, vocab, compute)
        _head_made(model)
        result = tape.new(*shape)
        del halves
        return (result,)

    return tape.attach(out, (hidden,), [tape.save(labels)], backward), None


def _head_made(model: Model) -> None:
    """The packed head's weight for one use."""
    regime, elements = model.regime, model.arch.vocab * model.arch.hidden
    if regime.quantised is None:
        return
    if _packed_from_fp16(regime):
        in_two_steps(model.tape, elements, regime.quantised)
    else:
        model.tape.new("1", elements, HALF, "weight_casts")


def _packed_from_fp16(regime: Regime) -> bool:
    """Lightning's plugin turns every weight to fp16 before bitsandbytes packs it, whatever it computes in."""
    return regime.quantised in BITSANDBYTES_4BIT and not regime.fp16
