"""Operations on tensors without values: what each allocates, keeps for the backward, and allocates there.

Every rule is the derivative formula of PyTorch 2.13 (tools/autograd/derivatives.yaml and FunctionsManual.cpp) counted
in tensors; temporaries of one C++ expression live together until the expression ends.
"""

from collections.abc import Sequence

from estimator.step.tape import BOOL, FULL, HALF, LONG, Leaf, Rows, Tensor

Shape = tuple[Rows, int, int]


def shape_of(x: Tensor) -> Shape:
    """Rows, width and item size, to allocate the like later without holding the tensor."""
    return x.rows, x.width, x.itemsize


def cast(x: Tensor, itemsize: int) -> Tensor:
    """``x.to(dtype)``: nothing when the type is right already."""
    if x.itemsize == itemsize:
        return x
    tape = x.tape
    out = tape.like(x, itemsize)
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def autocast(x: Tensor) -> Tensor:
    """``x`` in half precision under autocast; copies of trainable fp32 leaves are cached until autocast ends.

    Views are not (aten/src/ATen/autocast_mode.cpp, ``cached_cast``).
    """
    tape = x.tape
    if not tape.autocast or x.itemsize != FULL:
        return x
    if not (tape.keeps_casts and isinstance(x, Leaf) and x.needs):
        return _half_copy(x)
    hit = tape.casts.get(id(x))
    if hit is None:
        hit = tape.casts[id(x)] = (x, _half_copy(x), tape.segment)
    return hit[1]


def _half_copy(x: Tensor) -> Tensor:
    tape = x.tape
    is_parameter = isinstance(x, Leaf) and x.is_parameter
    out = tape.like(x, HALF, "weight_casts" if is_parameter else "")
    if x.needs:
        rows, width, size = shape_of(x)
        item = "gradients" if is_parameter else ""
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size, item),))
    return out


def full(x: Tensor) -> Tensor:
    """``x`` in fp32 where autocast asks for it (layer norms, softmax, losses, powers)."""
    return cast(x, FULL) if x.tape.autocast else x


def mul(x: Tensor, y: Tensor) -> Tensor:
    """``x * y``; ``x`` has the shape of the result, ``y`` may broadcast."""
    tape = x.tape
    if tape.fused:
        from estimator.step.fused import Gate, gated

        if isinstance(x, Gate) or isinstance(y, Gate):
            return gated(x, y)
    need_x, need_y = x.needs, y.needs
    kept = [tape.save(x)] if need_y else []
    if need_x:
        kept.append(tape.save(y))
    out = tape.like(x, max(x.itemsize, y.itemsize))
    if not (need_x or need_y):
        return out
    rows, width, size = shape_of(out)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        gx = tape.new(rows, width, size) if need_x else None
        return gx, tape.new(rows, width, size) if need_y else None

    return tape.attach(out, (x, y), kept, backward)


def scale(x: Tensor) -> Tensor:
    """``x * number``."""
    tape = x.tape
    out = tape.like(x)
    rows, width, size = shape_of(x)
    if x.needs:
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def add(x: Tensor, y: Tensor) -> Tensor:
    """``x + y``; ``x`` has the shape of the result. Both gradients are the incoming one."""
    tape = x.tape
    out = tape.like(x, max(x.itemsize, y.itemsize))
    if x.needs or y.needs:
        tape.attach(out, (x, y), (), lambda g: (g, g))
    return out


def shift(x: Tensor) -> Tensor:
    """``x + number``."""
    out = x.tape.like(x)
    if x.needs:
        x.tape.attach(out, (x,), (), lambda g: (g,))
    return out


def subtract(x: Tensor, y: Tensor) -> Tensor:
    """``x - y``; ``x`` has the shape of the result, ``y`` may broadcast: its gradient is a new, negated tensor."""
    tape = x.tape
    out = tape.like(x, max(x.itemsize, y.itemsize))
    if not (x.needs or y.needs):
        return out
    rows, width, size = shape_of(out)
    need_y = y.needs
    return tape.attach(out, (x, y), (), lambda g: (g, tape.new(rows, width, size) if need_y else None))


def negate(x: Tensor) -> Tensor:
    """``-x``."""
    return scale(x)


def power(x: Tensor) -> Tensor:
    """``x.pow(n)``, fp32 under autocast; the backward makes ``x ** (n-1)``, its multiple and the product."""
    x = full(x)
    tape = x.tape
    kept = [tape.save(x)] if x.needs else []
    out = tape.like(x)
    if not x.needs:
        return out
    rows, width, size = shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        lower = tape.new(rows, width, size)
        multiple = tape.new(rows, width, size)
        result = tape.new(rows, width, size)
        del lower, multiple
        return (result,)

    return tape.attach(out, (x,), kept, backward)


def mean(x: Tensor, groups: int = 1) -> Tensor:
    """Mean over the last dimension, of each of ``groups`` heads; the backward divides an expanded gradient."""
    tape = x.tape
    out = tape.new(x.rows, groups, x.itemsize)
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def rsqrt(x: Tensor) -> Tensor:
    """``1 / sqrt(x)``, keeping the result."""
    tape = x.tape
    out = tape.like(x)
    if not x.needs:
        return out
    rows, width, size = shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        parts = [tape.new(rows, width, size) for _ in range(3)]
        return (parts[-1],)

    return tape.attach(out, (x,), [tape.save(out)], backward)


def keeps_input(x: Tensor) -> Tensor:
    """An elementwise function whose derivative needs its input, in one kernel (SiLU, GELU, sigmoid-like)."""
    tape = x.tape
    kept = [tape.save(x)] if x.needs else []
    out = tape.like(x)
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), kept, lambda g: (tape.new(rows, width, size),))
    return out


def keeps_output(x: Tensor) -> Tensor:
    """An elementwise function whose derivative needs its result, in one kernel (ReLU, tanh, sigmoid)."""
    tape = x.tape
    out = tape.like(x)
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), [tape.save(out)], lambda g: (tape.new(rows, width, size),))
    return out


def silu(x: Tensor) -> Tensor:
    """SiLU (or GELU) in one kernel, or the gate of a fused product."""
    if "mlp" in x.tape.fused:
        from estimator.step.fused import gate_of

        return gate_of(x)
    return keeps_input(x)


gelu = silu
relu = tanh = sigmoid = keeps_output


def concat(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate along the last dimension; the gradients are slices of the incoming one."""
    tape = parts[0].tape
    widths = [part.width for part in parts]
    rows, size = parts[0].rows, parts[0].itemsize
    out = tape.new(rows, sum(widths), size)
    if any(part.needs for part in parts):
        tape.attach(out, parts, (), lambda g: [Tensor(tape, g.storage, rows, width, size) for width in widths])
    return out


def part(x: Tensor, width: int) -> Tensor:
    """``x[..., a:b]``: a view; its backward fills a tensor of the whole size."""
    tape = x.tape
    out = Tensor(tape, x.storage, x.rows, width, x.itemsize)
    if x.needs:
        rows, whole, size = shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, whole, size),))
    return out


def split(x: Tensor, widths: Sequence[int]) -> list[Tensor]:
    """``x.split(widths, -1)`` or ``chunk``: views; one backward concatenates the gradients."""
    tape = x.tape
    outs = [Tensor(tape, x.storage, x.rows, width, x.itemsize) for width in widths]
    if x.needs:
        rows, whole, size = shape_of(x)

        def backward(*grads: Tensor | None) -> Sequence[Tensor | None]:
            filled = [
                grad if grad is not None else tape.new(rows, width, size)
                for grad, width in zip(grads, widths, strict=True)
            ]
            out = tape.new(rows, whole, size)
            del filled
            return (out,)

        tape.attach_many(outs, (x,), (), backward)
    return outs


def copy(x: Tensor) -> Tensor:
    """``x.contiguous()`` where the layout forces a copy, or ``clone``; the gradient passes as it is."""
    out = x.tape.like(x)
    if x.needs:
        x.tape.attach(out, (x,), (), lambda g: (g,))
    return out


def fresh_gradient(x: Tensor) -> Tensor:
    """The same storage, whose gradient comes as a new tensor: a layout that must be copied, or a scaling in place."""
    tape = x.tape
    out = x.detach()
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def repeat(x: Tensor, times: int, *, copied: bool = True) -> Tensor:
    """Keys or values repeated for the query heads that share them: expanded and, unless it is one head, copied."""
    if times == 1:
        return x
    tape = x.tape
    storage = tape.new(x.rows, x.width * times, x.itemsize).storage if copied else x.storage
    out = Tensor(tape, storage, x.rows, x.width * times, x.itemsize)
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def dropout(x: Tensor, probability: float) -> Tensor:
    """Fused dropout: the result and a byte mask."""
    if probability == 0.0 or not x.tape.grad_enabled:
        return x
    tape = x.tape
    out = tape.like(x)
    mask = tape.like(x, BOOL)
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), [tape.save(mask)], lambda g: (tape.new(rows, width, size),))
    return out


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``native_layer_norm``: keeps the input, mean and reciprocal deviation; fp32 under autocast."""
    bias = full(bias) if bias is not None else None
    weight = full(weight)
    x = full(x)
    tape = x.tape
    inputs = [x, weight] if bias is None else [x, weight, bias]
    needed = any(t.needs for t in inputs)
    kept = [tape.save(t) for t in inputs] if needed else []
    out = tape.like(x)
    average, deviation = tape.new(x.rows, 1, FULL), tape.new(x.rows, 1, FULL)
    if not needed:
        return out
    kept += [tape.save(average), tape.save(deviation)]
    shapes = [(*shape_of(t), t.needs, "gradients" if isinstance(t, Leaf) else "") for t in inputs]

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        return [tape.new(rows, width, size, item) if need else None for rows, width, size, need, item in shapes]

    return tape.attach(out, inputs, kept, backward)


def embedding(weight: Leaf, rows: Rows, width: int, indices: Tensor) -> Tensor:
    """Rows of an embedding matrix; the backward makes a dense gradient of the whole matrix."""
    tape = weight.tape
    kept = [tape.save(indices)] if weight.needs else []
    out = tape.new(rows, width, weight.itemsize)
    if weight.needs:
        elements, size = weight.width, weight.itemsize
        tape.attach(out, (weight,), kept, lambda g: (tape.new("1", elements, size, "gradients"),))
    return out


def softmax(x: Tensor, itemsize: int = 0) -> Tensor:
    """Softmax, in fp32 where asked (a cast first) or under autocast; keeps its result."""
    x = cast(x, itemsize) if itemsize else full(x)
    return keeps_output(x)


def matmul(x: Tensor, y: Tensor, rows: Rows, width: int) -> Tensor:
    """Batched matrix product of two activations into ``rows`` x ``width``; keeps both."""
    y = autocast(y)
    x = autocast(x)
    tape = x.tape
    kept = [tape.save(t) for t, wanted in ((x, y.needs), (y, x.needs)) if wanted]
    out = tape.new(rows, width, x.itemsize)
    if not (x.needs or y.needs):
        return out
    left = shape_of(x) if x.needs else None
    right = shape_of(y) if y.needs else None

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        gx = tape.new(*left) if left else None
        return gx, tape.new(*right) if right else None

    return tape.attach(out, (x, y), kept, backward)


def integers(tape_of: Tensor, rows: Rows, width: int = 1) -> Tensor:
    """An int64 tensor (token ids, labels, positions)."""
    return tape_of.tape.new(rows, width, LONG)


def part_rows(x: Tensor, rows: Rows) -> Tensor:
    """``x[:, a:b]``: a view of fewer rows; its backward fills a tensor of the whole size."""
    tape = x.tape
    out = Tensor(tape, x.storage, rows, x.width, x.itemsize)
    if x.needs:
        whole, width, size = shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(whole, width, size),))
    return out


def mean_all(x: Tensor) -> Tensor:
    """The sum or mean of everything; the backward expands without an allocation."""
    tape = x.tape
    out = tape.new("1", 1, x.itemsize)
    if x.needs:
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), (), lambda g: (Tensor(tape, g.storage, rows, width, size),))
    return out


def plain_layer_norm(x: Tensor) -> Tensor:
    """``native_layer_norm`` without weight and bias."""
    x = full(x)
    tape = x.tape
    kept = [tape.save(x)] if x.needs else []
    out = tape.like(x)
    average, deviation = tape.new(x.rows, 1, FULL), tape.new(x.rows, 1, FULL)
    if x.needs:
        kept += [tape.save(average), tape.save(deviation)]
        rows, width, size = shape_of(x)
        tape.attach(out, (x,), kept, lambda g: (tape.new(rows, width, size),))
    return out


def to_half(x: Tensor) -> Tensor:
    """``x.to(half)`` where code casts by itself: no cached copy."""
    return x if x.itemsize == HALF else _half_copy(x)
