"""The only way in which words of a user are repeated to anyone."""

import re
import unicodedata

LONGEST = 80

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_MENTIONS = re.compile(r"<(?:[@#][!&]?|a?:\w+:|/[^:>]*:|t:)-?\w*(?::\w)?>")
_SCHEMES = re.compile(r"\b[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_INVITES = re.compile(r"(discord(?:app)?\.(?:gg|com))/", re.IGNORECASE)
"""Addresses that a chat makes an invitation of without a scheme before them, too."""
_MARKDOWN = str.maketrans("", "", "`*~|[]<>\\")
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def quoted(text: object, longest: int = LONGEST) -> str:
    """The text on one line without mentions, links, markdown, escape sequences or unseen characters, and cut short."""
    seen = str(text)
    if not seen.isprintable():
        spaced = "".join(" " if character.isspace() else character for character in _ESCAPES.sub("", seen))
        seen = "".join(character for character in spaced if unicodedata.category(character) not in _UNSEEN)
    plain = " ".join(_quieted(_MENTIONS.sub("", seen).translate(_MARKDOWN)).split())
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def _quieted(text: str) -> str:
    """Mentions lose their sign, underscores that would slant text go, headings and lists lose their mark."""
    unlinked = _INVITES.sub(r"\1 ", _SCHEMES.sub("", text.replace("@", "")).replace("://", " "))
    without_marks = re.sub(r"(?<!\w)_+|_+(?!\w)", "", unlinked)
    return re.sub(r"^\s*(?:[#>]+|-+(?=\s))\s*", "", without_marks)


def source_name(source: str) -> str:
    """The first words of a source: the repository, package or report, without path, licence and commit."""
    first = source.split(" (")[0].split(",")[0]
    return first.split()[0] if "/" in first.split()[0] or "." in first else first
