"""Slips of the keyboard in field names: "qlroa", "infrence"."""

from bot.intake.lexicon import lexicon
from bot.intake.sheet import Sheet

CORRECTED = ("method", "optimizer", "engine", "framework", "task")
SHORTEST = 5


def read_typos(sheet: Sheet) -> None:
    """Words that nothing read and that are one slip away from a word we know."""
    words = [index for index in sheet.free_starts() if _may_be_typo(sheet, index)]
    if not words:
        return
    known = {word: entry for word, entry in lexicon().words(*CORRECTED).items() if len(word) >= SHORTEST}
    for index in words:
        meant = _one_slip_away(sheet.tokens[index].text, known)
        if meant:
            field, value = known[meant]
            sheet.read(field, value, index, index + 1, f'"{sheet.words(index, index + 1)}" is read as "{meant}"')


def _may_be_typo(sheet: Sheet, index: int) -> bool:
    token = sheet.tokens[index]
    return token.kind == "word" and token.text.isascii() and len(token.text) >= SHORTEST - 1


def _one_slip_away(word: str, known: dict[str, tuple[str, str]]) -> str | None:
    """A known word that begins alike and differs by one letter added, lost, changed or swapped."""
    near = [one for one in known if one[0] == word[0] and abs(len(one) - len(word)) <= 1 and len({*one} ^ {*word}) <= 2]
    if not near:
        return None
    from rapidfuzz.distance import OSA  # a rare need: most messages spell their words right

    return next((one for one in near if OSA.distance(one, word, score_cutoff=1) <= 1), None)
