"""The tape keeps what PyTorch's autograd keeps, for as long."""

import gc

from estimator.step import ops
from estimator.step.tape import FULL, HALF, Leaf, Tape, Tensor


def live(tape: Tape) -> dict[tuple[object, int], int]:
    """Storages alive by (rows, bytes per row)."""
    counts: dict[tuple[object, int], int] = {}
    for event in tape.events:
        kind = tape.kinds[event if event >= 0 else ~event]
        counts[kind[:2]] = counts.get(kind[:2], 0) + (1 if event >= 0 else -1)
    return {key: count for key, count in counts.items() if count}


def leaf_input(tape: Tape, width: int = 8) -> Leaf:
    leaf = Leaf(tape, width, HALF, True)
    leaf.rows, leaf.is_parameter = "T", False
    leaf.storage = tape.new("T", width, HALF).storage
    return leaf


def loss_of(x: Tensor) -> Tensor:
    return ops.mean_all(x)


def test_a_tensor_dies_with_its_last_reference() -> None:
    tape = Tape()
    x = tape.new("T", 8, HALF)
    view = x.view(width=4)
    del x
    assert live(tape) == {("T", 16): 1}
    del view
    assert live(tape) == {}


def test_silu_keeps_its_input_and_releases_it_in_the_backward() -> None:
    tape = Tape()
    x = ops.scale(leaf_input(tape))
    loss = loss_of(ops.silu(x))
    del x
    before = live(tape)[("T", 16)]
    tape.backward(loss)
    assert before == 2
    assert live(tape).get(("T", 16), 0) <= 1


def test_without_gradients_nothing_is_kept() -> None:
    tape = Tape()
    tape.grad_enabled = False
    x = tape.new("T", 8, HALF)
    y = ops.silu(ops.silu(x))
    assert live(tape) == {("T", 16): 2}
    assert y.node is None


def test_a_broadcast_gradient_is_summed_to_the_weight() -> None:
    tape = Tape()
    weight = Leaf(tape, 8, HALF, True)
    loss = loss_of(ops.mul(leaf_input(tape), weight))
    tape.backward(loss)
    assert weight.gradient is not None
    assert (weight.gradient.rows, weight.gradient.width) == ("1", 8)


def test_a_leaf_used_twice_waits_for_both_gradients() -> None:
    tape = Tape()
    x = leaf_input(tape)
    weight = Leaf(tape, 8, HALF, True)
    loss = loss_of(ops.mul(ops.mul(x, weight), weight))
    assert weight.uses == 2
    tape.backward(loss)
    assert weight.uses == 0
    assert weight.gradient is not None


def test_checkpointing_keeps_only_the_input() -> None:
    def region(x: Tensor) -> Tensor:
        return ops.silu(ops.silu(ops.silu(x)))

    kept = {}
    for checkpointed in (False, True):
        tape = Tape()
        x = leaf_input(tape)
        out = tape.checkpoint(region, x) if checkpointed else region(x)
        kept[checkpointed] = live(tape)[("T", 16)]
        tape.backward(loss_of(out))
        del out, x
        gc.collect()
    assert kept == {False: 4, True: 2}


def test_autocast_caches_the_copy_of_a_trainable_weight() -> None:
    tape = Tape(autocast=True)
    weight = Leaf(tape, 64, FULL, True)
    first, second = ops.autocast(weight), ops.autocast(weight)
    assert first is second
    del first, second
    assert live(tape) == {("1", 128): 1}
    tape.end_autocast()
    assert live(tape) == {}


def test_autocast_does_not_cache_a_frozen_weight() -> None:
    tape = Tape(autocast=True)
    weight = Leaf(tape, 64, FULL, False)
    assert ops.autocast(weight) is not ops.autocast(weight)
    assert live(tape) == {}
