"""Puts the traced pieces of a step in the order of the real model, alike layers as one repeated segment."""

from collections.abc import Sequence

from estimator.step.program import Compiler, Program, Segment
from estimator.step.tape import Tape


class Builder:
    """Pieces are looked up by phase and segment number; missing ones are empty."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.compiler = Compiler(tape.kinds)
        self.pieces = _pieces(tape)
        self.segments: list[Segment] = []

    def one(self, phase: str, number: int, piece: str = "") -> None:
        """Append one piece; ``piece`` names it where it differs from the phase that it counts for."""
        self.many(phase, [number], piece)

    def many(self, phase: str, numbers: Sequence[int], piece: str = "") -> None:
        """Append pieces in order; neighbours that are alike become one segment."""
        for number in numbers:
            events = self.pieces.get((piece or phase, number))
            if events is None:
                continue
            stretch = self.compiler.stretch(events)
            last = self.segments[-1] if self.segments else None
            if last is not None and last.stretch is stretch and last.phase == phase:
                self.segments[-1] = Segment(phase, stretch, last.repeat + 1)
            else:
                self.segments.append(Segment(phase, stretch, 1))

    def program(self) -> Program:
        """The finished program."""
        return Program(tuple(self.tape.kinds), self.compiler.rows, tuple(self.segments))


def _pieces(tape: Tape) -> dict[tuple[str, int], tuple[int, ...]]:
    pieces: dict[tuple[str, int], tuple[int, ...]] = {}
    for (start, phase, number), (end, _, _) in zip(tape.marks, tape.marks[1:], strict=False):
        pieces[phase, number] = pieces.get((phase, number), ()) + tuple(tape.events[start:end])
    return pieces
