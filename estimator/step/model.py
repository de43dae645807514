"""The parameters of a model as leaves of the tape, and the linears with their adapters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from estimator.architecture import UNPACKED, Architecture, Inventory, LayerKind, Weight
from estimator.step import fused, ops
from estimator.step.adapters import adapted, carries
from estimator.step.cache import Cache
from estimator.step.quantised import quantised_linear
from estimator.step.regime import Regime
from estimator.step.runtime import Runtime
from estimator.step.tape import FULL, Leaf, Tape, Tensor

if TYPE_CHECKING:
    from estimator.parallel.tensor import TensorParallel


class Layer:
    """One layer (or the stem, or the top) with its parameters, looked up by module name."""

    def __init__(self, tape: Tape, regime: Regime, weights: Sequence[Weight], kind: LayerKind | None, trains: bool):
        self.tape = tape
        self.regime = regime
        self.kind = kind
        self.trains = trains
        self.index = 0
        self.shapes = {weight.name: weight for weight in weights}
        self.leaves: dict[str, Leaf] = {}
        self.bias_added = False
        self.cache: Cache | None = None
        self.runtime: Runtime | None = None

    def cached(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values to attend to: with a cache, those of all tokens so far."""
        return (k, v) if self.cache is None else self.cache.update(k, v)

    def has(self, name: str) -> bool:
        """Whether the layer has a parameter of this name."""
        return name in self.shapes

    def weight(self, name: str, itemsize: int = 0) -> Leaf:
        """The leaf of a parameter, made when first asked for; ``itemsize`` where its class fixes the type."""
        leaf = self.leaves.get(name)
        if leaf is None:
            leaf = self.leaves[name] = self._leaf(self.shapes[name], itemsize)
        return leaf

    def name_of(self, part: str) -> str:
        """The parameter that plays ``part`` in this layer (see ``Weight``), or ""."""
        return next((weight.name for weight in self.shapes.values() if weight.part == part), "")

    def module_of(self, part: str) -> str:
        """The module whose weight plays ``part`` in this layer, or ""."""
        return self.name_of(part).removesuffix(".weight")

    def extra(self, name: str, elements: int, itemsize: int) -> Leaf:
        """A trainable parameter that the base model does not have (an adapter's)."""
        if name not in self.leaves:
            self.leaves[name] = self._trainable(name, elements, itemsize, True)
        return self.leaves[name]

    def _leaf(self, weight: Weight, itemsize: int = 0) -> Leaf:
        leaf = self._trainable(weight.name, weight.numel, itemsize or itemsize_of(weight, self.regime), self.trains)
        leaf.shape = weight.shape
        return leaf

    def _trainable(self, name: str, elements: int, itemsize: int, trains: bool) -> Leaf:
        leaf = Leaf(self.tape, elements, itemsize, trains, name)
        adds = self.regime.accumulates and not (self.runtime is not None and self.runtime.reduces)
        if adds and leaf.needs:
            leaf.gradient = Leaf(self.tape, elements, itemsize, False)
        return leaf

    def linear(self, x: Tensor, name: str) -> Tensor:
        """``name`` applied to ``x``, with its adapter when it carries one."""
        shape = self.shapes[f"{name}.weight"].shape
        if carries(self.regime.adapter, name):
            return adapted(self, x, name, shape)
        return self.whole_linear(x, name, shape)

    def packed(self, name: str) -> str | None:
        """The format that the linear is packed in."""
        return None if self.shapes[f"{name}.weight"].part == UNPACKED else self.regime.quantised

    def parted(self, name: str) -> "tuple[TensorParallel | None, str]":
        """Who deals this linear out to several ranks, and which part of the layer it is."""
        tensor = self.runtime.tensor if self.runtime is not None else None
        return tensor, self.shapes[f"{name}.weight"].part

    def sees(self, around: Any) -> Any:
        """What this layer is handed of that which was made for all: where kinds of layers differ, its own kind's."""
        return around.of(self) if hasattr(around, "of") else around

    def whole_linear(self, x: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
        """The linear without an adapter, with what tensor parallel adds around it."""
        tensor, part = self.parted(name)
        if tensor is None:
            return self.base_linear(x, name, shape)
        return tensor.after(self.base_linear(tensor.before(x, part), name, shape), part)

    def base_linear(self, x: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
        """The linear itself, quantised or plain."""
        weight = self.weight(f"{name}.weight")
        bias = self.weight(f"{name}.bias") if f"{name}.bias" in self.shapes else None
        width = self.out_features(name, shape)
        if self.packed(name) is not None:
            regime = self.regime
            old = {"remade": "one-cast" in regime.quirks, "kept": "inputs-kept" in regime.quirks}
            return quantised_linear(x, weight.width, width, str(regime.quantised), fp16=regime.fp16, **old)
        if bias is not None and self.bias_added:
            return ops.add(linear(x, weight, None, width), bias)
        return linear(x, weight, bias, width)

    def out_features(self, name: str, shape: tuple[int, ...]) -> int:
        """Rows of the weight as the result has them (GPT-2's Conv1D stores them the other way round)."""
        bias = self.shapes.get(f"{name}.bias")
        return bias.shape[0] if bias is not None else shape[0]

    def rms_norm(self, x: Tensor, name: str, groups: int = 1) -> Tensor:
        """Llama's RMS norm as transformers writes it: in fp32, cast back, then scaled; of each of ``groups`` heads."""
        if "norm" in self.tape.fused:
            return fused.rms_norm(x, self.weight(f"{name}.weight"), groups)
        itemsize = x.itemsize
        h = ops.cast(x, FULL)
        variance = ops.mean(ops.power(h), groups)
        h = ops.mul(h, ops.rsqrt(ops.shift(variance)))
        return ops.mul(ops.cast(h, itemsize), self.weight(f"{name}.weight"))

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        """``nn.LayerNorm``."""
        bias = self.weight(f"{name}.bias") if f"{name}.bias" in self.shapes else None
        return ops.layer_norm(x, self.weight(f"{name}.weight"), bias)


def itemsize_of(weight: Weight, regime: Regime) -> int:
    """Bytes per element of an unquantised parameter."""
    if (
        weight.full
        or (weight.part == UNPACKED and regime.fp16)
        or (regime.kbit and not weight.name.endswith(("_proj.bias",)) and not half_end(weight, regime))
    ):
        return FULL
    return regime.itemsize


HALF_ENDS = ("lm_head", "embed_tokens", "wte", "wpe")


def half_end(weight: Weight, regime: Regime) -> bool:
    """Whether a k-bit preparation's fp32 was taken back (see ``habits.old_habits``)."""
    return "half-ends" in regime.quirks and any(name in weight.name for name in HALF_ENDS)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, width: int) -> Tensor:
    """``F.linear``: keeps the input for a trainable weight, and the weight for an input that wants a gradient.

    Autocast casts the arguments from the last to the first.
    """
    bias = ops.autocast(bias) if bias is not None else None
    weight = ops.autocast(weight)
    x = ops.autocast(x)
    tape = x.tape
    need_x, need_weight = x.needs, weight.needs
    kept = [tape.save(x)] if need_weight else []
    if need_x:
        kept.append(tape.save(weight))
    out = tape.result("mm" if bias is None else "addmm", x.rows, width, x.itemsize)
    inputs = (x, weight) if bias is None else (x, weight, bias)
    if not (need_x or need_weight or (bias is not None and bias.needs)):
        return out
    rows, inner, itemsize = ops.shape_of(x)
    (of_weight, elements, size), biased = ops.shape_of(weight), bias is not None

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        gx = tape.new(rows, inner, itemsize) if need_x else None
        gw = tape.new(of_weight, elements, size, "gradients") if need_weight else None
        return (gx, gw, g) if biased else (gx, gw)

    return tape.attach(out, inputs, kept, backward)


def _short_names(weights: Sequence[Weight]) -> list[Weight]:
    """The last module and the parameter: "embed_tokens.weight", however deep the base model nests it."""
    return [weight._replace(name=".".join(weight.name.split(".")[-2:])) for weight in weights]


class Model:
    """What the families work on: stem, traced layers and top, with the facts of the architecture."""

    def __init__(
        self, tape: Tape, arch: Architecture, inventory: Inventory, regime: Regime, runtime: Runtime | None = None
    ) -> None:
        self.tape = tape
        self.runtime = runtime or Runtime()
        self.arch = arch
        self.inventory = inventory
        self.regime = regime
        tape.single = regime.single
        self.layers: list[Layer] = []
        self.given_mask: Tensor | None = None
        self.given_positions: Tensor | None = None
        self.around: Any = None
        self.held: list[Tensor] = []
        self.given: list[Tensor] = []
        """What the forward of an encoder-decoder holds until it has its loss."""
        self.source: Tensor | None = None
        """What the encoder made, which the outputs hold."""
        self.returned: list[tuple[int, Tensor]] = []
        """What the model's outputs hold besides logits, with its segment."""
        self.images: Any = None
        everything = regime.trainable == "all"
        stem, top = _short_names(inventory.stem), _short_names(inventory.top)
        self.stem_name = stem[0].name
        self.stem = Layer(tape, regime, stem, None, everything)
        self.top = Layer(tape, regime, top, None, everything)
        self.stem.runtime = self.top.runtime = self.runtime

    def layer(self, index: int) -> Layer:
        """Layer ``index`` of the real model."""
        kind = self.inventory.kinds[self.inventory.layers[index]]
        mixed = self.runtime.mixes and self.regime.adapter is not None
        layer = Layer(self.tape, self.regime, kind.weights, kind, mixed or self.trains(index))
        layer.index, layer.runtime = index, self.runtime
        self.layers.append(layer)
        return layer

    def look_up(self, weight: Leaf, ids: Tensor, width: int) -> Tensor:
        """Rows of the embedding, of all ranks where the vocabulary is dealt out to several."""
        tensor = self.runtime.tensor
        if tensor is None or tensor.whole_ends:
            return ops.embedding(weight, ids.rows, width, ids)
        return tensor.embedding(weight, ids, width, self.arch.tied)

    def entered(self, x: Tensor) -> Tensor:
        """What attention and MLP are handed: the whole sequence where the residual stream is dealt out."""
        return x if self.runtime.tensor is None else self.runtime.tensor.enter(x)

    @property
    def asks_for_input_gradients(self) -> bool:
        """Whether a frozen embedding's result is made to want a gradient (transformers 5 under checkpointing)."""
        regime = self.regime
        return regime.training and regime.checkpointing != "none" and "frozen-input" not in regime.quirks

    def trains(self, index: int) -> bool:
        """Whether the parameters of this layer train (not its adapters)."""
        return self.regime.trains(index, len(self.inventory.layers))


def wants_gradient(hidden: Tensor) -> Leaf:
    """A frozen embedding's result as a leaf that wants a gradient (transformers' ``enable_input_require_grads``)."""
    leaf = Leaf(hidden.tape, hidden.width, hidden.itemsize, True)
    leaf.rows, leaf.storage, leaf.is_parameter = hidden.rows, hidden.storage, False
    return leaf


def embedded(model: Model, name: str, ids: Tensor) -> Tensor:
    """Token embeddings; under checkpointing of a frozen model their result is made to want a gradient."""
    weight = model.stem.weight(name)
    out = model.look_up(weight, ids, model.stem.shapes[name].shape[-1])
    if model.asks_for_input_gradients and not out.needs:
        return wants_gradient(out)
    return out
