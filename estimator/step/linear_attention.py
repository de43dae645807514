"""Gated delta-net (Qwen 3-Next, Qwen 3.5) as transformers 5.24 runs it without the fla and causal-conv1d packages.

The torch fallback is assumed: a depthwise convolution, then a delta rule over chunks of 64 tokens in fp32 whose scan
keeps every chunk's state. The fused kernels of flash-linear-attention would keep far less.
"""

from collections.abc import Sequence
from typing import Any

from estimator.architecture import LinearAttention
from estimator.step import ops, routing
from estimator.step.linear_decode import keep_state, keep_window, next_convolution, next_step
from estimator.step.model import Layer, Model
from estimator.step.tape import BOOL, FULL, HALF, Rows, Tensor

CHUNK = 64
"""Tokens of a chunk (transformers 5.24, torch_chunk_gated_delta_rule)."""
PADDED: Rows = ("padded", CHUNK)


def sizes(model: Model) -> LinearAttention:
    """Heads and widths of the linear attention."""
    assert model.arch.linear is not None
    return model.arch.linear


def mixer(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """Projections, convolution, delta rule, gated norm, output projection."""
    lin = sizes(model)
    keys, values = lin.key_heads * lin.key_dim, lin.value_heads * lin.value_dim
    mixed, z, b, a, held = projected(layer, x, keys, values, lin.value_heads)
    keep_window(layer, mixed, lin.conv_kernel)
    if x.tape.stage:
        mixed = next_convolution(mixed, lin.conv_kernel)
    else:
        mixed = causal_convolution(layer, mixed, "linear_attn.conv1d", lin.conv_kernel, activated=True)
    q, k, v = ops.split(mixed, (keys, keys, values))
    beta = ops.sigmoid(b)
    decay = decays(layer, a)
    state: Tensor | None
    if x.tape.stage:
        out, state = next_step(lin, q, k, v, decay, beta)
    else:
        out, state = delta_rule(model, q, k, v, decay, beta)
    if state is not None:
        keep_state(layer, state)
    out = gated_norm(layer, out, z, lin.value_heads)
    del held
    return layer.linear(out, "linear_attn.out_proj")


def projected(
    layer: Layer, x: Tensor, keys: int, values: int, heads: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
    """Queries, keys and values in one tensor, the output gate, two gates per head, and what stays alive."""
    if not layer.has("linear_attn.in_proj_qkvz.weight"):
        mixed = copied_back(layer.linear(x, "linear_attn.in_proj_qkv"))
        z = layer.linear(x, "linear_attn.in_proj_z")
        b = layer.linear(x, "linear_attn.in_proj_b")
        return mixed, z, b, layer.linear(x, "linear_attn.in_proj_a"), ()
    fused, gates = layer.linear(x, "linear_attn.in_proj_qkvz"), layer.linear(x, "linear_attn.in_proj_ba")
    q, k, v, z = ops.split(fused, (keys, keys, values, values))
    b, a = ops.split(gates, (heads, heads))
    v, z, b, a = ops.copy(v), ops.copy(z), ops.copy(b), ops.copy(a)
    q, k = ops.copy(q), ops.copy(k)
    return ops.concat([q, k, v]), z, b, a, (fused, gates)


def copied_back(x: Tensor) -> Tensor:
    """A transposed view whose gradient must be copied to take the layout of ``x``."""
    out = x.detach()
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape = x.tape
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def causal_convolution(layer: Layer, x: Tensor, name: str, kernel: int, *, activated: bool) -> Tensor:
    """A depthwise convolution padded on both sides, cut to the length of its input, with SiLU where wanted."""
    weight = layer.weight(f"{name}.weight")
    bias = layer.weight(f"{name}.bias") if layer.has(f"{name}.bias") else None
    size = x.itemsize
    out = _cut(convolution(ops.cast(x, weight.itemsize), weight, bias, kernel), x.rows)
    if activated:
        out = ops.silu(out)
    return ops.cast(out, size)


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, kernel: int) -> Tensor:
    """``F.conv1d`` over tokens, ``kernel - 1`` longer than its input; keeps the input and the weight."""
    x, weight = ops.autocast(x), ops.autocast(weight)
    bias = ops.autocast(bias) if bias is not None else None
    tape = x.tape
    inputs = [x, weight] if bias is None else [x, weight, bias]
    kept = [tape.save(t) for t in (x, weight)] if any(t.needs for t in inputs) else []
    out = tape.new(("longer", kernel - 1), x.width, x.itemsize)
    if not kept:
        return out
    shapes = [(t.rows, t.width, t.itemsize, "gradients" if t.rows == "1" else "") if t.needs else None for t in inputs]
    return tape.attach(out, inputs, kept, lambda g: [tape.new(*shape) if shape else None for shape in shapes])


def _cut(x: Tensor, rows: Rows) -> Tensor:
    """``x[..., :length]``: a view; its backward fills a tensor of the whole size."""
    return ops.part_rows(x, rows)


def decays(layer: Layer, a: Tensor) -> Tensor:
    """``-exp(A_log) * softplus(a + dt_bias)`` in fp32."""
    rate = ops.negate(ops.keeps_output(ops.cast(layer.weight("linear_attn.A_log"), FULL)))
    step = ops.keeps_input(ops.add(ops.cast(a, FULL), layer.weight("linear_attn.dt_bias")))
    return ops.mul(step, rate)


def normalised(x: Tensor, heads: int) -> Tensor:
    """``x / |x|`` over each head."""
    return ops.mul(x, ops.rsqrt(ops.shift(routing.total(ops.mul(x, x), heads))))


def padded(x: Tensor) -> Tensor:
    """Zeros behind the last token up to a whole chunk: always a copy, and a copy back."""
    tape = x.tape
    out = tape.new(PADDED, x.width, x.itemsize)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def delta_rule(
    model: Model, q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The chunked gated delta rule; returns the result and, for a cache, the last state."""
    lin, size = sizes(model), q.itemsize
    heads, groups = lin.value_heads, lin.value_heads // lin.key_heads
    q, k = ops.repeat(q, groups), ops.repeat(k, groups)
    q, k, v, beta = ops.cast(q, FULL), ops.cast(k, FULL), ops.cast(v, FULL), ops.cast(beta, FULL)
    q, k = normalised(q, heads), normalised(k, heads)
    q = ops.scale(q)
    q, k, v = padded(q), padded(k), padded(v)
    beta, decay = padded(beta), padded(decay)
    v_beta, k_beta = ops.mul(v, beta), ops.mul(k, beta)
    mask = model.tape.new("1", CHUNK * CHUNK, BOOL)
    passed = cumulative(decay)
    pairwise = differences(passed, mask)
    system = ops.mul(ops.matmul(k_beta, k, PADDED, heads * CHUNK), pairwise)
    intra = ops.mul(ops.matmul(q, k, PADDED, heads * CHUNK), pairwise)
    decayed = ops.mul(k_beta, ops.keeps_output(passed))
    new, read = solved(system, v_beta), solved(system, decayed)
    states = model.tape.new("b", heads * lin.key_dim * lin.value_dim, FULL)
    core = model.tape.like(new)
    q = ops.mul(q, ops.keeps_output(passed))
    k = ops.mul(k, ops.keeps_output(ops.subtract(passed, passed)))
    core = scanned((new, read, q, k, intra), core, states, heads * lin.key_dim * lin.value_dim)
    if model.tape.caches:
        last = [model.tape.new("b", core.width * CHUNK, FULL) for _ in range(2)]
        last.append(model.tape.new(("chunks", CHUNK), heads, FULL))
        flat = model.tape.like(core)
        del core
        out = ops.cast(flat.view("T"), size) if size != FULL else ops.copy(flat.view("T"))
        del flat, last, v_beta, decayed, v, mask
        return out, states
    del v_beta, decayed, v, mask, states
    return _narrowed(core, size), None


def _narrowed(core: Tensor, size: int) -> Tensor:
    """Reshaped (a copy), cut to the length, and back in the model's type (another copy)."""
    flat = core.tape.like(core)
    if core.needs:
        core.tape.attach(flat, (core,), (), lambda g: (g,))
    cut = Tensor(core.tape, flat.storage, "T", flat.width, flat.itemsize)
    cut.needs, cut.node, cut.slot = flat.needs, flat.node, flat.slot
    return ops.cast(cut, size) if size != FULL else ops.copy(cut)


def cumulative(x: Tensor) -> Tensor:
    """``cumsum``; its backward flips, sums and flips."""
    tape = x.tape
    out = tape.like(x)
    if x.needs:
        rows, width, size = ops.shape_of(x)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            parts = [tape.new(rows, width, size) for _ in range(3)]
            return (parts[-1],)

        tape.attach(out, (x,), (), backward)
    return out


def differences(passed: Tensor, mask: Tensor) -> Tensor:
    """``exp`` of the pairwise differences within a chunk, the upper triangle masked."""
    tape, width = passed.tape, passed.width * CHUNK
    raw = tape.new(passed.rows, width, FULL)
    if passed.needs:
        rows, own, size = ops.shape_of(passed)

        def backward(g: Tensor) -> Sequence[Tensor | None]:
            negated = tape.new(rows, width, size)
            sums = [tape.new(rows, own, size), tape.new(rows, own, size)]
            del negated
            return (sums[0],)

        tape.attach(raw, (passed,), (), backward)
    return ops.keeps_output(routing.masked_fill(raw, mask))


def solved(system: Tensor, right: Tensor) -> Tensor:
    """``solve_triangular``: keeps the system and the result."""
    tape = system.tape
    needed = system.needs or right.needs
    kept = [tape.save(system)] if needed else []
    out = tape.like(right)
    if not needed:
        return out
    kept.append(tape.save(out))
    shape, square = ops.shape_of(right), ops.shape_of(system)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        grad = tape.new(*shape)
        product = tape.new(*square)
        negated = tape.new(*square)
        del product
        result = tape.new(*square)
        del negated
        return result, grad

    return tape.attach(out, (system, right), kept, backward)


def scanned(inputs: Sequence[Tensor], core: Tensor, first: Tensor, state: int) -> Tensor:
    """The scan over chunks: keeps each chunk's corrected values and state; the inputs' gradients grow by slices."""
    tape = core.tape
    needed = any(t.needs for t in inputs)
    dropping = tape.frame is not None and tape.frame.kept is None
    whole = needed and not dropping
    if whole and tape.autocast:
        return _attached(inputs, core, _kept_in_half(inputs, core, first, state))
    values = tape.new(PADDED if whole else "b", core.width * (1 if whole else CHUNK), FULL)
    states = tape.new(("chunks", CHUNK) if whole else "b", state, FULL)
    several = (first,) * 5 if tape.autocast else (*inputs, values, states)
    kept = [tape.save(t) for t in several] if needed else []
    del values, states, several
    return _attached(inputs, core, kept) if needed else core


def _kept_in_half(inputs: Sequence[Tensor], core: Tensor, first: Tensor, state: int) -> list[Any]:
    """Under autocast the products keep casts of each chunk's slices; the first state wants no gradient."""
    tape = core.tape
    _, read, q, k, intra = inputs
    kept = [tape.save(first)]
    for rows, width, size in (
        (("inner", CHUNK), state, FULL),
        (("chunks", CHUNK), 2 * state, HALF),
        (("later", CHUNK), CHUNK * (read.width + q.width + k.width + core.width), HALF),
        (PADDED, core.width + intra.width, HALF),
    ):
        kept.append(tape.save(tape.new(rows, width, size)))
    return kept


def _attached(inputs: Sequence[Tensor], core: Tensor, kept: list[Any]) -> Tensor:
    """The scan's node: the gradients of its inputs grow slice by slice."""
    tape = core.tape
    out = core.detach()
    shapes = [ops.shape_of(t) for t in inputs]
    own = ops.shape_of(core)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        cloned = tape.new(*own)
        grads = [tape.new(*shape) for shape in shapes]
        for shape in (shapes[-1], shapes[1]):
            again = [tape.new(*shape), tape.new(*shape)]
            del again
        del cloned
        return grads

    return tape.attach(out, list(inputs), kept, backward)


def gated_norm(layer: Layer, x: Tensor, gate: Tensor, heads: int) -> Tensor:
    """RMS norm over each head, times ``silu(gate)`` in fp32."""
    size = x.itemsize
    h = layer.rms_norm(x, "linear_attn.norm", heads)
    return ops.cast(ops.mul(_silu_in_full(gate), h), size)


def _silu_in_full(gate: Tensor) -> Tensor:
    return ops.silu(ops.cast(gate, FULL))
