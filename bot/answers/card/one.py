"""The card of one run."""

from bot.answers.card.actions import of_one
from bot.answers.card.assumed import assumed_line
from bot.answers.card.budget import Section, filled
from bot.answers.card.cost import rent_lines
from bot.answers.card.picture import picture_of
from bot.answers.card.shape import Card
from bot.answers.card.steps import more_line, plan_line, step_lines
from bot.answers.card.table import code, figures
from bot.answers.card.voice import Voice, gib, per_gpu
from estimator.schema import Block, PerGpu

MOST_ROWS = 9
"""Items in the table; the smaller ones share a row."""
NOTHING = "0.00"
LEAST_MOVE = 0.01
"""Another choice is told when it moves the peak by more than this share."""
SMALLEST_SHARE = 0.002
"""Parts below this share of the peak are told together."""


def one_card(voice: Voice) -> Card:
    """Verdict, picture, breakdown, what to change first, and what was assumed."""
    found = voice.answer.estimates[0]
    if found.per_gpu is None:
        return Card("problem", voice.title(), lead=voice.problem(found))
    card = Card(
        kind="verdict",
        verdict=found.fit.verdict,
        headline=voice.title(),
        lead=lead(voice),
        table=breakdown(voice),
        picture=picture_of(voice),
        actions=of_one(voice),
    )
    return filled(card, voice, _sections(voice), assumed_line(voice))


def lead(voice: Voice) -> str:
    """The verdict in words, set bold, with the peak and what the card has; without a card, which one holds the run."""
    sentence = voice.template("verdict")[0]
    if voice.answer.estimates[0].fit.verdict is None:
        return "\n".join([sentence, *voice.template("card_smallest")])
    word, colon, rest = sentence.partition(voice.name("sign", "colon").strip())
    return "\n".join([*(f"**{line}**" for line in voice.template("fewest")), f"**{word}**{colon}{rest}"])


def breakdown(voice: Voice) -> str:
    """What lives at the peak as a table that adds up to what is allocated."""
    found = per_gpu(voice.answer.estimates[0])
    rows = table_rows(voice, found)
    heading = voice.say("at_peak", phase=voice.name("phase", found.peak_phase))
    total = voice.say("allocated_each" if (voice.answer.runs[0].get("gpu_count") or 1) > 1 else "allocated")
    return code(figures([("GiB", heading), *rows], (gib(found.allocated_peak), total)))


def table_rows(voice: Voice, found: PerGpu) -> list[tuple[str, str]]:
    """Figure and name of each large item; the small ones share the last row."""
    shown, small = large_and_small(found)
    rows = [(gib(block.bytes), voice.name("item", block.item)) for block in shown]
    if small:
        rest = found.allocated_peak - sum(block.bytes for block in shown)
        rows.append((gib(rest), voice.say("smaller", count=len(small))))
    return [row for row in rows if row[0] != NOTHING]


def large_and_small(found: PerGpu) -> tuple[list[Block], list[Block]]:
    """The items worth a row of their own, largest first, and the others."""
    ordered = sorted(found.at_peak, key=lambda block: -block.bytes)
    large = [block for block in ordered[:MOST_ROWS] if block.bytes >= SMALLEST_SHARE * found.allocated_peak]
    small = ordered[len(large) :]
    return (large, small) if len(small) > 1 else (ordered, [])


def _sections(voice: Voice) -> list[Section]:
    """What stands below the table."""
    d = voice.describer
    notes = [voice.say("note", note=voice.line(note)) for note in d.notes(0)]
    return [
        Section(0, tuple(plan_line(voice))),
        Section(3, tuple(step_lines(voice)), f"**{voice.say('first')}**"),
        Section(2, tuple(more_line(voice))),
        Section(2, tuple(voice.template("card_facts"))),
        Section(1, rent_lines(voice)),
        Section(5, tuple(_others(voice))),
        Section(1, tuple(voice.template("closing"))),
        Section(4, tuple(notes)),
    ]


def _others(voice: Voice) -> list[str]:
    """What the other choice would need where much was assumed, if it moves the peak at all."""
    found = voice.answer.estimates[0]
    peak = per_gpu(found).allocated_peak
    told = zip(found.alternatives, voice.describer.alternatives(0), strict=True)
    useful = [(one, row) for one, row in told if not (found.downgrades and one.verdict == "does_not_fit")]
    moving = [row for one, row in useful if abs(one.allocated_peak - peak) > LEAST_MOVE * peak]
    return [voice.say("other", choice=choice, peak=size, ending=voice.verdict(found)) for choice, size, found in moving]
