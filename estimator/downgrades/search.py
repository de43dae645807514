"""Single moves with what they come to, and the cheapest chain of moves that fits.

A dearer move is worth more than all cheaper ones together ("try in this order"), so the cheapest chain is found without
trying all sets: moves are added from the cheapest on until the run fits; then, the dearest first, each is taken out
again where it fits without, or made as mild as it may be. This holds because no move that is kept raises the peak.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from estimator.downgrades.around import Around, Outcome
from estimator.downgrades.flags import offered
from estimator.downgrades.hardware import MOST_CARDS, most_cards
from estimator.downgrades.mildest import mildest
from estimator.downgrades.moves import HARDWARE, OFFLOADED, SPARED, Move, Rule, fixed
from estimator.schema import Run

STRONGEST = -1
MOST_HOST = 2 << 40
"""Bytes of host memory beyond which no move goes by itself: few machines have more than 2 TiB."""
USUAL_HOST = {"laptop": 128 << 30, "consumer": 512 << 30, "workstation": 1 << 40}
"""Bytes that computers with such cards may have; what needs more is planned only where no hardware does instead."""
STARTS = (SPARED, (*SPARED, *OFFLOADED), (*SPARED, *OFFLOADED, "qlora"))
"""What a chain is tried without on other hardware: 4-bit weights are not shared out by ZeRO."""
FIXED = ("card", "pool-share")
"""Moves whose one grade depends on the run: in a chain they stay as they were first made."""


class Made(NamedTuple):
    """A move that was made: the run before and after it, and what the run comes to before and after."""

    move: str
    before: Run
    run: Run
    was: Outcome
    outcome: Outcome


class Pick(NamedTuple):
    """A move of a chain and which of its grades, the mildest 0."""

    move: Move
    grade: int = STRONGEST


class Reached(NamedTuple):
    """A chain so far: its picks in the order in which they were made, the run after them and what it comes to."""

    run: Run
    outcome: Outcome
    picks: tuple[Pick, ...] = ()


class Search:
    """The run to be lowered, what it comes to, and the moves from the cheapest on.

    What was worked out is kept by the run's identity: the same moves from the same run give the same objects.
    """

    def __init__(self, run: Run, outcome: Outcome, around: Around, moves: Sequence[Move]) -> None:
        self.run, self.outcome, self.around, self.moves = run, outcome, around, moves
        self.rank = {move.name: place for place, move in enumerate(moves)}
        self._around = around._replace(measure=self.measure)
        self._outcomes: dict[int, tuple[Run, Outcome | None]] = {id(run): (run, outcome)}
        self._grades: dict[tuple[Rule, int], tuple[Run, Sequence[Run]]] = {}
        self.held: Callable[[Outcome], bool] = self.usual
        self.short_of_host = False

    def measure(self, run: Run) -> Outcome | None:
        """What a run comes to; None where it is refused."""
        if id(run) not in self._outcomes:
            found = self.around.measure(run)
            self._outcomes[id(run)] = run, found if found is not None and self._held(found) else None
        return self._outcomes[id(run)][1]

    def _held(self, found: Outcome) -> bool:
        """Whether a computer's own memory holds what it must; where it is not known, as much as servers have."""
        return self.run.host_ram_gib is not None or found.host <= max(MOST_HOST, self.outcome.host)

    def usual(self, found: Outcome) -> bool:
        """Whether computers with such cards usually have the memory of their own that a move asks for."""
        gpu = self.around.gpu
        small = gpu.kind == "class" and most_cards(gpu) == MOST_CARDS["consumer"]
        most = MOST_HOST if self.run.host_ram_gib is not None else USUAL_HOST.get("consumer" if small else gpu.kind)
        enough = found.host <= max(most or MOST_HOST, self.outcome.host)
        self.short_of_host = self.short_of_host or not enough
        return enough

    def grades(self, move: Move, run: Run) -> Sequence[Run]:
        """The runs after a move that the run's framework has switches for, the mildest first."""
        key = move.rule, id(run)
        if key not in self._grades:
            after = move.rule(run, self._around)
            self._grades[key] = run, after if after and offered(after[-1], move.needs) else ()
        return self._grades[key][1]

    def fits(self, run: Run) -> bool:
        """Whether a run surely fits."""
        found = self.measure(run)
        return found is not None and found.fits

    def suits(self, run: Run) -> bool:
        """Whether a run surely fits, and the computer's own memory is what a chain may ask for."""
        found = self.measure(run)
        return found is not None and found.fits and self.held(found)


def singles(search: Search, moves: Iterable[Move]) -> Iterator[Made]:
    """Every move by itself: its mildest grade that fits, else a strong one."""
    for move in moves:
        grades = () if move.last else search.grades(move, search.run)
        if grades and search.measure(grades[-1]) is not None:
            shown = grades[_shown(search, move, grades)]
            found = search.measure(shown)
            if found is not None:
                yield Made(move.name, search.run, shown, search.outcome, found)


def _shown(search: Search, move: Move, grades: Sequence[Run]) -> int:
    """The mildest grade that fits, else a strong one."""
    if len(grades) > 1 and search.fits(grades[-1]):
        return mildest(len(grades), lambda grade: (grades[grade], search.measure(grades[grade])))
    return len(grades) - 1 if move.bold else (len(grades) - 1) // 2


def chain(search: Search) -> list[Made]:
    """The cheapest chain that surely fits; empty where there is none.

    First on the card as it is; where nothing fits it, on the least hardware, with the job as it was asked; last with
    more of the computer's own memory than such computers have.
    """
    return _chain(search, search.usual) or (_chain(search, lambda found: True) if search.short_of_host else [])


def _chain(search: Search, held: Callable[[Outcome], bool]) -> list[Made]:
    search.held = held
    moves = [move for move in search.moves if not move.alone]
    start = Reached(search.run, search.outcome)
    found = _until_it_fits(search, [move for move in moves if move.name not in HARDWARE], start)
    if not found.outcome.fits and (alone := _one_that_fits(search)) is not None:
        return [alone]
    if not found.outcome.fits:
        starts = [_kept(search, found.picks, names) or start for names in STARTS]
        found = _on_hardware(search, [move for move in moves if move.name in HARDWARE], starts) or found
    return _told(search, _no_more_than_needed(search, found.picks)) if found.outcome.fits else []


def _on_hardware(search: Search, moves: list[Move], starts: list[Reached]) -> Reached | None:
    """The chain with the cheapest hardware that holds the run: more of the cards or another, never both.

    What waits in the computer's memory may stand in the way of more cards: it is tried without, too.
    """
    tried = (_with(search, reached, move) for move in moves for reached in starts)
    return next((one for one in tried if one is not None and one.outcome.fits), None)


def _one_that_fits(search: Search) -> Made | None:
    """A move that does it alone, where a cheaper one stands in its way: a 4-bit base is not streamed from the host."""
    moves = [move for move in search.moves if not move.alone and move.name not in HARDWARE]
    fitting = (made for made in singles(search, moves) if made.outcome.fits)
    return next((made for made in fitting if search.held(made.outcome)), None)


def _kept(search: Search, picks: tuple[Pick, ...], without: tuple[str, ...]) -> Reached | None:
    """The chain without some moves."""
    picks = tuple(pick for pick in picks if pick.move.name not in without)
    run = _run(search, picks)
    found = search.measure(run)
    return Reached(run, found, picks) if found is not None else None


def _until_it_fits(search: Search, moves: list[Move], reached: Reached) -> Reached:
    waiting: list[Move] = []
    for move in moves:
        if reached.outcome.fits:
            break
        after = _with(search, reached, move)
        if after is None:
            waiting.append(move)
            continue
        reached, waiting = _with_more(search, after, waiting)
    return reached


def _with_more(search: Search, reached: Reached, waiting: list[Move]) -> tuple[Reached, list[Move]]:
    """What saved nothing before a dearer move may save something after it."""
    left = []
    for move in waiting:
        after = None if reached.outcome.fits else _with(search, reached, move)
        reached = after or reached
        if after is None:
            left.append(move)
    return reached, left


def _with(search: Search, reached: Reached, move: Move) -> Reached | None:
    grades = search.grades(move, reached.run)
    found = search.measure(grades[-1]) if grades else None
    if found is None or not search.held(found) or not (found.helps(reached.outcome) or found.fits):
        return None
    pick = Pick(fixed(move, grades[-1]) if move.last or move.name in FIXED else move)
    return Reached(grades[-1], found, (*reached.picks, pick))


def _no_more_than_needed(search: Search, picks: tuple[Pick, ...]) -> tuple[Pick, ...]:
    """The chain without what it fits without, and the rest as mild as it may be, the dearest first."""
    for move in sorted((pick.move for pick in picks), key=lambda move: -search.rank[move.name]):
        place = next(index for index, pick in enumerate(picks) if pick.move.name == move.name)
        without = (*picks[:place], *picks[place + 1 :])
        picks = without if search.suits(_run(search, without)) else _milder(search, picks, place)
    return picks


def _milder(search: Search, picks: tuple[Pick, ...], place: int) -> tuple[Pick, ...]:
    """The chain with the mildest grade of one move with which it still fits."""
    before, move, after = picks[:place], picks[place].move, picks[place + 1 :]
    count = len(search.grades(move, _run(search, before)))
    if count < 2:
        return picks

    def look(grade: int) -> tuple[Run, Outcome | None]:
        run = _run(search, (*before, Pick(move, grade), *after))
        return run, search.measure(run) if search.suits(run) else None

    grade = mildest(count, look)
    return (*before, Pick(move, grade), *after)


def _run(search: Search, picks: Sequence[Pick]) -> Run:
    """The run after a chain; a move that does not apply any more is left out."""
    run = search.run
    for pick in picks:
        run = _after(search, run, pick)
    return run


def _after(search: Search, run: Run, pick: Pick) -> Run:
    grades = search.grades(pick.move, run)
    return grades[min(pick.grade, len(grades) - 1)] if grades else run


def _told(search: Search, picks: tuple[Pick, ...]) -> list[Made]:
    """The chain step by step, the cheapest first as long as none raises the peak; empty where it does not fit."""
    made: list[Made] = []
    run, outcome = search.run, search.outcome
    left = sorted(picks, key=lambda pick: search.rank[pick.move.name])
    while left:
        pick = next((one for one in left if _lowers(search, run, outcome, one)), left[0])
        after = _after(search, run, pick)
        found = search.measure(after)
        if found is None:
            return []
        if after is not run:
            made.append(Made(pick.move.name, run, after, outcome, found))
        run, outcome = after, found
        left.remove(pick)
    return made if outcome.fits else []


def _lowers(search: Search, run: Run, outcome: Outcome, pick: Pick) -> bool:
    found = search.measure(_after(search, run, pick))
    return found is not None and found.allocated <= outcome.allocated
