"""The step of each stage: its batch, its forwards and its loss, as trl 1.16.0 runs them."""

from collections.abc import Callable

from estimator.inventory import inventory
from estimator.stages.value import value_regime
from estimator.step import ops
from estimator.step.families.encoder import pooled
from estimator.step.fused_head import POLICY, log_probs
from estimator.step.log_probs import gathered, selective
from estimator.step.losses import cross_entropy, logits_of
from estimator.step.model import Model, linear
from estimator.step.stages import Stage
from estimator.step.tape import FULL, LONG, Rows, Tensor

INT = 4


def dpo(stage: Stage) -> None:
    """Chosen and rejected rows in one forward, then the reference's; with whole logits the reference comes first."""
    if stage.regime.loss != "chunked":
        return whole(stage, "T")
    ids, *rest = stage.inputs(3)
    rest.append(stage.tape.new("T", 1, LONG))
    policy = stage.policy(ids, lambda model, hidden: log_probs(model, hidden[0], POLICY))
    chosen = [by_row(policy[0])]
    reference = scored_by_reference(stage, ids)
    stage.mark("pair")
    loss = [_pairwise(chosen.pop())]
    del reference, policy, rest, ids
    return stage.backward(loss)


def scored_by_reference(stage: Stage, ids: Tensor) -> list[Tensor]:
    """The reference's log-probabilities of the same rows."""
    if stage.regime.reference == "none":
        return []
    found: list[Tensor] = stage.scoring("reference", stage.reference(), ids, lambda m, hidden: log_probs(m, hidden[0]))
    return found


def by_row(tokens: Tensor) -> Tensor:
    """The sum over a row, whose backward fills a tensor of the tokens again."""
    tape = tokens.tape
    out = tape.new("b", 1, tokens.itemsize)
    if tokens.needs:
        rows, width, size = ops.shape_of(tokens)
        tape.attach(out, (tokens,), (), lambda g: (tape.new(rows, width, size),))
    return out


def _pairwise(rows: Tensor) -> Tensor:
    """The logistic loss of the differences, to a scalar."""
    return ops.mean_all(ops.keeps_input(ops.scale(rows)))


def kto(stage: Stage) -> None:
    """A forward of mismatched rows without a graph, the policy's, and both again for the reference."""
    if stage.regime.loss != "chunked":
        return whole(stage, "T")
    ids, other, *rest = stage.inputs(6)
    rest.append(stage.tape.new("T", 1, LONG))
    kl = stage.scoring("mismatched", stage.unchecked(), other, lambda m, hidden: log_probs(m, hidden[0]))
    rest.append(stage.tape.new("T", 1, LONG))
    policy = stage.policy(ids, lambda model, hidden: log_probs(model, hidden[0], POLICY[:2]))
    if stage.regime.reference != "none":
        again = stage.scoring("reference apart", stage.reference(), other, lambda m, hidden: log_probs(m, hidden[0]))
        del again
    reference = scored_by_reference(stage, ids)
    stage.mark("pair")
    loss = [_pairwise(by_row(policy[0]))]
    del reference, policy, rest, ids, other, kl
    return stage.backward(loss)


def grpo(stage: Stage) -> None:
    """Old and reference log-probabilities without a graph, then the policy's forward and the clipped objective."""
    if stage.regime.loss != "chunked":
        return whole(stage, ("one more", "C"))
    batch = stage.inputs(2)
    known: list[Tensor] = []
    joined = stage.inputs(2)
    if "old-logps" in stage.regime.quirks:
        known += stage.scoring(
            "old", stage.unchecked(), joined[0], lambda m, hidden: log_probs(m, hidden[0], ["entropy"])
        )
    known += scored_by_reference(stage, joined[0])
    del joined
    ids, *rest = stage.inputs(2)
    labels = stage.inputs(1)
    policy = stage.policy(ids, lambda model, hidden: log_probs(model, hidden[0], ["entropy"]))
    del labels
    stage.mark("pair")
    loss = [clipped(policy[0])]
    del policy, known, batch, rest, ids
    return stage.backward(loss)


def clipped(tokens: Tensor) -> Tensor:
    """The ratio's exponential, its clipped twin and the smaller of both, by token."""
    ratio = ops.keeps_output(ops.shift(tokens))
    return ops.mean_all(ops.add(ops.keeps_input(ratio), ops.scale(ratio)))


def whole(stage: Stage, rows: Rows) -> None:
    """Whole logits, as trl computed before its fused head: the reference's forward, then the policy's."""
    ids, *rest = stage.inputs(2)

    def head(model: Model, hidden: list[Tensor]) -> Tensor:
        if rows != "T":
            hidden[0] = ops.part_rows(hidden[0], rows)
            hidden[0] = hidden[0] if model.regime.single else ops.copy(hidden[0])
        return taken(model, hidden)

    def after(logits: list[Tensor]) -> Tensor:
        return from_logits(stage, logits, "Tm" if rows == "T" else "C")

    reference = []
    if stage.regime.reference != "none":
        reference.append(stage.scoring("reference", stage.reference(), ids, head, after))
    policy = stage.policy(ids, head, after)
    stage.mark("pair")
    loss = [_pairwise(by_row(policy))]
    del policy, reference, rest, ids
    return stage.backward(loss)


def taken(model: Model, hidden: list[Tensor]) -> Tensor:
    """The logits; the hidden states go."""
    logits = logits_of(model, hidden[0])
    hidden.clear()
    return logits


def outputs(stage: Stage, logits: list[Tensor]) -> Tensor:
    """The model's output as accelerate hands it on: in fp32 where autocast ran."""
    return ops.cast(logits.pop(), FULL) if stage.regime.autocast else logits.pop()


def from_logits(stage: Stage, logits: list[Tensor], rows: Rows) -> Tensor:
    """Log-probabilities of ``rows`` positions."""
    seen = ops.part_rows(outputs(stage, logits), rows)
    if "temperature" in stage.regime.quirks:
        seen = ops.scale(seen)
    return gathered(seen) if "log-softmax" in stage.regime.quirks else selective(seen)


def reward(stage: Stage) -> None:
    """A scalar for every position; that of each row's last token enters the pairwise loss."""
    ids, *rest = stage.inputs(2)
    scores = stage.policy(ids, last_score)
    stage.mark("pair")
    loss = [_pairwise(scores)]
    del scores, rest, ids
    return stage.backward(loss)


def last_score(model: Model, hidden: list[Tensor]) -> Tensor:
    """The score of the last token that is no padding (transformers 5.24, ``GenericForSequenceClassification``).

    An encoder's comes from its pooler.
    """
    if not model.top.has("score.weight"):
        return pooled(model, hidden[0])[0]
    tape = model.tape
    scores = linear(hidden[0], model.top.weight("score.weight"), None, 1)
    places = [tape.new("T", 1, INT) for _ in range(2)]
    del places
    out = tape.new("b", 1, scores.itemsize)
    if scores.needs:
        rows, width, size = ops.shape_of(scores)
        tape.attach(out, (scores,), (), lambda g: (tape.new(rows, width, size),))
    return ops.cast(out, FULL) if tape.autocast else out


def odds(stage: Stage) -> None:
    """ORPO and SimPO: whole logits of both rows, cross-entropy of the chosen ones, log-probabilities of all."""
    given = stage.inputs(3)
    ids, *rest = stage.inputs(3)
    labels = stage.inputs(2)
    nll, logps = stage.policy(ids, taken, lambda logits: _odds(stage, outputs(stage, logits)))
    del labels
    stage.mark("pair")
    loss = [ops.add(nll, _pairwise(by_row(logps)))]
    del nll, logps, given, rest, ids
    return stage.backward(loss)


def _odds(stage: Stage, logits: Tensor) -> tuple[Tensor, Tensor]:
    """The shifted logits of several chosen rows are copied, those of one row are contiguous as they are."""
    chosen = ops.part_rows(logits, ("half", "Tm"))
    chosen.storage = ops.copy(chosen.view(("several", "Tm"))).storage
    nll = cross_entropy(chosen, stage.tape.new(("half", "Tm"), 1, LONG))
    del chosen
    return nll, selective(ops.part_rows(logits, "Tm"))


def ppo(stage: Stage) -> None:
    """Reference and reward score the rollout, then value model and policy are trained with whole logits.

    trl.experimental.ppo (2025): the policy's output is held until the next micro-step; the value model runs first.
    """
    ids, *rest = stage.inputs(3)
    scored = stage.arch._replace(head_kind="score")
    parts = inventory(scored)
    if stage.regime.reference != "none":
        again = stage.scoring(
            "reference", stage.reference(), ids, taken, lambda logits: from_logits(stage, logits, "C")
        )
        rest.append(again)
    value = stage.beside("value", scored, parts, value_regime(stage.regime), ids, last_score)
    held: list[Tensor] = []
    policy = stage.policy(ids, taken, lambda logits: _held_logits(stage, logits, held))
    stage.mark("pair")
    loss = [ops.add(_pairwise(by_row(policy)), _pairwise(value))]
    del policy, value, rest, ids
    stage.backward(loss)
    held.clear()


def _held_logits(stage: Stage, logits: list[Tensor], held: list[Tensor]) -> Tensor:
    whole = outputs(stage, logits)
    held.append(whole.detach())
    return selective(ops.part_rows(whole, "C"))


def embed(stage: Stage) -> None:
    """Anchors and positives to one vector each, every positive scored against every anchor of the batch."""
    ids, *rest = stage.inputs(2)
    loss = [stage.policy(ids, lambda model, hidden: pooled(model, hidden[0])[0])]
    stage.mark("pair")
    del rest, ids
    stage.backward(loss)


STEPS: dict[str, Callable[[Stage], None]] = {
    "dpo": dpo,
    "kto": kto,
    "grpo": grpo,
    "reward": reward,
    "embed": embed,
    "ppo": ppo,
    "orpo": odds,
    "simpo": odds,
}
