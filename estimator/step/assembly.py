"""Puts the traced pieces of a step in the order of the real model, alike layers as one repeated segment."""

from collections.abc import Sequence

from estimator.step.program import Compiler, Program, Segment, Stretch
from estimator.step.tape import Tape


class Builder:
    """Pieces are looked up by phase and segment number; missing ones are empty."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.compiler = Compiler(tape.kinds)
        self.pieces = _pieces(tape)
        self.segments: list[Segment] = []
        self.stretches: dict[tuple[str, int], Stretch | None] = {}

    def one(self, phase: str, number: int, piece: str = "") -> None:
        """Append one piece; ``piece`` names it where it differs from the phase that it counts for."""
        self.many(phase, [number], piece)

    def many(self, phase: str, numbers: Sequence[int], piece: str = "") -> None:
        """Append pieces in order; neighbours that are alike become one segment."""
        for number in numbers:
            stretch = self._stretch(piece or phase, number)
            if stretch is None:
                continue
            last = self.segments[-1] if self.segments else None
            if last is not None and last.stretch is stretch and last.phase == phase:
                self.segments[-1] = Segment(phase, stretch, last.repeat + 1)
            else:
                self.segments.append(Segment(phase, stretch, 1))

    def _stretch(self, piece: str, number: int) -> Stretch | None:
        key = piece, number
        if key not in self.stretches:
            events = self.pieces.get(key)
            self.stretches[key] = None if events is None else self.compiler.stretch(events)
        return self.stretches[key]

    def program(self) -> Program:
        """The finished program."""
        return self.compiler.program(self.segments)


def _pieces(tape: Tape) -> dict[tuple[str, int], tuple[int, ...]]:
    pieces: dict[tuple[str, int], tuple[int, ...]] = {}
    for (start, phase, number), (end, _, _) in zip(tape.marks, tape.marks[1:], strict=False):
        pieces[phase, number] = pieces.get((phase, number), ()) + tuple(tape.events[start:end])
    return pieces
