"""What the catalogue knows of a model or a card, as rows of a label and a value."""

from bot.answers.ledger import Ledger
from bot.texts import say


def known_rows(ledger: Ledger, lang: str) -> list[list[str]]:
    """A row for each fact, the numbers noted."""
    facts = ledger.answer.known.facts if ledger.answer.known else {}
    return [[say(lang, f"fact.{name}"), _value(ledger, name, value, lang)] for name, value in facts.items()]


def _value(ledger: Ledger, name: str, value: object, lang: str) -> str:
    path = f"known.facts.{name}"
    if isinstance(value, bool):
        return say(lang, "fact.yes" if value else "fact.no")
    if isinstance(value, float):
        return ledger.number(path)
    if isinstance(value, int):
        return ledger.gib(path, fine=True) if name.endswith("_bytes") else ledger.count(path)
    return ledger.words(path)
