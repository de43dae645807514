"""What to change first, in words."""

from bot.answers.card.voice import Voice, coarse
from bot.answers.changes import LEAST_HOST
from bot.answers.useful import most_useful
from estimator.schema import Estimate, Step

MOST_LISTED, MOST_SHORT = 6, 3
COSTS = ("speed_cost", "quality_cost", "money_cost")


def plan_line(voice: Voice) -> list[str]:
    """The cheapest chain that fits, or that nothing on this card does."""
    found = voice.answer.estimates[0]
    if not found.plan:
        return [voice.say("no_plan")] if found.fit.verdict in ("tight", "does_not_fit") else []
    titles = [title_of(voice, step) for step in found.plan.chain or _named(found.downgrades, found.plan.steps)]
    figures = [voice.say("peak", peak=coarse(found.plan.allocated_peak)), voice.name("verdict", found.plan.verdict)]
    if found.plan.host_ram >= LEAST_HOST:
        figures.append(voice.say("host", size=f"{coarse(found.plan.host_ram)} GiB"))
    bought = any(step.money_cost != "none" for step in found.plan.chain)
    told = voice.name("sign", "comma").join(figures)
    return [voice.say("plan_hardware" if bought else "plan", chain=" + ".join(titles), figures=told)]


def listed(found: Estimate) -> list[Step]:
    """The steps worth a line: those of the plan, those that fit, and cheap ones that save much."""
    return [found.downgrades[place] for place in most_useful(found, MOST_LISTED, MOST_SHORT)]


def step_lines(voice: Voice) -> list[str]:
    """A numbered line for each step: what it saves, what it costs, and whether the run then fits."""
    shown = listed(voice.answer.estimates[0])
    return [f"{number}. {step_line(voice, step)}" for number, step in enumerate(shown, start=1)]


def more_line(voice: Voice) -> list[str]:
    """That there are more steps, and where."""
    steps = voice.answer.estimates[0].downgrades
    hidden = len(steps) - len(listed(voice.answer.estimates[0]))
    return [voice.say("more_steps", count=hidden)] if hidden and any(step.commands for step in steps) else []


def step_line(voice: Voice, step: Step) -> str:
    """One step with its bytes, its verdict and its costs."""
    words = [voice.say("saves", saved=coarse(step.saves))] if step.saves else []
    words += [voice.say("peak", peak=coarse(step.allocated_peak))]
    words += [voice.name("verdict", step.verdict)] if step.verdict else []
    words += costs(voice, step)
    told = f"**{title_of(voice, step)}**{voice.name('sign', 'colon')}{voice.name('sign', 'comma').join(words)}"
    note = voice.line(step.note_zh if voice.lang == "zh" and step.note_zh else step.note)
    return voice.joined([told, note] if note else [told])


def costs(voice: Voice, step: Step) -> list[str]:
    """What a step costs in speed, quality and money, in words; nothing for what is free."""
    found = [(name, getattr(step, name)) for name in COSTS]
    return [voice.say(f"{name}_{size}") for name, size in found if size != "none"]


def title_of(voice: Voice, step: Step) -> str:
    """What a step is called in the reader's language."""
    return voice.line(step.title_zh if voice.lang == "zh" and step.title_zh else step.title)


def _named(steps: list[Step], ids: list[str]) -> list[Step]:
    return [step for name in ids for step in steps if step.id == name]
