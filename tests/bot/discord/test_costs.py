"""/cost and /compare as people use them."""

from types import SimpleNamespace

from tests.bot.discord.messages import custom_ids, text


async def test_cost_is_answered_with_bill_offers_and_sources(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(
        lab.channel, "cost", model="llama3-8b", method="lora", gpu="RTX 4090", samples=10_000.0, epochs=3.0
    )
    shown = text(done.response)
    assert "COST" in shown and "compute" in shown and "buffer" in shown and "2026-08-19" in shown
    assert custom_ids(done.response, "math")


async def test_cost_without_an_amount_asks_for_it(lab: SimpleNamespace) -> None:
    done = await lab.wei.slash(lab.channel, "cost", model="llama3-8b", method="lora", gpu="RTX 4090")
    assert "样本" in text(done.response) and "费用" not in text(done.response)


async def test_renting_against_buying_needs_a_card_alone(lab: SimpleNamespace) -> None:
    done = await lab.wei.slash(lab.channel, "cost", gpu="H100", buy=True, utilisation=60.0, country="cn")
    shown = text(done.response)
    assert "自购" in shown and "折旧" in shown and "60%" in shown


async def test_cards_are_compared_and_each_can_be_seen_alone(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(
        lab.channel, "compare", model="llama3-8b", cards="4090, H100", methods="lora", tokens="10M"
    )
    shown = text(done.response)
    assert "RTX 4090" in shown and "H100" in shown and shown.count(" h ") >= 1
    alone = await lab.ann.click(done.response, custom_id=custom_ids(done.response, "reading")[1])
    assert "COST" in text(alone.response) and "H100" in text(alone.response)


async def test_an_amount_that_cannot_be_read_is_asked_back(lab: SimpleNamespace) -> None:
    done = await lab.ann.slash(lab.channel, "cost", model="7b", method="lora", gpu="RTX 4090", tokens="plenty")
    assert "plenty" in text(done.response)
