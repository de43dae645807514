"""From the tower's result to features of the language model's width (transformers 5.24)."""

from estimator.step import ops
from estimator.step.model import Layer
from estimator.step.tape import Tensor
from estimator.vision.tower import Tower


def mlp(projector: Layer, stem: Layer, tower: Tower, x: Tensor) -> Tensor:
    """LLaVA: without the class token, two linears with a GELU between; a trained first one copies what it reads."""
    del stem
    x = _without_class(x, tower, projector.trains)
    h = _unfolded(projector, x, "linear_1") if tower.classes else projector.linear(x, "linear_1")
    h = ops.gelu(h)
    return projector.linear(h, "linear_2").view("F")


def _without_class(x: Tensor, tower: Tower, trains: bool) -> Tensor:
    if not tower.classes:
        return x
    x = ops.part_rows(x, "P")
    return ops.copy(x) if trains else x


def _unfolded(projector: Layer, x: Tensor, name: str) -> Tensor:
    """A linear of what is not contiguous: the product, then the bias."""
    projector.bias_added = True
    out = projector.linear(x, name)
    projector.bias_added = False
    return out


def linear(projector: Layer, stem: Layer, tower: Tower, x: Tensor) -> Tensor:
    """PaliGemma: the tower's last norm, one linear."""
    del tower
    return projector.linear(stem.layer_norm(x, "post_layernorm"), "linear").view("F")


def pooled(projector: Layer, stem: Layer, tower: Tower, x: Tensor) -> Tensor:
    """Gemma 3: the last norm, patches averaged over squares, an RMS norm, a matrix."""
    tape = x.tape
    x = ops.fresh_gradient(ops.copy(stem.layer_norm(x, "post_layernorm")))
    average = tape.new("F", tower.hidden, x.itemsize)
    if x.needs:
        shape = ops.shape_of(x)
        tape.attach(average, (x,), [tape.save(x)], lambda g: (tape.new(*shape),))
    normed = projector.rms_norm(average, "mm_soft_emb_norm")
    weight = projector.weight("mm_input_projection_weight")
    return ops.matmul(normed, weight, "F", tower.out)


def merger(projector: Layer, stem: Layer, tower: Tower, x: Tensor) -> Tensor:
    """Qwen: a norm, patches joined by squares, two linears with a GELU between."""
    del stem
    h = projector.rms_norm(x, "ln_q") if tower.form == "qwen2_5" else projector.layer_norm(x, "ln_q")
    h = h.view("M", tower.hidden * tower.merge**2)
    h = ops.gelu(projector.linear(h, "mlp.0"))
    out = projector.linear(h, "mlp.2").view("F")
    return ops.fresh_gradient(ops.copy(out)) if tower.form == "qwen2_5" else out


def deep_merger(projector: Layer, tower: Tower, x: Tensor, number: int) -> Tensor:
    """Qwen 3-VL's merger of an inner layer: patches joined first, then the norm, and the same two linears."""
    h = projector.layer_norm(x.view("M", tower.hidden * tower.merge**2), f"deep.{number}.norm")
    h = ops.gelu(projector.linear(h, f"deep.{number}.fc1"))
    return projector.linear(h, f"deep.{number}.fc2").view("F")


PROJECT = {"mlp": mlp, "linear": linear, "pooled": pooled, "merger": merger}
