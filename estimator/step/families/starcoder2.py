"""StarCoder 2: Llama's attention with biases, layer norms and a plain feed-forward block."""

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.families import blocks, llama
from estimator.step.families.llama import Shared, attention, shared
from estimator.step.model import Layer, Model
from estimator.step.norms import layer_norm
from estimator.step.tape import Tensor
from estimator.step.written import rate

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Token embeddings, with dropout where the config has it."""
    return ops.dropout(llama.stem(model, ids), rate(model, model.arch.embedding_dropout))


def layer(model: Model, layer: Layer, x: Tensor, around: Shared) -> Tensor:
    """One decoder layer."""
    return blocks.pre_norm(model, layer, x, around, attention, mlp, layer_norm, dropped)


def dropped(model: Model, x: Tensor) -> Tensor:
    """Dropout on what a block adds."""
    return ops.dropout(x, rate(model, model.arch.dropout))


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """``c_proj(act(c_fc(x)))``."""
    x = layer.linear(x, "mlp.c_fc")
    x = activation(model.arch.activation)(x)
    return layer.linear(x, "mlp.c_proj")


def top(model: Model, x: Tensor) -> Tensor:
    """The final norm."""
    return model.top.layer_norm(x, "norm")
