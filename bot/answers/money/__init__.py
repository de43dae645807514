"""Time and money as lines and rows of an answer, in its language; every figure notes where it came from."""

from collections.abc import Iterable

from bot.answer import Answer
from bot.answers.money.bills import Bills
from bot.answers.money.owned import Owned
from bot.answers.money.ranks import Ranks
from bot.answers.money.times import Times
from estimator.economics import CostEstimate


class Money(Times, Bills, Ranks, Owned):
    """Time and cost of the estimates of an answer."""

    def brief(self, index: int) -> list[str]:
        """Time and total, beside the memory of a run that says how much there is to do."""
        return [*self.duration(index), *([self.headline(index)] if self.duration(index) else [])]

    def assumed(self, index: int) -> list[str]:
        """Each value that time and money rest on, marked measured or assumed."""
        cost, time = self._cost(index), self.answer.estimates[index].time
        used = cost is not None and (cost.usd or cost.usd_per_million_tokens or cost.rent_or_buy)
        values = [*(cost.assumptions if cost and used else []), *(time.notes if time else [])]
        return [self._told(one) for one in values]

    def assumed_by_all(self) -> list[str]:
        """What time and money of every run rest on."""
        told = [self.assumed(index) for index in range(len(self.answer.estimates)) if self._cost(index)]
        return [line for line in told[0] if all(line in others for others in told)] if told else []

    def several(self) -> list[list[str]]:
        """A row a run: what it is, its verdict or smallest card, time, and cost or the cheapest card."""
        heading = ["", *(self._say(f"column_{name}") for name in ("time", "fit", "cost"))]
        return [heading, *(self._several_row(index) for index in range(len(self.answer.estimates)))]

    def _several_row(self, index: int) -> list[str]:
        found, d = self.answer.estimates[index], self.describer
        comparison = d.comparison()[index]
        if found.per_gpu is None:
            return [d.label(index), "-", "-", comparison[-1]]
        spent = found.time and found.time.seconds
        took = self.span(f"estimates[{index}].time.seconds.expected") if spent else ""
        cost = found.cost
        if cost is not None and cost.usd is not None:
            path = f"estimates[{index}].cost.usd"
            spread = (
                f" ({self.plain(f'{path}.low')}-{self.plain(f'{path}.high')})" if cost.usd.low != cost.usd.high else ""
            )
            priced = self.plain(f"{path}.expected") + spread
        elif cost is not None and self.ranks(index):
            first, (name, usd, took, _origin) = self.first_ranked(index)
            whose = f"{self._name(first.provider_class)}, {first.as_of or self._say('undated')}"
            priced = " · ".join(filter(None, [f"{usd}, {name}", whose, self.after(first)]))
        elif cost is not None and cost.usd_per_million_tokens is not None:
            priced = self._say("a_million", usd=self.plain(f"estimates[{index}].cost.usd_per_million_tokens"))
        else:
            priced = (cost.why_zh if self.lang == "zh" else cost.why) if cost else ""
        return [d.label(index), took, comparison[-1], priced + self._at_whose_price(cost)]

    def _at_whose_price(self, cost: CostEstimate | None) -> str:
        """The class whose price a row is made with: two classes are never mixed unseen."""
        price = next((one for one in cost.assumptions if one.field == "price"), None) if cost else None
        return f" · {self._whose(price)}" if price else ""


def is_about_money(answer: Answer) -> bool:
    """Whether time and money are the answer: the question asks for them, and there is something to tell."""
    found: Iterable[object] = (one.time or one.cost for one in answer.estimates)
    ranks = answer.question == "need_gpu" and any(
        one.cost and (one.cost.offers or one.cost.not_ranked) for one in answer.estimates
    )
    return (answer.question in ("time", "cost", "price") or ranks) and any(found)
