"""Cards of time and money: the bill, who asks what, owning against renting, cards ranked by cost."""

from bot.answers.card.actions import of_one, of_readings
from bot.answers.card.assumed import assumed_line
from bot.answers.card.budget import Section, filled
from bot.answers.card.shape import Card
from bot.answers.card.table import code, figures
from bot.answers.card.voice import Voice
from bot.answers.money import Money

MOST_LISTED = 6


def cost_card(voice: Voice) -> Card:
    """One run, or a card alone: what it costs and how long it takes, with what that rests on."""
    found, money = voice.answer.estimates[0], money_of(voice)
    headline = voice.title() if found.run else voice.line(voice.describer.cards(0))
    card = Card(
        kind="cost",
        verdict=found.fit.verdict,
        headline=headline,
        lead=lead(voice, money),
        table=_table(money),
        actions=of_one(voice) if found.per_gpu else (),
    )
    small = [*(voice.line(line, 300) for line in money.assumed(0)), *assumed_line(voice)]
    return filled(card, voice, _sections(voice, money), small)


def costs_card(voice: Voice) -> Card:
    """Several runs: time and cost of each, and a button for each to see it alone."""
    money = money_of(voice)
    rows = tuple(voice.line(_listed(voice, row), 300) for row in money.several()[1:])
    headline = voice.line(voice.describer.common()) or voice.say("compared", count=len(voice.answer.estimates))
    shared = tuple(voice.line(line, 300) for line in money.assumed_by_all())
    sections = [Section(0, rows), Section(1, tuple(voice.template("closing")))]
    return filled(Card("cost", headline, actions=of_readings(voice)), voice, sections, [*shared, *assumed_line(voice)])


def rent_lines(voice: Voice) -> tuple[str, ...]:
    """What the card of a run costs to rent, with days and sources in small print under it."""
    money = money_of(voice)
    return (*money.brief(0), *_with_small_print(money.rent(0)))


def rents_lines(voice: Voice) -> tuple[str, ...]:
    """What the cards of several runs cost to rent, each with days and sources in small print under it."""
    return _with_small_print(money_of(voice).rents())


def _with_small_print(told: list[str]) -> tuple[str, ...]:
    return tuple(f"-# {line}" if number % 2 else line for number, line in enumerate(told))


def money_of(voice: Voice) -> Money:
    """Time and money of the answer in the reader's language."""
    return Money(voice.answer, voice.ledger, voice.describer)


def lead(voice: Voice, money: Money) -> str:
    """The total or the speed, how long it takes, and in one sentence whether it fits."""
    first = money.headline(0)
    lines = [f"**{first}**"] if first else []
    lines += [*money.with_buffer(0), *money.duration(0), *money.million(0)]
    if voice.answer.estimates[0].per_gpu is not None:
        lines.append(voice.template("verdict")[0])
    return "\n".join(lines)


def _table(money: Money) -> str:
    """The bill, else the cost of an owned hour, as figures that add up."""
    rows = money.bill(0) or money.owning_rows(0)
    if not rows:
        return ""
    *lines, total = [(figure, name) for name, figure, _why in rows]
    return code(figures([("USD", money.per(0)), *lines], total))


def _sections(voice: Voice, money: Money) -> list[Section]:
    ranked = money.ranks(0)
    heading = money.ranked_heading(0) if ranked else money.offers_heading(0)
    rows, rest = (money.ranked(0), money.rest(0)) if ranked else (money.offers(0), [])
    listed, beside = (
        tuple(voice.line(_listed(voice, row), 300) for row in found[:MOST_LISTED]) for found in (rows, rest)
    )
    owning = tuple(money.owning(0))
    return [
        Section(3, listed, f"**{heading}**" if listed else ""),
        Section(5, beside, f"**{money.rest_heading(0)}**" if beside else ""),
        Section(2, owning, f"**{money.owning_heading(0)}**" if owning else ""),
        Section(4, tuple(money.speed(0))),
        Section(1, tuple(voice.template("closing"))),
    ]


def _listed(voice: Voice, row: list[str]) -> str:
    """A row of a table as a line: the name, its figures, and where they come from."""
    name, *cells = row
    return f"**{name}**{voice.name('sign', 'colon')}" + " · ".join(cell for cell in cells if cell)
