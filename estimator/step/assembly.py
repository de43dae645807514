"""Puts the traced pieces of a step in the order of the real model, alike layers as one repeated segment."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from estimator.step.program import Compiler, Kind, Program, Segment
from estimator.step.tape import Tape

Events = tuple[int, ...]


class Recording(NamedTuple):
    """A traced step: allocation kinds, and phase, events and repeats of its pieces in order."""

    kinds: tuple[Kind, ...]
    pieces: tuple[tuple[str, Events, int], ...]

    def resized(self, sizes: Mapping[int, int]) -> "Recording":
        """The recording with these bytes per row in the place of others; kinds that become alike become one."""
        numbers: dict[Kind, int] = {}
        places = [
            numbers.setdefault((rows, sizes.get(size, size), item, scope), len(numbers))
            for rows, size, item, scope in self.kinds
        ]
        if len(numbers) == len(places):
            return Recording(tuple(numbers), self.pieces)
        places += [~place for place in reversed(places)]  # a free is the complement of its kind
        moved = {events: tuple(map(places.__getitem__, events)) for _, events, _ in self.pieces}
        return Recording(tuple(numbers), tuple((phase, moved[events], times) for phase, events, times in self.pieces))

    def program(self) -> Program:
        """The finished program."""
        compiler = Compiler(self.kinds)
        segments: list[Segment] = []
        for phase, events, times in self.pieces:
            stretch = compiler.stretch(events)
            last = segments[-1] if segments else None
            if last is not None and last.stretch is stretch and last.phase == phase:
                segments[-1] = Segment(phase, stretch, last.repeat + times)
            else:
                segments.append(Segment(phase, stretch, times))
        return compiler.program(segments)


class Builder:
    """Pieces are looked up by phase and segment number; missing ones are empty."""

    def __init__(self, tape: Tape) -> None:
        self.kinds = tuple(tape.kinds)
        self.known = _pieces(tape)
        self.pieces: list[tuple[str, Events, int]] = []

    def one(self, phase: str, number: int, piece: str = "") -> None:
        """Append one piece; ``piece`` names it where it differs from the phase that it counts for."""
        self.many(phase, [number], piece)

    def many(self, phase: str, numbers: Sequence[int], piece: str = "") -> None:
        """Append pieces in order; neighbours that are the same become one."""
        name = piece or phase
        for number in numbers:
            events = self.known.get((name, number))
            if events is None:
                continue
            before, last, times = self.pieces[-1] if self.pieces else ("", None, 0)
            if last is events and before == phase:
                self.pieces[-1] = phase, events, times + 1
            else:
                self.pieces.append((phase, events, 1))

    def recording(self) -> Recording:
        """All pieces."""
        return Recording(self.kinds, tuple(self.pieces))


def _pieces(tape: Tape) -> dict[tuple[str, int], Events]:
    pieces: dict[tuple[str, int], Events] = {}
    for (start, phase, number), (end, _, _) in zip(tape.marks, tape.marks[1:], strict=False):
        pieces[phase, number] = pieces.get((phase, number), ()) + tuple(tape.events[start:end])
    return pieces
