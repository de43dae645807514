"""Colours of a reply: the verdict stands out, the sizes are easy to find."""

from rich.text import Text

VERDICTS = (
    (
        r"^(FITS|放得下)[^:：]*[:：]|(?<=[,，]) (still )?fits$|(?<=[,，])(仍然)?放得下$|(?<=  )(fits|放得下)$",
        "bold green",
    ),
    (r"^(TIGHT|很紧)[^:：]*[:：]|(?<=[,，])( tight|很紧)$|(?<=  )(tight|很紧)$", "bold yellow"),
    (r"^(DOES NOT FIT|放不下)[:：]|(?<=[,，])( does not fit|放不下)$|(?<=  )(does not fit|放不下)$", "bold red"),
)
SIZES = r"\d[\d,.]*(?:[-–]\d[\d.]*)? GiB"
QUIET = r"(?m)^(Assumed|假设|Note|注意)[:：]"


def painted(text: str) -> Text:
    """The reply with its styles."""
    found = Text(text)
    first_end = text.find("\n") if "\n" in text else len(text)
    found.stylize("bold", 0, first_end)
    found.highlight_regex(SIZES, "cyan")
    found.highlight_regex(QUIET, "dim")
    for pattern, style in VERDICTS:
        found.highlight_regex("(?m)" + pattern, style)
    return found
