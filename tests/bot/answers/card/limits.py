"""Discord's sums for a message of components, asserted on a card as the surface lays it out."""

from bot.answers.card import Card
from bot.answers.layout import width

ROW = 5


def assert_within_limits(card: Card) -> None:
    """Raises AssertionError when Discord would refuse the card, or a phone would cut it."""
    texts = [card.head, *card.below]
    assert sum(len(text) for text in texts) <= 4_000
    assert all(text.strip() for text in texts)
    assert components(card) <= 40
    assert len({(one.kind, one.argument) for one in card.actions}) == len(card.actions)
    for action in card.actions:
        assert action.label.strip() and len(action.label) <= 80 and width(action.label) <= 34
        assert action.argument.isascii() and len(action.argument) <= 60
    if card.picture:
        assert 0 < len(card.picture.alt) <= 1_024
    assert all(width(line) <= 25 for text in texts for line in code_lines(text) if card.kind != "flags")
    assert all(text.count("```") % 2 == 0 for text in texts)
    assert card.colour in range(0x1000000)


def components(card: Card) -> int:
    """A container, a display for each text with a separator before it, a gallery, and rows of five buttons."""
    rows = -(-len(card.actions) // ROW)
    return 1 + 2 * (1 + len(card.below)) + bool(card.picture) + rows + len(card.actions)


def code_lines(text: str) -> list[str]:
    return [line for block in text.split("```")[1::2] for line in block.splitlines()]
