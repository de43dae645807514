"""A plan that keeps to the card."""

from estimator.estimate import estimate
from estimator.plan import plan_on_card
from estimator.schema import Run

FULL = Run(model="llama-3.1-8b", method="full", gpu="24GB", micro_batch=4, seq_len=2048)


def test_the_plan_fits_the_card_and_costs_no_other() -> None:
    plan = plan_on_card(FULL)
    assert plan is not None and plan.run is not None
    assert plan.run.gpu == FULL.gpu
    assert {step.money_cost for step in plan.chain} == {"none"}
    assert estimate(plan.run).fit.verdict == "fits"


def test_there_is_none_for_what_fits_or_cannot_fit_or_is_unknown() -> None:
    assert plan_on_card(Run(model="qwen2.5-0.5b", method="lora", gpu="24GB")) is None
    assert plan_on_card(Run(model="llama-3.1-70b", task="infer", gpu="4GB")) is None
    assert plan_on_card(Run(model="nobody/knows-this", gpu="24GB")) is None
    assert plan_on_card(Run(model="llama-3.1-8b", method="full")) is None
