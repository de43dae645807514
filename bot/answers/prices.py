"""A price answer in words: each range with its class, count and days; never one bare number."""

import re
from collections.abc import Iterable, Iterator

from bot.answers.ledger import Ledger
from bot.prices.claims import Claim
from bot.prices.money import SIGNS
from bot.prices.view import Bought, CardPrices, PriceAnswer, Priced, PriceRange
from bot.texts import name_of, say


class PriceTeller:
    """Rows and sentences of a price answer; every number that is told is noted in the ledger."""

    def __init__(self, answer: PriceAnswer, ledger: Ledger, lang: str) -> None:
        self.answer, self._ledger, self._lang = answer, ledger, lang

    def money(self, path: str) -> str:
        """A price at a path below ``prices``."""
        return self._ledger.money(f"prices.{path}", SIGNS.get(self.answer.currency, f"{self.answer.currency} "),
                                  self.answer.currency)  # fmt: skip

    def count(self, path: str) -> str:
        """A whole number at a path below ``prices``."""
        return self._ledger.count(f"prices.{path}")

    def say(self, key: str, **values: str) -> str:
        """A text of the section ``prices``."""
        return say(self._lang, f"prices.{key}", **values)

    def named(self, provider_class: str, spot: bool) -> str:
        """A class as people call it, with its kind."""
        name = name_of(self._lang, "provider_class", provider_class)
        return self.say("spot", name=name) if spot else name

    def claim(self, index: int) -> list[str]:
        """What was said that the card costs, against what is known of it; empty where nothing was said."""
        said, borne = self.answer.claim, self.answer.cards[index].borne
        if said is None or borne is None:
            return []
        amount = self._claimed(said)
        kind = "bought" if said.per == "buy" else "asked"
        parts = [self._against(kind, side, index, getattr(borne, side)) for side in ("within", "more", "less")]
        told = name_of(self._lang, "sign", "semicolon").join(part for part in parts if part)
        return [self.say(f"claim_{said.per}", price=amount, told=told or self.say("claim_unknown"))]

    def _claimed(self, said: Claim) -> str:
        low, high = self.money("claim.low"), self.money("claim.high")
        sign = SIGNS.get(self.answer.currency, "")
        return low if said.low == said.high else f"{low}–{high.removeprefix(sign)}"

    def _against(self, kind: str, side: str, index: int, numbers: tuple[int, ...]) -> str:
        """Who asks that, more or less, with what they ask and when."""
        if not numbers:
            return ""
        write = self._shop if kind == "bought" else self._span
        rows = name_of(self._lang, "sign", "comma").join(write(index, number) for number in numbers)
        return self.say(f"{kind}_{side}", rows=rows)

    def _span(self, index: int, number: int) -> str:
        one, field = self.answer.cards[index].ranges[number], "per_day" if self._of_a_day() else "price"
        price = self._between(f"cards[{index}].ranges[{number}]", field, "day" if self._of_a_day() else "hour")
        return self.say("claim_span", name=self.named(one.provider_class, one.spot), price=price, days=self.days(one))

    def _of_a_day(self) -> bool:
        return self.answer.claim is not None and self.answer.claim.per == "day"

    def _shop(self, index: int, number: int) -> str:
        return self._bought(f"cards[{index}].purchases[{number}]", self.answer.cards[index].purchases[number])

    def rows(self, index: int) -> list[list[str]]:
        """The ranges of a card: class, per hour, per day, what stands behind it."""
        card = self.answer.cards[index]
        return [self._row(f"cards[{index}].ranges[{at}]", one) for at, one in enumerate(card.ranges)]

    def _row(self, path: str, one: PriceRange) -> list[str]:
        name = self.named(one.provider_class, one.spot)
        return [
            name,
            self._between(path, "price", "hour"),
            self._between(path, "per_day", "day"),
            self._behind(path, one),
        ]

    def _between(self, path: str, field: str, unit: str) -> str:
        low, high = self.money(f"{path}.low.{field}"), self.money(f"{path}.high.{field}")
        sign = SIGNS.get(self.answer.currency, "")
        text = low if low == high else f"{low}–{high.removeprefix(sign)}"
        return self.say(f"per_{unit}", price=text)

    def _behind(self, path: str, one: PriceRange) -> str:
        """How many offers of whom, the median, and their days."""
        parts = [self._who(path, one)]
        if one.median is not None:
            parts.append(self.say("median", price=self.money(f"{path}.median")))
        parts.append(self.days(one))
        return name_of(self._lang, "sign", "comma").join(part for part in parts if part)

    def _who(self, path: str, one: PriceRange) -> str:
        if one.n_providers == 1 and one.n_offers == 1:
            return one.low.provider
        count = self.count(f"{path}.n_offers")
        if one.n_providers == 1:
            return self.say("offers_of_one", count=count, provider=one.low.provider)
        return self.say("offers", count=count, providers=self.count(f"{path}.n_providers"))

    def days(self, one: PriceRange) -> str:
        """The days of a range; what has none is said to have none."""
        days = one.first_day if one.first_day == one.last_day else f"{one.first_day} … {one.last_day}"
        if not one.n_undated:
            return days
        return self.say("partly_undated", days=days) if days else self.say("undated")

    def cheapest(self, index: int) -> list[list[str]]:
        """The cheapest offers of a card: on demand, then spot."""
        card = self.answer.cards[index]
        return [
            self._offer(f"cards[{index}].{name}[{at}]", one)
            for name, found in (("cheapest", card.cheapest), ("cheapest_spot", card.cheapest_spot))
            for at, one in enumerate(found)
        ]

    def _offer(self, path: str, one: Priced) -> list[str]:
        badge = self.say("badge", day=one.as_of) if one.age != "fresh" else one.as_of
        host = self.say("cards_in_host", count=self.count(f"{path}.gpu_count")) if one.gpu_count > 1 else ""
        parts = [one.region, host, badge]
        return [self.say("per_hour", price=self.money(f"{path}.price")), one.provider,
                self.named(one.provider_class, one.spot), " · ".join(part for part in parts if part)]  # fmt: skip

    def undated_low(self, index: int) -> str:
        """That something without a day is lower than the cheapest that has one."""
        one = self.answer.cards[index].undated_low
        if one is None:
            return ""
        price = self.say("per_hour", price=self.money(f"cards[{index}].undated_low.price"))
        return self.say("undated_low", price=price, provider=one.provider)

    def bought(self, index: int) -> str:
        """What the card costs to buy, with days; empty where nothing is known."""
        card = self.answer.cards[index]
        parts = [self._bought(f"cards[{index}].purchases[{at}]", one) for at, one in enumerate(card.purchases)]
        return name_of(self._lang, "sign", "semicolon").join(parts)

    def _bought(self, path: str, one: Bought) -> str:
        day = one.as_of or self.say("undated")
        return self.say(f"bought_{one.kind}", price=self.money(f"{path}.price"), day=day, source=one.source)

    def held_back(self, index: int) -> str:
        """How many prices were held back as not believable."""
        card = self.answer.cards[index]
        return self.say("held_back", count=self.count(f"cards[{index}].held_back")) if card.held_back else ""

    def sources(self) -> str:
        """Who says all this; the files of one catalogue are named together."""
        names = dict.fromkeys(source for card in self.answer.cards for one in card.ranges for source in one.sources)
        return name_of(self._lang, "sign", "semicolon").join(shortened(names))

    def rate(self) -> str:
        """The exchange rate, where one was used."""
        if self.answer.currency == "USD":
            return ""
        return self.say("rate", rate=self._ledger.number("prices.rate"), currency=self.answer.currency,
                        day=self.answer.rate_as_of)  # fmt: skip

    def brief(self) -> list[list[str]]:
        """One row a card: lowest and highest on demand by class, for many cards at once."""
        return [row for index, card in enumerate(self.answer.cards) for row in self._brief(index, card)]

    def _brief(self, index: int, card: CardPrices) -> Iterator[list[str]]:
        first = True
        for at, one in enumerate(card.ranges):
            if not one.spot and one.provider_class != "index":
                path = f"cards[{index}].ranges[{at}]"
                yield [card.gpu if first else "", self.named(one.provider_class, False),
                       self._between(path, "price", "hour"), self.days(one)]  # fmt: skip
                first = False


_FILE = re.compile(r"^(\S+) catalogs/(v\d+)/(\w+)/vms\.csv")


def shortened(sources: Iterable[str]) -> list[str]:
    """Sources without what only a maintainer needs (commits and licences stand in the JSON)."""
    clouds: dict[str, list[str]] = {}
    for source in sources:
        file = _FILE.match(source)
        key, cloud = (f"{file[1]} {file[2]}", file[3]) if file else (source.split(" (")[0], "")
        clouds.setdefault(key, []).extend([cloud] if cloud else [])
    return [f"{key} ({', '.join(sorted(set(names)))})" if names else key for key, names in clouds.items()]
