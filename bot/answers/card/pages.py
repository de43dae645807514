"""The pages behind the buttons: the math of a run, and the flags to copy."""

from collections.abc import Iterable

from bot.answer import Answer
from bot.answers.card.budget import shortened
from bot.answers.card.shape import MOST_TEXT, Card, Kind
from bot.answers.card.steps import title_of
from bot.answers.card.voice import Voice, gib, per_gpu
from bot.answers.quote import quoted
from estimator.downgrades import commands_elsewhere
from estimator.schema import Estimate, Run

HEADLINE_ROOM = 300
MOST_PAGES = 5
LONGEST_COMMAND, IN_A_BLOCK = 320, 10
OTHERS = ("llama-factory", "axolotl", "unsloth")
"""Frameworks in whose words the plan is told, too, where none was named."""
LANGUAGES = {"axolotl": "yaml", "llama-factory": "yaml", "unsloth": "py"}
"""What a framework is told in; the others by flags."""


def math_cards(answer: Answer, index: int = 0) -> list[Card]:
    """Every block at the peak with its reason, every phase, the three counters and every assumption with its source."""
    voice = Voice(alone(answer, index))
    if voice.answer.estimates[0].per_gpu is None:
        return [Card("problem", voice.title(), lead=voice.problem(voice.answer.estimates[0]))]
    paragraphs = [_blocks(voice), _counters(voice), _phases(voice), _assumptions(voice), _notes(voice)]
    paragraphs += _phase_blocks(voice)
    return paged(voice, "math", [part for part in paragraphs if part])


def flags_cards(answer: Answer, index: int = 0) -> list[Card]:
    """What to type for each step, the whole plan first, in code blocks that are easy to copy."""
    voice = Voice(alone(answer, index))
    found = voice.answer.estimates[0]
    tool, plan = _tool(found.run), found.plan.commands if found.plan else []
    titled = [(voice.say("flags_plan", tool=quoted(tool)), plan, tool)] if plan else []
    titled += _elsewhere(voice, found)
    titled += [(f"**{title_of(voice, one)}**", one.commands, tool) for one in found.downgrades if one.commands]
    if not titled:
        return [Card("flags", voice.title(), lead=voice.say("no_flags"))]
    blocks = [[f"{title}\n{block}"] for title, lines, name in titled for block in commands(lines, name)]
    return paged(voice, "flags", blocks)


def _tool(run: Run | None) -> str:
    """What the flags are for."""
    return "" if run is None else (run.framework if run.task == "train" else run.engine) or ""


def _elsewhere(voice: Voice, found: Estimate) -> list[tuple[str, list[str], str]]:
    """The plan in other frameworks' words, where none was named."""
    plan, assumed = found.plan, {one.field for one in found.assumptions}
    if plan is None or plan.run is None or plan.run.task != "train" or "framework" not in assumed:
        return []
    typed = [(one, commands_elsewhere(plan.run, plan.change, one)) for one in OTHERS if one != plan.run.framework]
    return [(voice.say("flags_elsewhere", tool=one), lines, one) for one, lines in typed if lines]


def alone(answer: Answer, index: int) -> Answer:
    """The answer with one of its runs. Raises IndexError."""
    sizes = answer.smallest_card_gb[index : index + 1]
    update = {"runs": [answer.runs[index]], "estimates": [answer.estimates[index]], "smallest_card_gb": sizes}
    return answer.model_copy(update=update)


def commands(lines: list[str], tool: str = "") -> list[str]:
    """Flags as they are typed, in code blocks of ten lines; backticks cannot end them."""
    kind = LANGUAGES.get(tool, "sh")
    clean = ["".join(filter(str.isprintable, line.replace("`", "'")))[:LONGEST_COMMAND] for line in lines]
    parts = (clean[start : start + IN_A_BLOCK] for start in range(0, len(clean), IN_A_BLOCK))
    return ["\n".join([f"```{kind}", *part, "```"]) for part in parts]


def paged(voice: Voice, kind: Kind, paragraphs: list[list[str]]) -> list[Card]:
    """Paragraphs over as many cards as they need, a paragraph broken between its lines."""
    pages = list(_pages(paragraphs))
    shown, out = pages[:MOST_PAGES], len(pages) - MOST_PAGES
    cards = []
    for number, page in enumerate(shown, start=1):
        title = voice.say(f"title_{kind}", title=voice.title())
        headline = title + (voice.say("page", page=number, pages=len(shown)) if len(shown) > 1 else "")
        footer = "-# " + voice.say("left_out_pages", pages=out) if out > 0 and number == len(shown) else ""
        cards.append(Card(kind, headline, sections=tuple(page), footer=footer))
    return cards


def _pages(paragraphs: list[list[str]]) -> Iterable[list[str]]:
    page: list[str] = []
    for lines in paragraphs:
        text = ""
        for line in lines:
            if sum(map(len, page)) + len(text) + len(line) + 1 > MOST_TEXT - HEADLINE_ROOM:
                yield [*page, text] if text else page
                page, text = [], ""
            text = f"{text}\n{line}" if text else line
        page.append(text)
    if page:
        yield page


def _blocks(voice: Voice) -> list[str]:
    found = per_gpu(voice.answer.estimates[0])
    heading = voice.say("math_peak", phase=voice.name("phase", found.peak_phase), total=gib(found.allocated_peak))
    return [f"**{heading}**", *_rows(voice, voice.describer.breakdown(0, True))]


def _phase_blocks(voice: Voice) -> list[list[str]]:
    """The blocks of the other phases, a paragraph each."""
    return [
        [f"**{voice.say('math_phase', phase=phase, total=size)}**", *_rows(voice, rows)]
        for phase, size, rows in voice.describer.phase_blocks(0)
    ]


def _rows(voice: Voice, blocks: list[list[str]]) -> list[str]:
    lines = []
    for item, size, why in blocks:
        reason = voice.line(why.removeprefix("- "))
        start = f"- **{item}** {size}" if item else f"  - {size}"
        lines.append(shortened(start + (f"{voice.name('sign', 'colon')}{reason}" if reason else "")))
    return lines


def _counters(voice: Voice) -> list[str]:
    names = [voice.say(f"counter_{name}") for name in ("allocated", "reserved", "device")]
    rows = voice.describer.counters(0, names)
    return [
        f"**{voice.say('math_counters')}**",
        *(f"- {name}{voice.name('sign', 'colon')}{low} · {mid} · {high}" for name, low, mid, high in rows),
    ]


def _phases(voice: Voice) -> list[str]:
    rows = [f"- {name} {size}" for name, size in voice.describer.phases(0)]
    steady = voice.say("steady", size=voice.ledger.gib("estimates[0].per_gpu.steady"))
    return [f"**{voice.say('math_phases')}**", *rows, f"- {steady}"]


def _assumptions(voice: Voice) -> list[str]:
    rows = voice.describer.every_assumption(0)
    colon = voice.name("sign", "colon")
    switches = {"on": voice.say("on"), "off": voice.say("off")}
    told = [
        f"- {quoted(field)} {switches.get(value, value)}" + (colon + voice.line(why) if why else "")
        for field, value, why in rows
    ]
    return [f"**{voice.say('math_assumed')}**", *map(shortened, told)] if told else []


def _notes(voice: Voice) -> list[str]:
    return [voice.say("note", note=voice.line(note, 500)) for note in voice.describer.notes(0)]
