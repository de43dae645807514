"""What a message says and nothing here understands: it is told, never dropped."""

from typing import Literal, NamedTuple

from bot.intake.lexicon import lexicon
from bot.intake.options import Option, is_command, keys_in, unread_options
from bot.intake.sheet import Sheet

NEAR = 65
"""Similarity (0 to 100) from which an option is taken for a slip of a known one."""
MOST_CHOICES = 12
OPTION_NAMES = (
    "model", "method", "gpu", "task", "stage", "precision", "quant", "optimizer", "attention", "checkpointing",
    "framework", "engine", "batch", "seq", "grad_accum", "gpu_count", "nodes", "rank", "epochs", "samples",
    "concurrency", "new_tokens", "parallelism", "offload",
)  # fmt: skip


class Doubt(NamedTuple):
    """A value that cannot be read, an option that there is none of, or a model whose weights nobody has.

    ``name`` is the field, the option or the model; ``near`` what may have been meant, or the choices.
    """

    kind: Literal["value", "option", "closed"]
    name: str
    value: str = ""
    near: tuple[str, ...] = ()


def doubts_in(sheet: Sheet) -> list[Doubt]:
    """Everything of a message whose fields have been read that must be asked back."""
    closed: list[str] = [] if sheet.values("model") or sheet.values("size") else sheet.values("closed")
    found = [Doubt("closed", name) for name in closed[:1]]
    if is_command(sheet):  # in prose a colon is only a colon
        found += [Doubt("value", one.field, one.value, _choices(one)) for one in unread_options(sheet)]
        found += [Doubt("option", name, near=_nearest(name)) for name in unknown_options(sheet)]
    return found


def unknown_options(sheet: Sheet) -> list[str]:
    """Every ``word:`` of a command that is no option."""
    known = {index for key in keys_in(sheet) for index in range(key.start, key.end)}
    names = []
    for index in range(len(sheet.tokens)):
        end = _name_end(sheet, index)
        if end and index not in known and not any(sheet.taken[index:end]):
            names.append(sheet.words(index, end))
    return names


def _name_end(sheet: Sheet, start: int) -> int:
    """Where the name of an option that begins at ``start`` has its colon; 0 where none does."""
    tokens, end = sheet.tokens, start
    while end < len(tokens) and (end == start or tokens[end].glued) and tokens[end].text not in ":=":
        if tokens[end].kind == "sign" and tokens[end].text not in "_-":
            return 0
        end += 1
    colon = end < len(tokens) and tokens[end].text in ":=" and tokens[end].glued and end > start
    return end if colon and tokens[start].kind == "word" and not tokens[start].glued else 0


def _nearest(name: str) -> tuple[str, ...]:
    from rapidfuzz import fuzz, process  # only a wrong option needs it

    found = process.extract(name.lower(), OPTION_NAMES, scorer=fuzz.ratio, limit=1, score_cutoff=NEAR)
    return tuple(one for one, *_ in found)


def _choices(option: Option) -> tuple[str, ...]:
    """What a method, task or optimizer may be, where there are few."""
    choices = lexicon().choices(option.field)
    return choices if len(choices) <= MOST_CHOICES else ()
