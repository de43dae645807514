"""An Answer becomes its text: one template per kind of reply and language."""

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

from bot.answer import Answer, Choice
from bot.answers.changes import Changes, plans
from bot.answers.describe import Describer, problem_in
from bot.answers.known import known_rows
from bot.answers.layout import TEXT_WIDTH, table, wrapped
from bot.answers.ledger import Ledger
from bot.answers.money import Money, is_about_money
from bot.answers.quote import quoted
from bot.intake.doubts import Doubt
from bot.texts import name_of, say, texts

MOST_QUOTED = 60
UNBROKEN = 100_000
"""Columns of a text that a client wraps itself."""


def _compiled_templates() -> BytecodeCache | None:
    """Compiled templates of earlier starts, in a folder of the user's own; none where there cannot be one."""
    try:
        return FileSystemBytecodeCache()
    except (OSError, RuntimeError):
        return None


@cache
def environment(lang: str, card: bool = False) -> Environment:
    """The templates of a language with the functions that they use; cards have no broken lines, and bold labels."""
    found = Environment(
        loader=PackageLoader("bot.answers", f"templates/{lang}"),
        autoescape=False,  # noqa: S701 - plain text; words of users pass through quoted()
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        auto_reload=False,
        bytecode_cache=None if card else _compiled_templates(),  # the filters' work on constants is compiled in
    )
    columns = UNBROKEN if card else TEXT_WIDTH
    found.filters.update(quote=quoted, wrap=partial(wrapped, columns=columns), label=_bold if card else str)
    found.filters["fine"] = "-# {}".format if card else str
    found.globals.update(
        table=partial(table, columns_of_text=columns), name=lambda section, key: name_of(lang, section, key)
    )
    return found


def _bold(label: str) -> str:
    """A label such as "Most likely: " in bold; the colon stands outside, as to some clients ：** ends nothing."""
    word = label.rstrip(": ：")
    return f"**{word}**{label[len(word) :]}"


def template_of(answer: Answer) -> str:
    """Which template tells this answer."""
    if answer.reply != "answer":
        return "picture" if answer.question == "diagnose" and answer.reply == "refuse" else answer.reply
    if answer.question == "help":
        return "help"
    if answer.diagnosis is not None:
        return "diagnosis"
    if answer.prices is not None or answer.known is not None:
        return "prices" if answer.known is None else "known"
    if answer.entries and not answer.estimates:
        return "entries"
    one = len(answer.estimates) == 1
    if is_about_money(answer) and not (one and answer.estimates[0].error):
        return "money" if one else "monies"
    return "one" if one else "several"


def rendered(answer: Answer, doubts: Sequence[Doubt] = (), explain: bool = False, card: bool = False) -> Answer:
    """The answer with its text, for a terminal or a card, and the numbers in it."""
    ledger = Ledger(answer)
    describer = Describer(answer, ledger)
    name = "explain" if explain else template_of(answer)
    template = environment(answer.lang, card).get_template(f"{name}.j2")
    text = template.render(
        a=answer,
        n=ledger,
        c=Changes(answer.estimates[0] if answer.estimates else None, ledger, answer.lang),
        d=describer,
        m=Money(answer, ledger, describer),
        plans=lambda: plans(answer, ledger, describer),
        w=_wreck_teller(answer, ledger, describer),
        t=_price_teller(answer, ledger),
        known=known_rows(ledger, answer.lang),
        problem=problem_in(answer.lang, answer.estimates[0]) if answer.estimates else "",
        sentences=_sentences(answer, doubts),
        examples=texts(answer.lang)["help"]["examples"],
    )
    return answer.model_copy(update={"text": text.strip(), "numbers": ledger.figures, "choices": _choices(doubts)})


def _wreck_teller(answer: Answer, ledger: Ledger, describer: Describer) -> Any:
    if answer.diagnosis is None:
        return None
    from bot.answers.wreck import Wreck  # most answers are to questions

    return Wreck(answer, ledger, describer)


def _price_teller(answer: Answer, ledger: Ledger) -> Any:
    if answer.prices is None:
        return None
    from bot.answers.prices import PriceTeller  # most answers hold no price

    return PriceTeller(answer.prices, ledger, answer.lang)


def _choices(doubts: Sequence[Doubt]) -> list[Choice]:
    """What may have been meant by a value that cannot be read, the likest first."""
    wrong = [doubt for doubt in doubts if doubt.kind == "value"]
    return [Choice(field=doubt.name, value=value) for doubt in wrong for value in _likest(doubt.near, doubt.value)]


def _likest(near: Iterable[str], typed: str) -> list[str]:
    from difflib import SequenceMatcher  # most values can be read

    return sorted(near, key=lambda one: -SequenceMatcher(None, one, typed.lower()).ratio())


def _sentences(answer: Answer, doubts: Sequence[Doubt]) -> list[str]:
    """What to ask back: one sentence for each value that is wrong, unknown or missing."""
    said = [say(answer.lang, f"invalid.{name}") for name in answer.invalid]
    said += list(dict.fromkeys(problem_in(answer.lang, found) for found in answer.estimates if found.error))
    said += [_doubted(answer.lang, doubt) for doubt in doubts]
    if not said:
        said = [say(answer.lang, f"missing.{name}") for name in ("samples", "model", "gpu") if name in answer.missing][
            :1
        ]
    return said


def _doubted(lang: str, doubt: Doubt) -> str:
    """What is asked back about something that was not understood."""
    names = name_of(lang, "sign", "comma").join(doubt.near)
    if doubt.kind == "closed":
        return say(lang, "unknown.closed", name=doubt.name)
    if doubt.kind == "option":
        hint = say(lang, "unknown.hint", names=names) if names else ""
        return say(lang, "unknown.option", name=quoted(doubt.name, MOST_QUOTED), hint=hint)
    field, value = name_of(lang, "field", doubt.name), quoted(doubt.value, MOST_QUOTED)
    if not names:
        return say(lang, "unknown.other", value=value, field=field)
    return say(lang, "unknown.choice", value=value, field=field, names=names)
