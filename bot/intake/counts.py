"""Other numbers of the same cards: "4 or 2 H100s", "2x4090, or do I need 4", 单卡还是双卡4090."""

from dataclasses import replace

from bot.intake import quantities
from bot.intake.hardware import MOST_PLAIN, OF_KNOWN, Hardware
from bot.intake.quantities import Quantity
from bot.intake.sheet import Reading, Sheet

RATHER = frozenset({"or", "/", "或", "vs", "versus"})
OR_ELSE = frozenset({"or", "还", "vs", "versus"})
NEEDING = frozenset(
    {"do", "does", "i", "we", "it", "need", "needs", "should", "get", "use", "go", "for", "is", "are", "must", "have",
     "to", "with", "on", "rather", "take", "want", "will", "would", "是", "得", "要", "用", "需", "上", "必", "须"}
)  # fmt: skip
"""Words between an "or" and the number of cards that it offers."""
ONE = frozenset({"one", "1"})
HAVING = frozenset({"have", "only", "just", "got", "had", "use", "using", "own"})
"""Words before a number of cards that are not named again."""
ENDS = frozenset("?？,，.。!！;；")


def read_other_counts(sheet: Sheet) -> None:
    """Note a number of cards that is offered beside the number of the cards that are named."""
    sets = [one for one in sheet.readings if one.field == "hardware"]
    for one in sets:
        _read_in_front(sheet, one)
    if len(sets) == 1 and sets[0].value.gpu and sets[0].value.count:
        _read_behind(sheet, sets[0])


def _read_in_front(sheet: Sheet, reading: Reading) -> None:
    """The cards counted before an "or": the four of "4 or 2 H100s", the one of 单卡还是双卡4090."""
    cards: Hardware = reading.value
    at = reading.start - 1
    if at < 1 or sheet.tokens[at].text not in RATHER or not cards.gpu or not cards.count:
        return
    number = quantities.small_count(sheet.tokens, at - 1)
    if number is not None and number.end == at and sheet.is_free(at - 1, at):
        _note(sheet, cards, number, at - 1)


def _read_behind(sheet: Sheet, reading: Reading) -> None:
    """The number that a clause behind an "or" ends with: the 4 of "or do I need 4"."""
    rest = range(reading.end, len(sheet.tokens))
    rather = next((at for at in rest if sheet.tokens[at].text in OR_ELSE), len(sheet.tokens))
    at = next((at for at in rest if at > rather and sheet.tokens[at].text not in NEEDING), None)
    number = quantities.small_count(sheet.tokens, at) if at is not None and not sheet.taken[at] else None
    if at is None or number is None:
        return
    if number.end == len(sheet.tokens) or sheet.tokens[number.end].text in ENDS:
        _note(sheet, reading.value, number, at)


def read_count_alone(sheet: Sheet) -> None:
    """``what if I only have one``, ``just 2``: cards of the conversation, where the message names none itself."""
    if any(one.field in ("hardware", "model", "size", "gpu_count") for one in sheet.readings):
        return
    for at in sheet.free_starts():
        one = sheet.tokens[at].text in ONE
        number = Quantity(1, at + 1) if one else quantities.small_count(sheet.tokens, at)
        number = number or quantities.spelled_count(sheet.tokens, at)
        having = at > 0 and sheet.tokens[at - 1].text in HAVING
        end = _past_times(sheet, number.end) if number else 0
        said = having or (number is not None and end > number.end)
        if said and number and (end == len(sheet.tokens) or sheet.tokens[end].text in ENDS):
            if 1 <= number.value <= MOST_PLAIN:
                sheet.read("hardware", Hardware(count=int(number.value)), at, number.end, "how many there are")
            return


def _past_times(sheet: Sheet, at: int) -> int:
    """Past a sign of multiplication, and what it counts again: "2x?", "4x of those"."""
    texts = [token.text for token in sheet.tokens[at : at + 3]]
    end = at + (texts[:1] in (["x"], ["×"], ["*"]))
    known = len(texts) == 3 and texts[1] == "of" and texts[2] in OF_KNOWN
    return end + 2 * (known and end > at)


def _note(sheet: Sheet, cards: Hardware, number: Quantity, start: int) -> None:
    if 1 <= number.value <= MOST_PLAIN:
        other = replace(cards, count=int(number.value))
        sheet.read("hardware", other, start, number.end, "the other number of cards")
