"""``key:value`` pairs, as the slash command writes them: each value must be understood or is named."""

from typing import NamedTuple

from bot.intake.hardware import Hardware
from bot.intake.lexicon import Word
from bot.intake.sheet import Sheet

NONE = frozenset({"none", "no", "off", "false", "无", "不", "否"})
READ_AS: dict[str, set[str]] = {
    "model": {"model", "size", "closed", "family", "params_b"},
    "gpu": {"hardware", "memory_gb", "gpu_count"},
    "gpu_count": {"gpu_count", "hardware"},
    "memory_gb": {"memory_gb", "hardware"},
    "nodes": {"nodes", "hardware"},
    "method": {"method", "stage"},
    "stage": {"stage", "task"},
    "task": {"task", "stage", "method", "engine"},
    "precision": {"precision", "weight_format"},
    "engine": {"engine", "framework"},
    "framework": {"framework", "engine"},
    "parallelism": {"parallelism", "tensor", "pipeline", "context", "expert", "layout"},
}
"""The readings that answer an option, where there are others than its own field."""


class Option(NamedTuple):
    """An option of the message: its field, the words of its value, and the tokens they are."""

    field: str
    value: str
    start: int
    end: int
    key_start: int


def options_in(sheet: Sheet) -> list[Option]:
    """Every ``key:value`` whose key the lexicon knows; a value ends at the next key or at the end of the line."""
    keys = keys_in(sheet)
    found = []
    for number, key in enumerate(keys, 1):
        start = key.end + 1
        end = _line_end(sheet, start, keys[number].start if number < len(keys) else len(sheet.tokens))
        if start < end:
            found.append(Option(key.value, sheet.words(start, end), start, end, key.start))
    return found


def keys_in(sheet: Sheet) -> list[Word]:
    """Every key with a colon or an equals sign behind it."""
    keys: list[Word] = []
    for index in range(len(sheet.tokens)):
        word = sheet.word_at(index, "key")
        inside = keys and index <= keys[-1].end + 1
        if word and not inside and word.end < len(sheet.tokens) and sheet.tokens[word.end].text in ":=":
            keys.append(word)
    return keys


def _line_end(sheet: Sheet, start: int, end: int) -> int:
    """Where the line breaks before ``end``, if it does."""
    for index in range(start + 1, end):
        if "\n" in sheet.text[sheet.tokens[index - 1].end : sheet.tokens[index].start]:
            return index
    return end


def read_unknown_names(sheet: Sheet) -> None:
    """A model or card that an option names and nobody knows: the estimator says what is near."""
    for option in unread_options(sheet):
        if option.field == "model":
            sheet.read("model", option.value, option.start, option.end, "the value of the option")
        elif option.field == "gpu":
            named = Hardware(gpu=option.value)
            sheet.read("hardware", named, option.start, option.end, "the value of the option")


def read_refusals(sheet: Sheet) -> None:
    """``quant:none``, ``offload:no``: the option is left at what it is without."""
    for option in options_in(sheet):
        if option.value.lower() not in NONE:
            continue
        if option.field == "gradient_checkpointing":
            sheet.read(option.field, "none", option.key_start, option.end, f'"{option.value}" turns it off')
        sheet.take(option.key_start, option.end)
        sheet.declined.add(option.field)


def unread_options(sheet: Sheet) -> list[Option]:
    """The options of which nothing that fits them was understood, once all fields have been read."""
    return [option for option in options_in(sheet) if not _is_read(sheet, option)]


def _is_read(sheet: Sheet, option: Option) -> bool:
    """Whether a reading of the option's own kind covers part of its value, or the value was found impossible."""
    fields = READ_AS.get(option.field, {option.field})
    inside = (one for one in sheet.readings if one.start < option.end and option.start < one.end)
    refused = option.field in sheet.declined or bool(fields & set(sheet.invalid))
    return refused or any(one.field in fields for one in inside)


def is_command(sheet: Sheet) -> bool:
    """Whether the message is a slash command."""
    return sheet.text.lstrip().startswith("/")
