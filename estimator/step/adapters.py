"""LoRA as peft 0.21 runs it: ``result + B(A(dropout(x))) * scaling``, per target linear."""

from typing import TYPE_CHECKING

from estimator.step import ops
from estimator.step.tape import Leaf, Tensor

if TYPE_CHECKING:
    from estimator.step.model import Layer

QV = frozenset("q_proj v_proj query_key_value c_attn qkv_proj q_b_proj kv_b_proj query value Wqkv in_proj".split())
QKV = QV | {"k_proj", "key"}
NOT_ATTENTION = ("mlp", "experts", "fc1", "fc2", "lm_head", "intermediate", "dense_h_to_4h", "dense_4h_to_h", "output")


def targeted(targets: str | tuple[str, ...], name: str) -> bool:
    """Whether the linear called ``name`` in its layer carries an adapter."""
    last = name.rsplit(".", 1)[-1]
    if targets == "all-linear":
        return True
    if targets == "attention":
        return not any(word in name.split(".") for word in NOT_ATTENTION)
    if targets == "qv":
        return last in QV
    if targets == "qkv":
        return last in QKV
    return last in targets or name in targets


def adapted(layer: "Layer", x: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """A target linear with its adapter; a 4-bit base clones its result and casts only without autocast."""
    from estimator.step.model import linear

    adapter = layer.regime.adapter
    assert adapter is not None
    tape = layer.tape
    result = layer.base_linear(x, name, shape)
    itemsize = result.itemsize
    four_bit = layer.regime.quantised is not None
    if four_bit:
        result = ops.copy(result)
    if not (four_bit and tape.autocast):
        x = ops.cast(x, adapter.itemsize)
    down, up = adapter_leaves(layer, name, x.width, result.width)
    update = linear(linear(ops.dropout(x, adapter.dropout), down, None, adapter.rank), up, None, result.width)
    update = ops.scale(update)
    if four_bit and not tape.autocast:
        update = ops.cast(update, itemsize)
    result = ops.add(result, update)
    del update
    return ops.cast(result, itemsize)


def adapter_leaves(layer: "Layer", name: str, inputs: int, outputs: int) -> tuple[Leaf, Leaf]:
    """The two trainable matrices of an adapter."""
    adapter = layer.regime.adapter
    assert adapter is not None
    down = layer.extra(f"{name}.lora_A", inputs * adapter.rank, adapter.itemsize)
    return down, layer.extra(f"{name}.lora_B", outputs * adapter.rank, adapter.itemsize)
