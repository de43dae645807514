"""What the layer-norm era's families share: what layers read around them, dropout, norms only their reader holds."""

from estimator.errors import EstimatorError
from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.model import Layer, Model
from estimator.step.tape import Tensor
from estimator.step.written import rate


class Around:
    """What all layers read: position ids, the mask, position tables."""

    def __init__(self, ids: Tensor | None, mask: Tensor | None, *tables: Tensor) -> None:
        self.ids, self.mask, self.tables = ids, mask, tables


def shared(model: Model, hidden: Tensor) -> Around:
    """What the stem has made on its way. Raises EstimatorError for a pipeline's later stage, which has no stem."""
    around: Around | None = model.around
    if around is None:
        raise EstimatorError(
            f"pipeline stages of {model.arch.model_type} are not estimated; share its parameters out with "
            "parallel.engine fsdp2 or deepspeed",
            f"暂不支持 {model.arch.model_type} 的流水线并行；可改用 parallel.engine fsdp2 或 deepspeed 分片参数",
            "parallel",
        )
    model.around = None
    return around


def dropped(model: Model, x: Tensor) -> Tensor:
    """The dropout of what a block adds to the residual stream."""
    return ops.dropout(x, rate(model, model.arch.dropout))


def normed(model: Model, layer: Layer, x: Tensor, name: str) -> Tensor:
    """A layer norm; as an argument of its only reader, nobody else holds it."""
    with model.tape.inside("norm"):
        return layer.layer_norm(x, name)


def plain_mlp(model: Model, layer: Layer, x: Tensor, up: str, down: str) -> Tensor:
    """Up, activation, down."""
    with model.tape.inside("mlp"):
        x = layer.linear(x, up)
        x = activation(model.arch.activation)(x)
        return layer.linear(x, down)
