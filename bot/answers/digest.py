"""A digest in words: short lines that a phone can show, every price with its day."""

from typing import Any

from bot.answers.prices import shortened
from bot.answers.render import environment
from bot.digest.content import Cheapest, Moved, Post
from bot.digest.workloads import FittingCard, WorkloadCost
from bot.prices.money import written
from bot.prices.view import Priced
from bot.texts import name_of, say

MOST_TEXT = 3_800
"""Characters; Discord takes 4,000 in a message with components."""


class DigestTeller:
    """Lines of a post in a language."""

    def __init__(self, post: Post, lang: str) -> None:
        self.post, self.lang = post, lang

    def say(self, key: str, **values: Any) -> str:
        """A text of the section ``digest``."""
        return say(self.lang, f"digest.{key}", **values)

    def title(self) -> str:
        """The headline; it holds the local date, by which a post is known again."""
        return title_of(self.lang, self.post.day)

    def money(self, price: float) -> str:
        """A price per GPU and hour."""
        return written(price, self.post.prices.currency)

    def classed(self, provider_class: str, spot: bool) -> str:
        """A class with its kind."""
        name = name_of(self.lang, "provider_class", provider_class)
        return say(self.lang, "prices.spot", name=name) if spot else name

    def moved(self, one: Moved) -> str:
        """A move: of a class by its matched offers, or of one offer."""
        name, change = self.classed(one.provider_class, one.spot), f"{one.change:+.1f} %"
        if not one.provider:
            return self.say("moved_class", gpu=one.gpu, name=name, change=change, count=one.n_matched)
        return self.say("moved_offer", gpu=one.gpu, provider=one.provider, name=name, change=change,
                        before=self.money(one.before), price=self.money(one.price), day=one.as_of)  # fmt: skip

    def cheapest(self, one: Cheapest) -> str:
        """The cheapest of each class of a card on one line."""
        parts = [self.offer(offer) for offer in one.offers]
        told = one.as_of and not self.post.as_of
        return self.say("cheapest_as_of" if told else "cheapest_of", gpu=one.gpu, offers=" · ".join(parts),
                        day=one.as_of)  # fmt: skip

    def offer(self, one: Priced) -> str:
        """A price with its class, provider and day."""
        return self.say("offer", price=self.money(one.price), name=self.classed(one.provider_class, one.spot),
                        provider=one.provider, day=one.as_of or say(self.lang, "prices.undated"))  # fmt: skip

    def listed(self, found: list[Priced]) -> str:
        """Offers in a row."""
        return name_of(self.lang, "sign", "semicolon").join(f"{one.gpu} {self.offer(one)}" for one in found)

    def workload(self, one: WorkloadCost) -> str:
        """The cheapest cards that hold a workload."""
        if one.problem or not one.cards:
            return self.say("workload_none", text=one.text, why=one.problem or self.say("no_card"))
        cards = name_of(self.lang, "sign", "semicolon").join(map(self._card, one.cards))
        told = one.as_of and not self.post.as_of
        return self.say("workload_as_of" if told else "workload", text=one.text, cards=cards, day=one.as_of)

    def _card(self, card: FittingCard) -> str:
        """A card with its price by the hour, of a million tokens, and what must be changed first."""
        name = f"{card.gpu_count} x {card.gpu}" if card.gpu_count > 1 else card.gpu
        price = self.say("card", gpu=name, price=self.money(card.price), provider=card.provider, day=card.as_of,
                         name=self.classed(card.provider_class, False))  # fmt: skip
        million = self.say("per_million", price=self.money(card.per_million)) if card.per_million else ""
        after = self.say("after", steps=" + ".join(card.steps)) if card.steps else ""
        return price + million + after

    def bought(self) -> list[str]:
        """What cards cost to buy, where it is known."""
        comma = name_of(self.lang, "sign", "comma")
        lines = []
        for card in self.post.prices.cards:
            parts = [
                say(self.lang, f"prices.bought_{one.kind}", price=self.money(one.price), day=one.as_of,
                    source=one.source)
                for one in card.purchases if one.kind != "launch"
            ]  # fmt: skip
            if parts:
                lines.append(f"{card.gpu} {comma.join(parts)}")
        return lines

    def lows(self) -> str:
        """For a quiet day: the cheapest of each card."""
        parts = [f"{one.gpu} {self.offer(one.offers[0])}" for one in self.post.cheapest if one.offers]
        return name_of(self.lang, "sign", "semicolon").join(parts)

    def sources(self) -> str:
        """Who says all this."""
        found = (one for card in self.post.prices.cards for one in card.ranges)
        names = dict.fromkeys(source for one in found for source in one.sources)
        return name_of(self.lang, "sign", "semicolon").join(shortened(names))

    def rate(self) -> str:
        """The exchange rate where one was used."""
        answer = self.post.prices
        if answer.currency == "USD":
            return ""
        return say(self.lang, "prices.rate", rate=answer.rate, currency=answer.currency, day=answer.rate_as_of)


def title_of(lang: str, day: str) -> str:
    """The headline of the post of a local date."""
    return say(lang, "digest.title", day=day)


def digest_text(post: Post, lang: str) -> str:
    """The post as text; what does not fit Discord's limit is left out line by line from the end, and said."""
    template = environment(lang).get_template("digest.j2")
    text = template.render(p=post, t=DigestTeller(post, lang)).strip()
    if len(text) <= MOST_TEXT:
        return text
    lines, footer = text.splitlines(), [line for line in text.splitlines() if line.startswith("-# ")][:6]
    room = MOST_TEXT - sum(len(line) + 1 for line in footer) - 80
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0 or line.startswith("-# "):
            break
        kept.append(line)
    return "\n".join([*kept, say(lang, "digest.cut"), *footer])[:MOST_TEXT]
