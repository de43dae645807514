"""What a paste says of itself: keys given twice, and the config file that it names but does not hold."""

import re

from bot.reading.entries import Entry, Piece
from bot.reading.gathered import LONGEST_NAME, Assembled

SECRET = re.compile(r"token|secret|passw|api_?key|credential", re.IGNORECASE)
REPEATABLE = frozenset(("ot", "override_tensor", "lora", "lora_modules", "stop", "override_kv", "v", "e"))
NAMING = ("config", "yaml", "config_file", "$CONFIG_FILE")
CONFIG_ENDINGS = (".yaml", ".yml", ".toml", ".json")


def note_repeats(result: Assembled, piece: Piece) -> None:
    """Keys of a file or flags of a command that are given twice with different values."""
    if piece.form in ("python", "prose"):
        return
    seen: dict[str, Entry] = {}
    for entry in piece.entries:
        before = seen.setdefault(entry.key, entry)
        plain = not isinstance(entry.value, (dict, list)) and entry.key not in REPEATABLE and "[" not in entry.key
        if before is not entry and before.value != entry.value and plain:
            told = ("…", "…") if SECRET.search(entry.key) else (str(before.value)[:40], str(entry.value)[:40])
            result.repeated.append((entry.name, *told))
        seen[entry.key] = entry


def unseen_file(pieces: list[Piece]) -> str:
    """The tool's own config file that a command names while the paste holds none: its values are not known."""
    if any(piece.form in ("yaml", "toml", "json") for piece in pieces):
        return ""
    for piece in pieces:
        named = [*piece.words, *(str(one.value) for one in piece.entries if one.key in NAMING)]
        found = next((word for word in named if word.endswith(CONFIG_ENDINGS)), "")
        if found and piece.form == "command":
            return found[:LONGEST_NAME]
    return ""
