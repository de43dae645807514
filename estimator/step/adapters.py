"""LoRA as peft 0.21 runs it: ``result + B(A(dropout(x))) * scaling``, per target linear."""

from typing import TYPE_CHECKING

from estimator.step import ops
from estimator.step.dora import dora
from estimator.step.fused_lora import FUSED, fused_lora
from estimator.step.quantised import BITSANDBYTES, BITSANDBYTES_4BIT
from estimator.step.regime import AdapterRegime
from estimator.step.tape import FULL, Leaf, Tensor

if TYPE_CHECKING:
    from estimator.step.model import Layer

QV_ATTENTION = ("q_proj", "v_proj", "query_key_value", "c_attn", "qkv_proj", "q_b_proj", "kv_b_proj")
QV = frozenset((*QV_ATTENTION, "query", "value", "Wqkv", "in_proj"))
QKV = QV | {"k_proj", "key"}
NOT_ATTENTION = ("mlp", "experts", "fc1", "fc2", "lm_head", "intermediate", "dense_h_to_4h", "dense_4h_to_h", "output",
                 "predictions", "head", "pooler")  # fmt: skip


def targeted(targets: str | tuple[str, ...], name: str) -> bool:
    """Whether the linear called ``name`` in its layer carries an adapter."""
    last = name.rsplit(".", 1)[-1]
    if targets == "all-linear":
        return True
    if targets == "attention":
        words = name.split(".")
        return not last.startswith("in_proj") and ("attention" in words or not any(w in words for w in NOT_ATTENTION))
    if targets == "qv":
        return last in QV
    if targets == "qkv":
        return last in QKV
    return last in targets or name in targets


def carries(adapter: AdapterRegime | None, name: str) -> bool:
    """Whether the linear ``name`` carries an adapter that peft does not move to the experts."""
    if adapter is None or name.rsplit(".", 1)[-1] in adapter.moved:
        return False
    return targeted(adapter.targets, name)


def adapted(layer: "Layer", x: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """A target linear with its adapter; bitsandbytes' 4-bit bases clone their result and cast only without autocast."""
    adapter = layer.regime.adapter
    assert adapter is not None
    tape, quantised = layer.tape, layer.packed(name)
    drops = adapter.dropout > 0.0 and "weights-remade" not in layer.regime.quirks
    patched = "lora" in tape.fused and name.rsplit(".", 1)[-1] in FUSED
    if patched and not adapter.dora and not drops:
        width = layer.out_features(name, shape)
        return fused_lora(layer, x, name, width, adapter_leaves(layer, name, x.width, width))
    result = layer.whole_linear(x, name, shape)
    itemsize = result.itemsize
    if quantised in BITSANDBYTES_4BIT:
        result = ops.copy(result)
    by_conversion = quantised in BITSANDBYTES or (quantised or "").startswith("awq")
    matrices = adapter_leaves(layer, name, x.width, result.width)
    if not (by_conversion and tape.autocast):
        x = ops.cast(x, matrices[0].itemsize)
    if adapter.dora:
        dropped = adapter.dropout > 0.0
        update = dora(layer, ops.dropout(x, adapter.dropout), result, name, matrices, dropped)
    else:
        update = _update(layer, x, name, matrices, adapter, result.width)
        if by_conversion and not tape.autocast:
            update = ops.cast(update, itemsize)
    result = ops.add(result, update) if result.itemsize >= update.itemsize else ops.add(update, result)
    del update
    return result if by_conversion and tape.autocast else ops.cast(result, itemsize)


def _update(
    layer: "Layer", x: Tensor, name: str, matrices: tuple[Leaf, Leaf], adapter: AdapterRegime, width: int
) -> Tensor:
    """``B(A(dropout(x))) * scaling``; under tensor parallel B is dealt out with the base's columns, A with its rows."""
    from estimator.step.model import linear

    down, up = matrices
    tensor, part = layer.parted(name)
    if tensor is None:
        update = _matrix(layer, ops.dropout(x, adapter.dropout), down, adapter.rank)
        update = _matrix(layer, update, up, width)
        return ops.scale(update)
    update = tensor.after(linear(ops.dropout(x, adapter.dropout), down, None, adapter.rank), part)
    update = linear(tensor.before(update, part), up, None, width)
    return ops.scale(update)


def _matrix(layer: "Layer", x: Tensor, leaf: Leaf, width: int) -> Tensor:
    """One matrix of an adapter, a module of its own."""
    from estimator.step.model import linear

    runtime = layer.runtime
    if runtime is None or layer.tape.replaying:
        return linear(x, leaf, None, width)
    out = linear(runtime.before_leaf(layer, leaf, x), leaf, None, width)
    runtime.after_leaf(layer, leaf, out)
    return out


def adapter_leaves(layer: "Layer", name: str, inputs: int, outputs: int) -> tuple[Leaf, Leaf]:
    """The two trainable matrices of an adapter, in fp32 where its linear is."""
    adapter = layer.regime.adapter
    assert adapter is not None
    base = layer.leaves.get(f"{name}.weight")
    itemsize = FULL if base and base.itemsize == FULL and not layer.packed(name) else adapter.itemsize
    down = layer.extra(f"{name}.lora_A", inputs * adapter.rank, itemsize)
    return down, layer.extra(f"{name}.lora_B", outputs * adapter.rank, itemsize)
