"""The card that compares several runs."""

from bot.answers.card.actions import of_readings
from bot.answers.card.assumed import assumed_line
from bot.answers.card.budget import Section, filled
from bot.answers.card.cost import rents_lines
from bot.answers.card.picture import picture_of
from bot.answers.card.shape import Card
from bot.answers.card.table import COLUMNS, code
from bot.answers.card.voice import Voice, gib
from bot.answers.layout import width, wrapped
from estimator.schema import Estimate, Verdict

MOST_RUNS = 10
"""Runs in the table; an answer with more says how many are left out."""
ORDER: tuple[Verdict, ...] = ("fits", "tight", "does_not_fit")


def comparison_card(voice: Voice) -> Card:
    """A row for every run, a bar for each in the picture, and a button for each to see it alone."""
    answer, d = voice.answer, voice.describer
    headline = voice.line(d.common()) or voice.say("compared", count=len(answer.estimates))
    hidden = max(0, len(answer.estimates) - MOST_RUNS)
    parts = [
        Section(1, tuple([voice.say("more_runs", count=hidden)] if hidden else [])),
        Section(2, tuple(_problems(voice))),
        Section(1, rents_lines(voice)),
        Section(1, tuple(voice.template("closing"))),
        Section(4, tuple(voice.say("note", note=voice.line(note)) for note in d.shared_notes())),
    ]
    card = Card(
        kind="comparison",
        verdict=common_verdict(answer.estimates),
        headline=headline,
        lead=lead(voice),
        table=rows(voice),
        picture=picture_of(voice),
        actions=of_readings(voice),
    )
    return filled(card, voice, parts, assumed_line(voice))


def common_verdict(estimates: list[Estimate]) -> Verdict | None:
    """The verdict where all runs share it; grey where they differ."""
    found = {one.fit.verdict for one in estimates}
    return found.pop() if len(found) == 1 else None


def lead(voice: Voice) -> str:
    """How many of the runs fit, in words."""
    judged = [one.fit.verdict for one in voice.answer.estimates if one.fit.verdict]
    counted = [(voice.name("verdict", verdict), judged.count(verdict)) for verdict in ORDER if verdict in judged]
    told = voice.name("sign", "comma").join(voice.say("counted", verdict=name, count=count) for name, count in counted)
    return "\n".join([*voice.template("fewest"), *([f"**{told}**"] if told else [])])


def rows(voice: Voice) -> str:
    """Lines for every run: what it is, and its peak with the verdict or the card that holds it."""
    lines = [voice.say("peaks")]
    for index, found in enumerate(voice.answer.estimates[:MOST_RUNS]):
        lines += [*_narrow(voice.label(index)), f" {_result(voice, index, found)}"]
    return code(lines)


def _narrow(label: str) -> list[str]:
    """The label, its parts closer together where it is too wide, else on several lines."""
    close = label if width(label) <= COLUMNS else label.replace(" · ", "·")
    return [close] if width(close) <= COLUMNS else wrapped(label, "", COLUMNS).splitlines()


def _result(voice: Voice, index: int, found: Estimate) -> str:
    if found.per_gpu is None:
        return voice.say("no_estimate")
    peak = gib(found.per_gpu.allocated_peak).rjust(6)
    if found.fit.verdict:
        return f"{peak} {voice.name('verdict', found.fit.verdict)}"
    size = (voice.answer.smallest_card_gb + [None] * (index + 1))[index]
    return f"{peak} " + (voice.say("needs", size=size) if size else voice.say("no_card"))


def _problems(voice: Voice) -> list[str]:
    """Why some of the runs have no estimate, each reason once."""
    return list(dict.fromkeys(voice.problem(found) for found in voice.answer.estimates if found.error))
