"""Mamba-1 layers as transformers 5.24 runs them without the mamba-ssm and causal-conv1d packages.

The torch fallback is assumed: a scan token by token whose decays, inputs and states of every token stay, each the inner
width times the state size in fp32. The fused kernels of mamba-ssm keep far less.
"""

from collections.abc import Sequence

from estimator.architecture import StateSpace
from estimator.step import ops
from estimator.step.linear_attention import causal_convolution, copied_back
from estimator.step.linear_decode import keep_scan, keep_window
from estimator.step.model import Layer, Model, linear
from estimator.step.norms import unscaled
from estimator.step.tape import FULL, Rows, Tensor


def sizes(model: Model) -> StateSpace:
    """Widths of the state space."""
    assert model.arch.ssm is not None
    return model.arch.ssm


def mixer(model: Model, layer: Layer, x: Tensor, name: str) -> Tensor:
    """Projection, convolution, selection, scan and output projection of the module ``name``."""
    ssm, itemsize = sizes(model), x.itemsize
    projected = copied_back(layer.linear(x, f"{name}.in_proj"))
    rate = ops.negate(ops.keeps_output(ops.cast(layer.weight(f"{name}.A_log"), FULL)))
    hidden, gate = ops.split(projected, (ssm.inner, ssm.inner))
    keep_window(layer, hidden, ssm.conv_kernel)
    hidden = causal_convolution(layer, hidden, f"{name}.conv1d", ssm.conv_kernel, activated=True)
    single = model.regime.single
    selected = layer.linear(hidden if single else ops.copy(hidden), f"{name}.x_proj")
    parts = ops.split(selected, (ssm.dt_rank, ssm.state, ssm.state))
    weightless = model.arch.model_type == "falcon_mamba"
    letters = (f"{name}.{letter}" for letter in ("dt", "b", "c"))
    dt, b, c = (normed(layer, part, own, weightless) for part, own in zip(parts, letters, strict=True))
    dt = linear(dt, layer.weight(f"{name}.dt_proj.weight"), None, ssm.inner)
    dt = dt if single else ops.copy(dt)
    bias = ops.cast(layer.weight(f"{name}.dt_proj.bias"), FULL)
    direct = ops.cast(layer.weight(f"{name}.D"), FULL)
    out = scan(ssm, (hidden, dt, rate, b, c), bias, direct, gate)
    keep_scan(layer, out, ssm.inner * ssm.state)
    out = layer.linear(ops.cast(out, itemsize), f"{name}.out_proj")
    del projected, selected, parts
    return out


def normed(layer: Layer, x: Tensor, name: str, weightless: bool) -> Tensor:
    """One of the selected parts, with the norm that Jamba (scaled) and Falcon-Mamba (unscaled) put on it."""
    if layer.has(f"{name}_layernorm.weight"):
        return layer.rms_norm(x, f"{name}_layernorm")
    return unscaled(x) if weightless else x


def scan(ssm: StateSpace, inputs: tuple[Tensor, ...], bias: Tensor, direct: Tensor, gate: Tensor) -> Tensor:
    """Discretised decays and inputs of all tokens, the states one after the other, the direct path and the gate."""
    hidden, dt, rate, b, c = inputs
    width = ssm.inner * ssm.state
    dt = ops.keeps_input(ops.full(ops.add(dt, ops.cast(bias, dt.itemsize))))
    decay = ops.keeps_output(outer(dt, rate, width))
    taken = outer(outer(dt, ops.cast(b, FULL), width), ops.cast(hidden, FULL), width)
    out = states(decay, taken, c, hidden, width)
    out = ops.add(skipped(hidden, direct), out)
    out = ops.mul(out, ops.silu(gate))
    del decay, taken, inputs, dt
    return out


def outer(x: Tensor, y: Tensor, width: int) -> Tensor:
    """A product that spreads both sides over inner width and state; both gradients are summed from it."""
    tape = x.tape
    kept = [tape.save(t) for t, wanted in ((x, y.needs), (y, x.needs)) if wanted]
    out = tape.new(x.rows, width, FULL)
    rows, need_x, need_y = x.rows, x.needs, y.needs

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        left = tape.new(rows, width, FULL) if need_x else None
        return left, tape.new(rows, width, FULL) if need_y else None

    return tape.attach(out, (x, y), kept, backward) if kept else out


def skipped(x: Tensor, weight: Tensor) -> Tensor:
    """``x * D`` in fp32."""
    tape = x.tape
    kept = [tape.save(t) for t, wanted in ((x, weight.needs), (weight, x.needs)) if wanted]
    out = tape.like(x, FULL)
    shape, needs = ops.shape_of(out), (x.needs, weight.needs)
    if not kept:
        return out
    return tape.attach(out, (x, weight), kept, lambda g: [tape.new(*shape) if need else None for need in needs])


def states(decay: Tensor, taken: Tensor, c: Tensor, hidden: Tensor, width: int) -> Tensor:
    """The scan: every token's state stays, in fp32 (but the last) and in the type of the read-out."""
    tape, size = decay.tape, hidden.itemsize
    needed = any(t.needs for t in (decay, taken, c))
    whole = needed and not (tape.frame is not None and tape.frame.kept is None)
    rows: Rows = decay.rows if whole else "b"
    full = tape.new(("longer", -1) if whole else "b", width, FULL)
    read = tape.new(rows, width, size) if size != FULL else full
    each = tape.like(hidden)
    out = tape.like(hidden)
    kept = [tape.save(t) for t in (decay, c, full, read)] if needed else []
    del full, read, each
    if not needed:
        return out
    shapes = [ops.shape_of(t) for t in (decay, taken, c)]

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        grads = [tape.new(*shape) for shape in shapes]
        again = [tape.new(*shapes[0]) for _ in range(2)]
        del again
        return grads

    return tape.attach(out, (decay, taken, c), kept, backward)
