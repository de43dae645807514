"""Mamba-2 layers as transformers 5.24 runs them without the mamba-ssm and causal-conv1d packages.

The torch fallback is assumed: a depthwise convolution, then the scan written out over chunks in fp32. The fused kernels
of mamba-ssm keep far less; the decay between chunks (a few numbers per pair of chunks) is left out.
"""

from estimator.architecture import StateSpace
from estimator.step import ops, routing
from estimator.step.latent import spread
from estimator.step.linear_attention import causal_convolution, cumulative
from estimator.step.linear_decode import keep_scan, keep_window
from estimator.step.model import Layer, Model
from estimator.step.routers import fact
from estimator.step.tape import BOOL, FULL, Leaf, Rows, Tensor


def sizes(model: Model) -> StateSpace:
    """Widths and heads of the state space."""
    assert model.arch.ssm is not None
    return model.arch.ssm


def chunk_of(model: Model) -> int:
    """Tokens of a chunk."""
    return int(fact(model, "mamba_chunk_size", 0) or fact(model, "chunk_size", 256))


def mixer(model: Model, layer: Layer, x: Tensor, name: str, *, multiplied: bool = False) -> Tensor:
    """Projection, convolution, scan, gated norm, output projection of the module ``name``.

    ``multiplied``: with multipliers around the first projection (Falcon-H1).
    """
    ssm = sizes(model)
    states = ssm.groups * ssm.state
    inputs, itemsize = ops.scale(x) if multiplied else x, x.itemsize
    projected = layer.linear(inputs, f"{name}.in_proj")
    if multiplied:
        projected = ops.mul(projected, Leaf(model.tape, projected.width, model.regime.itemsize, False))
    gate, inner, dt = ops.split(projected, (ssm.inner, ssm.inner + 2 * states, ssm.heads))
    keep_window(layer, inner, ssm.conv_kernel)
    inner = causal_convolution(layer, inner, f"{name}.conv1d", ssm.conv_kernel, activated=True)
    hidden, b, c = ops.split(inner, (ssm.inner, states, states))
    del inputs
    out = scan(model, layer, (hidden, dt, b, c), name)
    keep_scan(layer, out, ssm.inner * ssm.state)
    if layer.has(f"{name}.norm.weight"):
        out = gated_norm(layer, out, gate, f"{name}.norm", ssm.groups)
    else:
        out = ops.mul(out, ops.silu(gate))
    return layer.linear(ops.cast(out, itemsize), f"{name}.out_proj")


def scan(model: Model, layer: Layer, inputs: tuple[Tensor, Tensor, Tensor, Tensor], name: str) -> Tensor:
    """``mamba2_chunk_scan``: within chunks, between chunks, and the direct path."""
    ssm, chunk = sizes(model), chunk_of(model)
    hidden, dt, b, c = inputs
    repeats = ssm.heads // ssm.groups
    rate = ops.negate(ops.keeps_output(ops.cast(layer.weight(f"{name}.A_log"), FULL)))
    dt = ops.keeps_input(ops.keeps_input(ops.full(ops.add(dt, layer.weight(f"{name}.dt_bias")))))
    hidden = ops.cast(hidden, FULL)
    b = ops.repeat(ops.cast(b, FULL), repeats)
    c = ops.repeat(ops.cast(c, FULL), repeats)
    direct = ops.mul(padded(hidden, chunk), layer.weight(f"{name}.D"))
    hidden = ops.mul(hidden, ops.cast(dt, FULL))
    a = ops.mul(ops.cast(dt, FULL), rate)
    hidden, a, b, c = padded(hidden, chunk), padded(a, chunk), padded(b, chunk), padded(c, chunk)
    passed = cumulative(a)
    decay = ops.keeps_output(segment_sum(a, chunk))
    rows, width = hidden.rows, ssm.heads * chunk
    scores = contracted(c, b, rows, width)
    mixed = ops.mul(scores, decay)
    within = gathered(mixed, hidden, rows, hidden.width, copied=False)
    left = ops.keeps_output(ops.subtract(passed, passed))
    b_decayed = ops.mul(b, left)
    states, zeros = between(model, hidden, b_decayed, chunk)
    out_decay = ops.keeps_output(passed)
    read = gathered(c, states.view(("chunks", chunk)), rows, hidden.width)
    across = ops.mul(read, out_decay)
    out = ops.add(ops.copy(ops.add(within, across)), direct)
    del scores, mixed, within, left, b_decayed, states, zeros, read, across
    return _shortened(out)


def _shortened(out: Tensor) -> Tensor:
    """Back to the tokens of the sequence: a view."""
    cut = Tensor(out.tape, out.storage, "T", out.width, out.itemsize)
    cut.needs, cut.node, cut.slot = out.needs, out.node, out.slot
    return cut


def between(model: Model, hidden: Tensor, b: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """The state at every chunk's border, mixed by the decay between chunks; and the zeros of the first."""
    tape, ssm = model.tape, sizes(model)
    width = ssm.inner * ssm.state
    own = gathered(hidden, b, ("chunks", chunk), width)
    zeros = tape.new("b", width, own.itemsize)
    rows: Rows = ("borders", chunk)
    joined = _extended(own, rows)
    del own
    copied = ops.copy(joined)
    mixed = _mixed(copied)
    del joined, copied
    return mixed, zeros


def _extended(x: Tensor, rows: Rows) -> Tensor:
    """``cat`` with a first state; the gradient is a slice."""
    tape = x.tape
    out = tape.new(rows, x.width, x.itemsize)
    if x.needs:
        own, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (Tensor(tape, g.storage, own, width, size),))
    return out


def _mixed(x: Tensor) -> Tensor:
    """The product with the decays between chunks; its gradient is filled up, copied and multiplied."""
    tape = x.tape
    kept = [tape.save(x)] if x.needs else []
    out = tape.like(x)
    if x.needs:
        rows, width, size = ops.shape_of(x)

        def backward(g: Tensor) -> tuple[Tensor]:
            whole = tape.new(rows, width, size)
            copied = tape.new(rows, width, size)
            del whole
            result = tape.new(rows, width, size)
            del copied
            return (result,)

        tape.attach(out, (x,), kept, backward)
    return out


def contracted(x: Tensor, y: Tensor, rows: Rows, width: int, *, copied: bool = True) -> Tensor:
    """A contraction: both sides cast under autocast, then permuted by copies (the first only if ``copied``)."""
    x, y = ops.autocast(x), ops.autocast(y)
    left = ops.copy(x) if copied else x
    right = ops.copy(y)
    return ops.matmul(left, right, rows, width)


def gathered(x: Tensor, y: Tensor, rows: Rows, width: int, *, copied: bool = True) -> Tensor:
    """A contraction whose result is permuted: the gradient is copied first."""
    out = contracted(x, y, rows, width, copied=copied)
    tape = out.tape
    view = out.detach()
    if out.needs:
        own, wide, size = ops.shape_of(out)
        tape.attach(view, (out,), (), lambda g: (tape.new(own, wide, size),))
    return view


def segment_sum(a: Tensor, chunk: int) -> Tensor:
    """Sums over every stretch within a chunk, by masks and a running sum."""
    tape = a.tape
    lower, filled = tape.new("1", chunk * chunk, BOOL), tape.new("1", chunk * chunk, BOOL)
    wide = routing.masked_fill(spread(a, chunk), filled)
    sums = cumulative(wide)
    below = tape.new("1", chunk * chunk, BOOL)
    out = routing.masked_fill(sums, below)
    del lower, wide, sums
    return out


def padded(x: Tensor, chunk: int) -> Tensor:
    """Zeros up to a whole chunk: always a copy; the gradient is copied twice (reshaped, then cut)."""
    tape = x.tape
    out = tape.new(("padded", chunk), x.width, x.itemsize)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def gated_norm(layer: Layer, x: Tensor, gate: Tensor, name: str, groups: int) -> Tensor:
    """``x * silu(gate)`` in fp32, then an RMS norm over each group, scaled in the scan's type."""
    size = x.itemsize
    h = ops.cast(x, FULL)
    h = ops.mul(h, ops.silu(ops.cast(gate, FULL)))
    variance = ops.mean(ops.power(h), groups)
    h = ops.mul(h, ops.rsqrt(ops.shift(variance)))
    weight: Leaf = layer.weight(f"{name}.weight")
    return ops.mul(ops.cast(h, size), weight)
