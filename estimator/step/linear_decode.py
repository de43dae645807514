"""Linear attention with a cache: states of fixed size, made with the prompt and updated in place by each token.

As transformers 5.24 runs the gated delta-net of Qwen 3-Next without the fla and causal-conv1d packages
(``causal_conv1d_update``, ``torch_recurrent_gated_delta_rule``).
"""

from estimator.architecture import LinearAttention
from estimator.step import ops, routing
from estimator.step.model import Layer
from estimator.step.tape import FULL, Tensor


def keep_window(layer: Layer, x: Tensor, kernel: int) -> None:
    """The convolution's last ``kernel`` inputs, a buffer that is made once."""
    if layer.cache is not None and not x.tape.stage:
        layer.cache.keep("convolution", x.tape.new("b", kernel * x.width, x.itemsize, "kv_cache"))


def keep_state(layer: Layer, state: Tensor) -> None:
    """The recurrent state, a buffer that is made once; the state itself is copied into it."""
    if layer.cache is not None and not state.tape.stage:
        layer.cache.keep("recurrent", state.tape.new("b", state.width, state.itemsize, "kv_cache"))


def keep_scan(layer: Layer, x: Tensor, width: int) -> None:
    """The state of a state space, ``width`` elements in fp32, made with the prompt."""
    if layer.cache is not None and not x.tape.stage:
        layer.cache.keep("recurrent", x.tape.new("b", width, FULL, "kv_cache"))


def next_convolution(x: Tensor, kernel: int) -> Tensor:
    """One more token behind the window, the convolution of both, SiLU of the last result."""
    tape = x.tape
    window = tape.new("b", (kernel + 1) * x.width, x.itemsize)
    convolved = tape.new("b", 2 * x.width, x.itemsize)
    out = tape.like(x)
    del window, convolved
    return out


def next_step(
    lin: LinearAttention, q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor]:
    """The delta rule for one token: the state decays, is read, corrected and read again. Returns result and state."""
    tape, size, heads = q.tape, q.itemsize, lin.value_heads
    groups, width = heads // lin.key_heads, heads * lin.key_dim * lin.value_dim
    q, k = ops.repeat(q, groups), ops.repeat(k, groups)
    q, k, v, beta = ops.cast(q, FULL), ops.cast(k, FULL), ops.cast(v, FULL), ops.cast(beta, FULL)
    q = _unit(q, heads)
    k = _unit(k, heads)
    q = ops.scale(q)
    core, passed = tape.like(v), ops.keeps_output(decay)
    state = tape.new("b", width, FULL)
    read = _reduced(state, v)
    delta = ops.mul(ops.subtract(v, read), beta)
    outer = tape.like(state)
    state = ops.add(state, outer)
    del outer
    _reduced(state, v)
    out = ops.cast(core, size)
    del core, passed, delta, read
    return out, state


def _unit(x: Tensor, heads: int) -> Tensor:
    """``x / |x|`` over each head."""
    return ops.mul(x, ops.rsqrt(ops.shift(routing.total(ops.mul(x, x), heads))))


def _reduced(state: Tensor, like: Tensor) -> Tensor:
    """``(state * key).sum``: the product has the size of the state."""
    product = state.tape.like(state)
    out = state.tape.like(like)
    del product
    return out
