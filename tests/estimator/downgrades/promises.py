"""What every estimate promises of its downgrades, checked by estimating everything anew."""

from estimator.downgrades import applied
from estimator.downgrades.facts import ranks
from estimator.downgrades.figures import effective_batch
from estimator.downgrades.lowered import order_of
from estimator.estimate import estimate
from estimator.regimes import tokens_per_row
from estimator.schema import Estimate, Run, Step
from estimator.serving.engines import is_served


def keeps_its_promises(asked: Run) -> Estimate:
    """The estimate of a run, every step and plan of which was checked."""
    found = estimate(asked)
    if found.fit.verdict in (None, "fits"):
        assert (found.downgrades, found.plan) == ([], None)
    assert found.run is not None
    for step in found.downgrades:
        a_step_comes_to_what_it_says(step, asked, found)
        keeps_the_batch(step, found.run, applied(found.run, step.change))
        is_told(step)
    is_ranked(found)
    a_plan_fits(asked, found)
    return found


def peak(found: Estimate) -> int:
    """Allocated bytes."""
    assert found.per_gpu is not None
    return found.per_gpu.allocated_peak


def a_step_comes_to_what_it_says(step: Step, asked: Run, found: Estimate) -> None:
    """A serving engine takes its share of the card whatever it needs: there only the verdict can be compared."""
    assert found.run is not None
    assert step.saves >= 0
    for base in (asked, found.run):
        after = estimate(applied(base, step.change))
        assert after.fit.verdict == step.verdict, step.id
        if not is_served(found.run):
            assert peak(after) == step.allocated_peak == peak(found) - step.saves, step.id


def keeps_the_batch(step: Step, before: Run, after: Run) -> None:
    rows, now = effective_batch(before), effective_batch(after)
    if step.id.startswith("length") and before.packing:
        assert now * tokens_per_row(after) == rows * tokens_per_row(before)
    elif step.id.startswith("cards") and before.task == "train":
        assert now == rows or f"effective batch grows to {now}" in step.note
    else:
        assert before.task != "train" or now == rows, step.id


def is_told(step: Step) -> None:
    assert all((step.title, step.title_zh, step.note, step.note_zh))
    assert "{" not in step.title + step.title_zh + step.note + step.note_zh
    assert not [line for line in step.commands if "None" in line or "{micro" in line]


def is_ranked(found: Estimate) -> None:
    assert found.run is not None
    cost = ranks(order_of(found.run))
    keys = [(cost[move_of(step, cost)], step.allocated_peak) for step in found.downgrades]
    assert keys == sorted(keys)
    assert len({step.id for step in found.downgrades}) == len(keys)


def move_of(step: Step, cost: dict[str, int]) -> str:
    """The move that a step's id names."""
    return max((name for name in cost if step.id == name or step.id.startswith(f"{name}-")), key=len)


def a_plan_fits(asked: Run, found: Estimate) -> None:
    """From the asked and from the filled run, step by step and at once."""
    plan = found.plan
    if plan is None:
        return
    assert plan.run is not None
    for run in (plan.run, applied(asked, plan.change)):
        after = estimate(run)
        assert after.fit.verdict == "fits"
        assert is_served(plan.run) or peak(after) == plan.allocated_peak
    assert plan.steps == [step.id for step in plan.chain]
    run, before = asked, plan.chain[0].allocated_peak + plan.chain[0].saves
    for step in plan.chain:
        run = applied(run, step.change)
        assert is_served(plan.run) or peak(estimate(run)) == step.allocated_peak
        # engines take larger steps on a larger card, and one beside an online stage its share of it
        shared = plan.run.rl is not None and bool(plan.run.rl.colocated_share)
        grows = (is_served(plan.run) or shared) and "gpu" in step.change
        assert step.saves == max(before - step.allocated_peak, 0)
        assert grows or step.allocated_peak <= before
        before = step.allocated_peak
        is_told(step)
