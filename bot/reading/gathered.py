"""What is gathered from the pieces of a paste while it is read."""

from dataclasses import dataclass, field

from bot.reading.facts import Facts
from bot.reading.tables import Tool

MOST_UNKNOWN = 100
LONGEST_NAME = 100


@dataclass(slots=True)
class Assembled:
    """All facts of a paste, the tool that runs, what identified it, and the keys that nobody knows."""

    facts: Facts = field(default_factory=Facts)
    tool: Tool | None = None
    identified: str = ""
    unknown: list[str] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    task: str = ""
    unseen: str = ""
    repeated: list[tuple[str, str, str]] = field(default_factory=list)


def take_tool(result: Assembled, found: Tool, how: str) -> None:
    """The first tool that trains or serves is the run's; a bare launcher or DeepSpeed's file gives way to it."""
    own = bool(found.framework or found.engine or found.python)
    current = result.tool
    if current is None or (own and not (current.framework or current.engine or current.python)):
        result.tool, result.identified = found, how


def name_unknown(result: Assembled, name: str) -> None:
    """Keep a key that the tool does not know."""
    if name not in result.unknown and len(result.unknown) < MOST_UNKNOWN:
        result.unknown.append(name[:LONGEST_NAME])
