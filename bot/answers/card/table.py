"""Tables of at most 25 columns, the width of a code block inside a card on a phone.

Figures come first: a code block's Chinese letters need not be exactly two columns wide, and so nothing is out of line.
"""

from bot.answers.layout import padded, width

COLUMNS = 25


def clipped(text: str, columns: int) -> str:
    """The text, cut with an ellipsis where it is wider; a Chinese character takes two columns."""
    if width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width(kept + character) > columns - 1:
            break
        kept += character
    return kept.rstrip() + "…"


def code(lines: list[str]) -> str:
    """A code block; every line is cut to the width of a phone."""
    return "\n".join(["```", *(clipped(line, COLUMNS).rstrip() for line in lines), "```"])


def figures(rows: list[tuple[str, str]], total: tuple[str, str] | None = None) -> list[str]:
    """Lines of a figure and its name, the figures flush; the first row is the heading, a rule stands over the total."""
    every = [*rows, total] if total else rows
    columns = max(width(figure) for figure, _ in every)
    lines = [f"{padded(figure, columns, right=True)} {name}" for figure, name in every]
    if total:
        lines.insert(-1, "-" * columns)
    return lines
