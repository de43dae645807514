"""``key:value`` pairs, as the slash command writes them: each value must be understood or is named."""

from dataclasses import dataclass

from bot.intake.hardware import Hardware
from bot.intake.lexicon import Word, lexicon
from bot.intake.sheet import Sheet


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the message: its field, the words of its value, and the tokens they are."""

    field: str
    value: str
    start: int
    end: int


def options_in(sheet: Sheet) -> list[Option]:
    """Every ``key:value`` whose key the lexicon knows; a value ends at the next key or at the end of the line."""
    keys = _keys_in(sheet)
    found = []
    for number, key in enumerate(keys, 1):
        start = key.end + 1
        end = _line_end(sheet, start, keys[number].start if number < len(keys) else len(sheet.tokens))
        if start < end:
            found.append(Option(key.value, sheet.words(start, end), start, end))
    return found


def _keys_in(sheet: Sheet) -> list[Word]:
    """Every key with a colon or an equals sign behind it."""
    keys: list[Word] = []
    for index in range(len(sheet.tokens)):
        word = lexicon().at(sheet.tokens, index, "key")
        inside = keys and index < keys[-1].end
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


def unread_options(sheet: Sheet) -> list[Option]:
    """The options of which nothing was understood, once all fields have been read."""
    return [option for option in options_in(sheet) if not any(sheet.taken[option.start : option.end])]
