"""Cards ranked by what a job costs on them."""

from bot.answers.money.figures import HOUR, Figures
from bot.answers.quote import quoted
from bot.texts import name_of, say
from estimator.economics import PricedOffer

MOST_STEPS = 3


class Ranks(Figures):
    """Rows of ranked cards, and of those without a rank."""

    def ranks(self, index: int) -> bool:
        """Whether the offers are of several cards, ranked, because none or only a size was named."""
        found, cost = self.answer.estimates[index], self._cost(index)
        listed = [*cost.offers, *cost.not_ranked] if cost else []
        several = len({offer.gpu for offer in listed}) > 1
        return bool(listed) and (several or (found.run is not None and not found.run.gpu))

    def ranked_heading(self, index: int) -> str:
        """What the cards are ranked by; and as of when, where none of today's sources has answered."""
        cost = self._cost(index)
        if cost is None or not cost.offers:
            return ""
        what = self._say("by_job" if cost.offers[0].usd_total is not None else "by_million")
        return self._say("ranked_as_of" if cost.ranked_as_of else "ranked", what=what, day=cost.ranked_as_of)

    def ranked(self, index: int) -> list[list[str]]:
        """A row a card: how many, what the job costs, how long, whose price."""
        return self._listed(index, "offers")

    def rest_heading(self, index: int) -> str:
        """Why some cards have no rank; empty where all have one."""
        cost = self._cost(index)
        if cost is None or not cost.not_ranked:
            return ""
        dated = any(one.has_day for one in cost.not_ranked)
        return self._say("not_ranked" if dated else "undated_only")

    def rest(self, index: int) -> list[list[str]]:
        """A row a card whose price has no day, or too old a one to be ranked."""
        return self._listed(index, "not_ranked")

    def first_ranked(self, index: int) -> tuple[PricedOffer, list[str]]:
        """The first card that holds the run as it is, else the first after some steps; and its row.

        A card without a rank only where none has one.
        """
        cost = self._cost(index)
        assert cost is not None
        listed = cost.offers or cost.not_ranked
        offer = next((one for one in listed if not one.steps), listed[0])
        return offer, (self.ranked(index) or self.rest(index))[listed.index(offer)]

    def after(self, offer: PricedOffer) -> str:
        """What must be changed before the card holds the run; empty where nothing must."""
        steps = offer.steps_zh if self.lang == "zh" else offer.steps
        return self._say("after", steps=quoted(" + ".join(steps[:MOST_STEPS]), 120)) if steps else ""

    def _listed(self, index: int, name: str) -> list[list[str]]:
        cost = self._cost(index)
        offers: list[PricedOffer] = getattr(cost, name) if cost else []
        path = f"estimates[{index}].cost.{name}"
        return [self._ranked_row(f"{path}[{number}]", offer) for number, offer in enumerate(offers)]

    def _ranked_row(self, path: str, offer: PricedOffer) -> list[str]:
        name = f"{offer.gpu_count} x {offer.gpu}" if offer.gpu_count > 1 else offer.gpu
        field = "usd_total" if offer.usd_total is not None else "usd_per_million_tokens"
        priced = self.plain(f"{path}.{field}") + " USD" if getattr(offer, field) is not None else ""
        took = self._spelled(path, "hours", offer.hours * HOUR) if offer.hours is not None else ""
        after = self.after(offer)
        hourly = say(self.lang, "prices.per_hour", price=self.plain(f"{path}.usd_per_gpu_hour"))
        comma = name_of(self.lang, "sign", "comma")
        origin = f"{hourly} {self._name(offer.provider_class)}{comma}{self._origin(offer)}"
        return [name, priced, took, name_of(self.lang, "sign", "semicolon").join(filter(None, [origin, after]))]
