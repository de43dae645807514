"""What encoders share: masks without a direction, and what sits on the last layer instead of a language-model head."""

from collections.abc import Callable

from estimator.step import ops
from estimator.step.losses import cross_entropy
from estimator.step.model import Model, linear
from estimator.step.tape import FULL, Tensor

Transform = Callable[[Model, Tensor], Tensor]
Heads = tuple[Tensor, Tensor | None]


def both_ways(model: Model) -> Tensor | None:
    """Without padding no kernel needs a mask; a batch's own mask is handed on."""
    return model.given_mask


def decoded(model: Model, x: Tensor, name: str) -> Tensor:
    """Logits over the vocabulary: the embedding's matrix (or an own one) and a bias of the head's."""
    own = f"{name}.weight"
    weight = model.top.weight(own) if model.top.has(own) else model.stem.weight(model.stem_name)
    bias = model.top.weight(f"{name}.bias") if model.top.has(f"{name}.bias") else None
    return linear(x, weight, bias, model.arch.vocab)


def masked_lm(
    model: Model, hidden: Tensor, labels: Tensor, transform: Transform, decoder: str, full: bool = False
) -> Heads:
    """Loss over all positions (those not masked are ignored, not left out); ``full``: of logits in fp32."""
    if model.arch.head_kind != "mlm":
        return pooled(model, hidden)
    logits = decoded(model, transform(model, hidden), decoder)
    return cross_entropy(ops.cast(logits, FULL) if full else logits, labels), logits


def pooled(model: Model, hidden: Tensor) -> Heads:
    """A sentence's vector: the first token through the pooler, or the mean of all tokens."""
    first = ops.part_rows(hidden, "b")
    if model.top.has("dense.weight"):
        first = ops.tanh(model.top.linear(first, "dense"))
    return ops.mean_all(first), None
