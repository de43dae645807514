"""docker-compose files: the command and environment of the service that serves a model."""

import re
import shlex
from typing import Any

from bot.reading.commands import piece_of, program_of
from bot.reading.entries import Entry, Piece
from bot.reading.formats.shell import UNKNOWN, Command


def compose_pieces(entries: list[Entry]) -> list[Piece]:
    """A piece for each service with an image; empty where the file is no compose file."""
    if any(one.key == "apiVersion" for one in entries):
        return [piece for one in entries for piece in _containers(one)]
    services = next((one for one in entries if one.key == "services" and isinstance(one.value, dict)), None)
    if services is None:
        return []
    lines = {one.key: one.line for one in entries}
    found = [_piece(name, value, lines) for name, value in services.value.items() if isinstance(value, dict)]
    return [one for one in found if one]


def _containers(entry: Entry) -> list[Piece]:
    """The containers of a Kubernetes manifest: ``command`` and ``args`` are the words, variables are listed."""
    if entry.last != "containers" or not isinstance(entry.value, list):
        return []
    found = []
    for one in entry.value:
        if not isinstance(one, dict) or not isinstance(one.get("image"), str):
            continue
        given = [word for key in ("command", "args") for word in _words(one.get(key) or [])]
        variables = {
            str(pair.get("name")): (str(pair["value"]), entry.line)
            for pair in one.get("env") or []
            if isinstance(pair, dict) and "value" in pair
        }
        piece = _run_by(one["image"], given, variables, entry.line)
        count = _limit(one)
        if piece and count:
            piece.entries.append(Entry("$docker_gpus", count, entry.line, "nvidia.com/gpu"))
        found += [piece] if piece else []
    return found


def _limit(container: dict[str, Any]) -> int | None:
    """Cards that a container is given."""
    limits = container.get("resources", {}).get("limits", {}) if isinstance(container.get("resources"), dict) else {}
    count = limits.get("nvidia.com/gpu") if isinstance(limits, dict) else None
    return int(count) if isinstance(count, (int, str)) and str(count).isdigit() and int(count) > 0 else None


def _run_by(image: str, given: list[str], variables: dict[str, tuple[str, int]], line: int) -> Piece | None:
    """The words as a command of their own, or as the arguments of the image's program."""
    inner = [one for word in given for one in (_words(word) if " -" in word else [word])]
    words = [_filled(one) for one in inner if one not in SHELLS]
    piece = piece_of(Command(words, [line] * len(words), variables)) if words else None
    if piece is not None and program_of(piece):
        return piece
    words = [f"image:{_filled(image)}", *words]
    return piece_of(Command(words, [line] * len(words), variables))


def _piece(name: str, service: dict[str, Any], lines: dict[str, int]) -> Piece | None:
    image = service.get("image")
    if not isinstance(image, str):
        return None
    path = f"services.{name}"
    line = lines.get(f"{path}.command", lines.get(f"{path}.image", 1))
    given = [one for key in ("entrypoint", "command") for one in _words(service.get(key) or [])]
    variables = _environment(service.get("environment"), lines.get(f"{path}.environment", line))
    piece = _run_by(image, given, variables, line)
    count = _cards(service)
    if piece and count:
        piece.entries.append(Entry("$docker_gpus", count, lines.get(f"{path}.deploy", line), "deploy.resources"))
    return piece


SHELLS = ("/bin/sh", "sh", "/bin/bash", "bash", "-c", "-lc")
_VARIABLE = re.compile(r"\$\{(\w+)(?::?([-+?])([^{}]*))?\}|\$(\w+)")


def _filled(word: str) -> str:
    """Compose's own variables: ``${NAME:-default}`` is its default, others are known only where the file is used."""
    plain = word.replace("$$", "\x01")
    return _VARIABLE.sub(lambda found: found[3] if found[2] == "-" else UNKNOWN, plain).replace("\x01", "$")


def _words(command: Any) -> list[str]:
    if isinstance(command, list):
        return [str(one) for one in command if one is not None]
    try:
        return shlex.split(str(command))
    except ValueError:
        return str(command).split()


def _environment(given: Any, line: int) -> dict[str, tuple[str, int]]:
    if isinstance(given, dict):
        return {str(key): (str(value), line) for key, value in given.items() if value is not None}
    pairs = (str(one).partition("=") for one in given) if isinstance(given, list) else ()
    return {key: (value, line) for key, found, value in pairs if found}


def _cards(service: dict[str, Any]) -> int | None:
    """Cards that the service reserves."""
    node: Any = service
    for key in ("deploy", "resources", "reservations", "devices"):
        node = node.get(key) if isinstance(node, dict) else None
    if not isinstance(node, list) or not node or not isinstance(node[0], dict):
        return None
    ids = node[0].get("device_ids")
    listed = [one for row in ids for one in str(row).split(",") if one.strip()] if isinstance(ids, list) else None
    count = node[0].get("count") if listed is None else len(listed)
    return count if isinstance(count, int) and count > 0 else None
