"""YAML by its events: no object is ever built from a tag, depth and aliases are bounded, each key keeps its line."""

from collections.abc import Iterator
from typing import Any

import yaml

from bot.reading.entries import DEEPEST, MOST_ENTRIES, Entry, Refused
from bot.reading.scalars import plain

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = ("tag:yaml.org,2002:", "!!")
_HARMLESS = frozenset({"str", "int", "float", "bool", "null", "map", "seq", "timestamp", "set", "omap", "merge"})


class _Node:
    """A mapping or list being filled; ``size`` counts the scalars under it, aliases each time."""

    def __init__(self, is_map: bool) -> None:
        self.is_map, self.pairs, self.items, self.size = is_map, [], [], 1  # type: ignore[var-annotated]
        self.key: Any = None

    def add(self, value: Any, line: int) -> None:
        self.size += value.size if isinstance(value, _Node) else 1
        if self.size > MOST_ENTRIES:
            raise Refused("read.too_many", line)
        if not self.is_map:
            self.items.append(value)
        elif self.key is None:
            self.key = (value if isinstance(value, str) else str(value) if not isinstance(value, _Node) else "", line)
        else:
            self.pairs.append((*self.key, value))
            self.key = None


def read_yaml(text: str) -> list[Entry]:
    """The entries of every document. Raises Refused for tags of objects and for bombs, ValueError for broken YAML."""
    try:
        documents = list(_documents(yaml.parse(text, Loader=_LOADER)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1 if mark else 1}") from None
    return [entry for document in documents for entry in _entries(document, "")]


def _documents(events: Iterator[Any]) -> Iterator[_Node]:
    anchors: dict[str, Any] = {}
    stack: list[_Node] = []
    total = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            _place(stack, _scalar(event, line), line, anchors, event.anchor)
        elif isinstance(event, yaml.DocumentStartEvent):
            anchors = {}
        elif isinstance(event, yaml.AliasEvent):
            _place(stack, _aliased(anchors, stack, str(event.anchor), line), line, anchors, None)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            _check_tag(event.tag, line)
            stack.append(_Node(isinstance(event, yaml.MappingStartEvent)))
            _bound(stack, line)
            if event.anchor:
                anchors[event.anchor] = stack[-1]
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = stack.pop()
            if stack:
                stack[-1].add(done, line)
                continue
            total += done.size
            if total > MOST_ENTRIES:
                raise Refused("read.too_many", line)
            yield done


def _bound(stack: list[_Node], line: int) -> None:
    if len(stack) > DEEPEST:
        raise Refused("read.too_deep", line)


def _place(stack: list[_Node], value: Any, line: int, anchors: dict[str, Any], anchor: str | None) -> None:
    if anchor:
        anchors[anchor] = value
    if stack:
        stack[-1].add(value, line)


def _aliased(anchors: dict[str, Any], stack: list[_Node], name: str, line: int) -> Any:
    """What an alias stands for; one that contains itself is a bomb."""
    value = anchors.get(name)
    if any(value is one for one in stack):
        raise Refused("read.too_deep", line)
    return value


def _check_tag(tag: str | None, line: int) -> None:
    """Refuse tags that would build an object; the core types and an application's own plain tags are harmless."""
    if not tag or not tag.startswith(_PLAIN_TAGS):
        return
    if tag.removeprefix(_PLAIN_TAGS[0]).removeprefix("!!") not in _HARMLESS:
        raise Refused("read.tag", line, tag.removeprefix(_PLAIN_TAGS[0])[:60])


def _scalar(event: Any, line: int) -> Any:
    _check_tag(event.tag, line)
    return plain(event.value) if event.implicit[0] else event.value


def _entries(node: _Node, path: str) -> list[Entry]:
    """Entries of a mapping, those in lists left out; a merge key ``<<`` brings those that the mapping lacks."""
    if not node.is_map:
        return []
    own = [pair for pair in node.pairs if pair[0] != "<<"]
    merged = [pair for key, _, value in node.pairs if key == "<<" for pair in _merged(value)]
    names = {pair[0] for pair in own}
    found: list[Entry] = []
    for key, line, value in [*own, *(pair for pair in merged if pair[0] not in names)]:
        dotted = f"{path}.{key}" if path else key
        found.append(Entry(dotted, _value(value), line))
        if isinstance(value, _Node):
            found += _entries(value, dotted)
    return found


def _merged(value: Any) -> list[tuple[str, int, Any]]:
    if not isinstance(value, _Node):
        return []
    if value.is_map:
        return [pair for pair in value.pairs if pair[0] != "<<"]
    return [pair for one in value.items for pair in _merged(one)]


def _value(value: Any) -> Any:
    if not isinstance(value, _Node):
        return value
    if value.is_map:
        return {key: _value(inner) for key, _, inner in value.pairs if key != "<<"}
    return [_value(one) for one in value.items]
