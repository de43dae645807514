"""Time and cost beside an estimate: lines add up, more work costs more, what is not known is said."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bot import service
from estimator.errors import EstimatorError
from estimator.schema import Estimate, Run

RUN: dict[str, Any] = {"model": "llama3-8b", "method": "lora", "seq_len": 2048, "gpu": "RTX 4090"}


def cost_of(lang: str = "en", **fields: Any) -> Estimate:
    return service.cost_of({**RUN, **fields}, lang)


def total(found: Estimate) -> float:
    assert found.cost and found.cost.usd
    return found.cost.usd.expected


@settings(max_examples=25, deadline=None)
@given(tokens=st.floats(1e5, 1e11), more=st.floats(1.05, 20), price=st.floats(0.05, 30))
def test_bills_add_up_and_grow_with_tokens_and_price(tokens: float, more: float, price: float) -> None:
    found = cost_of(tokens=tokens, price_usd_per_hour=price)
    cost, time = found.cost, found.time
    assert cost and cost.usd and time and time.seconds
    assert sum(line.usd for line in cost.lines) == pytest.approx(cost.usd.expected)
    assert cost.usd.low <= cost.usd.expected <= cost.usd.high
    assert time.seconds.low <= time.seconds.expected <= time.seconds.high
    assert total(cost_of(tokens=tokens * more, price_usd_per_hour=price)) > cost.usd.expected
    assert total(cost_of(tokens=tokens, price_usd_per_hour=price * more)) > cost.usd.expected


def test_a_larger_model_takes_longer() -> None:
    models = ("qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-7b", "qwen2.5-14b")
    spent = [service.cost_of({**RUN, "model": name, "tokens": 1e7}).time for name in models]
    seconds = [one.seconds.expected for one in spent if one and one.seconds]
    assert seconds == sorted(seconds) and len(seconds) == len(models)


def test_the_worked_run_of_the_cost_model() -> None:
    run = {
        "model": "meta-llama/Llama-3.1-8B", "method": "full", "seq_len": 4096, "tokens": 1e9, "gpu": "H100",
        "gpu_count": 8, "parallel": {"engine": "fsdp2", "zero": 3},
        "economics": {"price": 2.95, "price_unit": "gpu", "idle": False, "evaluation": False, "storage_gb_months": 0},
    }  # fmt: skip
    found = service.cost_of(run)
    assert found.time and found.time.seconds and found.cost
    assert found.time.flops_per_token == pytest.approx(5.462e10, rel=1e-3)
    assert found.time.seconds.expected / 3600 == pytest.approx(5.51, abs=0.01)
    assert {line.item: round(line.usd, 1) for line in found.cost.lines} == {
        "compute": 130.1, "retries": 0.4, "buffer": 26.1,
    }  # fmt: skip
    assert total(found) == pytest.approx(156.6, abs=0.1)


@settings(max_examples=15, deadline=None)
@given(share=st.floats(0.05, 0.6), method=st.sampled_from(["full", "lora", "qlora"]))
def test_a_utilisation_comes_back_and_so_does_a_speed(share: float, method: str) -> None:
    run = {"gpu": "H100", "method": method, "tokens": 1e8}
    found = cost_of(**run, economics={"mfu": share})
    assert found.time and found.time.mfu == pytest.approx(share) and found.time.tokens_per_second
    again = cost_of(**run, economics={"tokens_per_second": found.time.tokens_per_second})
    assert again.time and again.time.seconds and found.time.seconds
    assert again.time.mfu == pytest.approx(share)
    assert again.time.seconds.expected == pytest.approx(found.time.seconds.expected)
    assert again.time.uplift == 0.0


def test_recomputation_counts_only_when_it_is_asked_for() -> None:
    usual, asked, off = (
        cost_of(tokens=1e8, **more).time
        for more in ({}, {"gradient_checkpointing": "full"}, {"gradient_checkpointing": "none"})
    )
    assert usual and asked and off and usual.flops_per_token and asked.flops_per_token
    assert usual.flops_per_token == off.flops_per_token
    assert 1.2 < asked.flops_per_token / usual.flops_per_token <= 1.5


def test_hours_that_were_billed_are_arithmetic() -> None:
    found = cost_of(gpu="A100 80GB", gpu_count=8, price_usd_per_hour=12, economics={"hours": 15.5})
    assert total(found) == pytest.approx(186)
    assert found.cost and [line.item for line in found.cost.lines] == ["compute"]
    assert found.cost.with_buffer_usd == pytest.approx(186 * 1.2)


@pytest.mark.parametrize(
    ("price", "unit", "each"),
    [(24.0, None, 3.0), (2.0, None, 2.0), (24.0, "gpu", 24.0), (2.0, "instance", 0.25)],
)
def test_a_price_of_several_cards_is_of_one_or_of_all(price: float, unit: str | None, each: float) -> None:
    said = {"price_unit": unit} if unit else {}
    found = cost_of(gpu="H100", gpu_count=8, tokens=1e8, price_usd_per_hour=price, economics=said)
    assert found.cost and found.cost.usd_per_gpu_hour == pytest.approx(each)
    assert any(one.field == "price" and one.why for one in found.cost.assumptions)


def test_money_of_another_currency_is_told_with_its_rate() -> None:
    said = {"price": 2.27, "currency": "CNY", "hours": 10}
    found = cost_of(economics=said)
    assert total(found) == pytest.approx(22.7 / 6.6529, rel=1e-4)
    assert found.cost
    rate = next(one for one in found.cost.assumptions if one.field == "currency")
    assert "2026-10-30" in rate.why and "6.6529" in rate.why_zh


def test_classes_are_never_pooled_and_every_offer_has_its_source() -> None:
    found = cost_of(gpu="H100", tokens=1e8)
    assert found.cost
    classes = [offer.provider_class for offer in found.cost.offers]
    assert len(set(classes)) == len(classes) > 3
    for offer in found.cost.offers:
        assert offer.source and offer.provider and offer.range
        assert offer.range[0] <= offer.usd_per_gpu_hour <= offer.range[1]
        assert (offer.usd_total is None) == (offer.provider_class == "lease-cn"), "a lease is not by the hour"


def test_without_a_price_there_is_time_and_a_reason() -> None:
    found = cost_of(gpu="RTX 4060 Laptop", model="qwen2.5-0.5b", tokens=1e7)
    assert found.time and found.time.seconds and found.cost
    assert found.cost.usd is None and "no rental price" in found.cost.why and "租用价格" in found.cost.why_zh


def test_without_an_amount_there_is_the_price_of_a_million_tokens() -> None:
    found = cost_of()
    assert found.cost and found.cost.usd is None and found.cost.usd_per_million_tokens
    assert found.time and found.time.seconds is None and found.time.tokens_per_second


@pytest.mark.parametrize(
    "said",
    [
        {"hours": -1}, {"utilisation": 0}, {"utilisation": 1.5}, {"pue": 0.9}, {"price": -2}, {"buffer": -0.1},
        {"tokens_per_second": 0}, {"mfu": 0}, {"country": "atlantis"}, {"years": 0}, {"unheard_of": 1},
    ],
)  # fmt: skip
def test_impossible_economics_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        cost_of(economics=said)


@pytest.mark.parametrize("said", [{"price": 2, "currency": "XYZ"}, {"tokens_per_second": 1e9}])
def test_what_cannot_be_is_one_sentence(said: dict[str, Any]) -> None:
    with pytest.raises(EstimatorError) as raised:
        cost_of(tokens=1e8, economics=said)
    assert raised.value.message and raised.value.message_zh and "\n" not in raised.value.message


def test_memory_alone_has_neither_time_nor_cost() -> None:
    found = service.estimate(Run.model_validate(RUN))
    assert found.time is None and found.cost is None


@pytest.mark.parametrize("stage", ["dpo", "kto", "orpo", "reward"])
def test_pairs_and_references_cost_extra_forwards(stage: str) -> None:
    plain = cost_of(samples=1000, gpu="H100").time
    found = cost_of(samples=1000, gpu="H100", stage=stage).time
    assert plain and found and plain.tokens and found.tokens and plain.flops_per_token and found.flops_per_token
    assert found.tokens / plain.tokens == pytest.approx(1 if stage == "kto" else 2)
    more = found.flops_per_token / plain.flops_per_token
    forwards = {"dpo": 1, "kto": 3, "orpo": 0, "reward": 0}[stage]
    assert more == pytest.approx(1 + forwards / 2, rel=0.06), "LoRA's step is two forwards' worth"


def test_completions_take_their_own_time() -> None:
    found = cost_of(model="qwen2.5-1.5b", gpu="H100", samples=1000, stage="grpo").time
    assert found and found.seconds and 0 < found.generation_seconds < found.seconds.expected
    precomputed = cost_of(model="qwen2.5-1.5b", gpu="H100", samples=1000, stage="dpo").time
    assert precomputed and precomputed.generation_seconds == 0


def test_unequal_rows_are_padded_only_in_batches() -> None:
    def tokens(batch: int, packing: bool = False) -> float:
        lengths = {"mean": 500, "max": 2000}
        found = cost_of(gpu="H100", samples=100, micro_batch=batch, seq_len=lengths, packing=packing)
        assert found.time and found.time.tokens
        return found.time.tokens

    assert tokens(1) == tokens(8, packing=True) == 50_000
    assert 50_000 < tokens(2) < tokens(8) < 200_000


def test_serving_more_at_once_is_cheaper_a_token() -> None:
    def million(users: int) -> float:
        found = cost_of(gpu="H100", method=None, task="serve", concurrency=users, context_len=1024, new_tokens=256)
        assert found.cost and found.cost.usd_per_million_tokens
        return found.cost.usd_per_million_tokens

    prices = [million(users) for users in (1, 8, 64)]
    assert prices == sorted(prices, reverse=True)
