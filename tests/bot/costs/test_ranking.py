"""Cards ranked by what the job costs among those that hold it."""

from typing import Any

import pytest

from bot import service
from bot.costs.ranking import ranked_cards
from estimator.estimate import estimate
from estimator.schema import Run


def ranked(**fields: Any) -> Any:
    return ranked_cards(Run.model_validate({"model": "llama3-8b", **fields}))


def test_cards_are_ranked_by_the_cost_of_the_job_and_hold_it() -> None:
    offers = ranked(method="qlora", tokens=3e7)
    costs = [offer.usd_total for offer in offers]
    assert costs == sorted(costs) and len({offer.gpu for offer in offers}) == len(offers)
    for offer in offers:
        if not offer.steps:
            run = Run.model_validate({"model": "llama3-8b", "method": "qlora", "gpu": offer.gpu})
            assert offer.gpu_count > 1 or estimate(run).fit.verdict == "fits"


def test_without_an_amount_they_are_ranked_by_a_million_tokens() -> None:
    offers = ranked(method="lora")
    prices = [offer.usd_per_million_tokens for offer in offers]
    assert prices == sorted(prices) and all(prices)
    assert all(offer.usd_total is None for offer in offers)


def test_a_model_too_large_for_one_card_is_spread_over_several() -> None:
    offers = ranked(method="full", tokens=1e8)
    assert any(offer.gpu_count > 1 for offer in offers)


def test_a_size_keeps_to_cards_of_that_size() -> None:
    offers = ranked_cards(Run(model="qwen2.5-7b", method="lora"), 24)
    assert offers and all("80GB" not in offer.gpu for offer in offers)


@pytest.mark.parametrize("text", ["which gpu for qlora llama3 8b", "qlora llama3 8b 用什么卡"])
def test_which_gpu_is_answered_by_cost(text: str) -> None:
    answer = service.ask(text)
    assert answer.question == "need_gpu"
    (found,) = answer.estimates
    assert found.cost and found.cost.offers and found.cost.offers[0].gpu in answer.text


def test_no_undated_price_is_named_cheapest() -> None:
    answer = service.ask("how much to rent gpus for llama3 8b full, 10k samples x 1k tokens x 3 epochs")
    cheapest = [line for line in answer.text.splitlines() if line.startswith("Cheapest with a dated price")]
    cost = answer.estimates[0].cost
    assert cost
    dated = [offer for offer in cost.offers if len(offer.as_of) == 10]
    assert bool(cheapest) == (bool(dated) and dated[0] is not cost.offers[0])
