"""What a job costs at a price: the total, its lines, and what each class of provider asks."""

from bot.answers.money.figures import LONGEST_SOURCE, Figures
from bot.answers.quote import quoted
from bot.texts import name_of

MOST_RENTS = 3
"""Cards whose rent is told beside several runs."""


class Bills(Figures):
    """Lines about the bill of a run, and the price line of its card."""

    def headline(self, index: int) -> str:
        """The total with its spread, or why there is none."""
        cost, path = self._cost(index), f"estimates[{index}].cost"
        if cost is None or (cost.usd is None and not cost.why):
            return ""
        if cost.usd is None and cost.usd_per_million_tokens is not None:
            return ""
        if cost.usd is None:
            return self._say("no_total", why=cost.why_zh if self.lang == "zh" and cost.why_zh else cost.why)
        total = self.usd(f"{path}.usd.expected")
        if cost.usd.low == cost.usd.high:
            return self._say("headline_exact", usd=total)
        return self._say("headline", usd=total, low=self.plain(f"{path}.usd.low"), high=self.plain(f"{path}.usd.high"))

    def with_buffer(self, index: int) -> list[str]:
        """What hours at a price come to with a reserve, where none is in the total."""
        cost = self._cost(index)
        if cost is None or cost.with_buffer_usd is None or cost.usd is None or self._run_task(index) != "train":
            return []
        share = round(100 * (cost.with_buffer_usd / cost.usd.expected - 1)) if cost.usd.expected else 0
        path = f"estimates[{index}].cost.with_buffer_usd"
        return [self._say("with_buffer", share=share, usd=self.usd(path))]

    def million(self, index: int) -> list[str]:
        """The price of a million tokens."""
        cost = self._cost(index)
        if cost is None or cost.usd_per_million_tokens is None:
            return []
        return [self._say("million", usd=self.usd(f"estimates[{index}].cost.usd_per_million_tokens"))]

    def bill_heading(self, index: int) -> str:
        """Whose price the bill is made with."""
        cost = self._cost(index)
        if cost is None or not cost.lines:
            return ""
        whose = next((one for one in cost.assumptions if one.field == "price"), None)
        named = self._whose(whose)
        return self._say("bill", usd=self.plain(f"estimates[{index}].cost.usd_per_gpu_hour"), whose=named)

    def per(self, index: int) -> str:
        """What the figures of a table are of: the whole job, or an hour of use."""
        cost = self._cost(index)
        return self._say("by_job" if cost and cost.lines else "by_hour")

    def bill(self, index: int) -> list[list[str]]:
        """A row a line of the bill, and their sum."""
        cost = self._cost(index)
        if cost is None or not cost.lines:
            return []
        path = f"estimates[{index}].cost"
        return self._rows(cost.lines, f"{path}.lines", f"{path}.usd.expected")

    def offers_heading(self, index: int) -> str:
        """What the rows of providers show."""
        cost = self._cost(index)
        priced = any(offer.usd_total is not None for offer in cost.offers) if cost else False
        return self._say("offers" if priced else "offers_alone")

    def offers(self, index: int) -> list[list[str]]:
        """A row a provider class: price, the job, who asks the least and when that was seen."""
        cost = self._cost(index)
        rows = []
        for number, offer in enumerate(cost.offers if cost else []):
            path = f"estimates[{index}].cost.offers[{number}]"
            total = self.plain(f"{path}.usd_total") + " USD" if offer.usd_total is not None else ""
            rows.append([self._name(offer.provider_class), self._range(path, offer), total, self._origin(offer)])
        return rows

    def rents(self) -> list[str]:
        """What each card of several runs costs to rent, with days and sources under it."""
        known = [(shown.gpu, index) for index, shown in enumerate(self.answer.rents) if shown is not None]
        cards = dict(reversed(known))
        if len(cards) <= 1:
            return [line for _, index in known[:1] for line in self.rent(index)]
        first = list(dict.fromkeys(gpu for gpu, _ in known))[:MOST_RENTS]
        return [line for gpu in first for line in self.rent(cards[gpu], gpu)]

    def rent(self, index: int, gpu: str = "") -> list[str]:
        """What the card costs to rent, named where that is not plain, and under it the days and sources."""
        shown = self.answer.rents[index] if index < len(self.answer.rents) else None
        if shown is None:
            return []
        path, comma = f"rents[{index}].classes", name_of(self.lang, "sign", "comma")
        rows = [self._rent_row(f"{path}[{number}]", one) for number, one in enumerate(shown.classes)]
        days = [self._rent_origin(one) for one in shown.classes]
        told = self._say("rent_of" if gpu else "rent", gpu=gpu, rows=comma.join(rows))
        return [told, name_of(self.lang, "sign", "semicolon").join(days)]

    def _rent_origin(self, one: dict[str, object]) -> str:
        """Day and source in a few letters: of a repository its name without its owner."""
        source = str(one["source"]).rpartition("/")[2]
        comma = name_of(self.lang, "sign", "comma")
        return f"{one['as_of'] or self._say('undated')}{comma}{quoted(source, LONGEST_SOURCE)}"

    def _rent_row(self, path: str, one: dict[str, object]) -> str:
        low, high = (self.ledger.figure(f"{path}.{end}", f"{one[end]:.2f}", "USD/h") for end in ("low", "high"))
        key = "rent_row" if low != high else "rent_row_one"
        return self._say(key, whose=self._name(str(one["provider_class"])), low=low, high=high)
