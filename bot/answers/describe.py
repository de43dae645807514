"""The parts of an answer that are rows and names rather than sentences."""

from collections.abc import Collection
from typing import Any

from bot.answer import Answer
from bot.answers.ledger import Ledger
from bot.answers.names import Names
from bot.answers.quote import quoted
from bot.texts import name_of
from estimator.schema import Assumption, Block, Estimate

SMALLEST_SHOWN = 5 * 2**20
"""Blocks below this many bytes would read 0.00 GiB."""

LARGE_PART = 0.02
"""Parts below this share of their block are left out of a short answer."""

ROOM = 0.25
"""A run fits "with room" when this share of the card is left even at the high end."""

OURS = ("micro_batch", "seq_len", "context_len", "new_tokens", "concurrency", "adapter.rank")
"""Assumptions that no framework makes, told together."""

WEIGHTY = (
    "context_len",
    "framework",
    "engine",
    "parallel.engine",
    "precision",
    "loss",
    "gradient_checkpointing",
    "optimizer",
    "weight_format",
)
"""Further assumptions that are told in a short answer; --explain tells all."""


def told_short(one: Assumption) -> bool:
    """Whether a short answer tells the assumption; that one card needs no engine goes without saying."""
    return one.field in WEIGHTY and not (one.field == "parallel.engine" and one.value == "none")


class Describer(Names):
    """Rows and names of one answer in its language."""

    def __init__(self, answer: Answer, ledger: Ledger) -> None:
        super().__init__(answer)
        self.ledger = ledger

    def entries(self) -> list[dict[str, str]]:
        """Title and text of the entries that answer the question."""
        if not self.answer.entries:
            return []
        from knowledge.reading import entries  # most answers are figures alone

        found = [entries()[one] for one in self.answer.entries]
        return [{"title": one.title.in_(self.lang), "text": one.body(self.lang).text} for one in found]

    def roomy(self, index: int) -> bool:
        """Whether plenty is left on the card."""
        found = self.answer.estimates[index]
        high, usable = found.per_gpu and found.per_gpu.device_peak.high, found.fit.usable
        return bool(high and usable and high <= (1 - ROOM) * usable)

    def breakdown(self, index: int, everything: bool = False) -> list[list[str]]:
        """What lives at the peak: item, size, and the reason in figures."""
        blocks = self.answer.estimates[index].per_gpu.at_peak  # type: ignore[union-attr]
        path = f"estimates[{index}].per_gpu.at_peak"
        rows = []
        for number, block in enumerate(blocks):
            if everything or block.bytes >= SMALLEST_SHOWN:
                rows += self._block_rows(f"{path}[{number}]", block, everything)
        return rows

    def _block_rows(self, path: str, block: Block, everything: bool) -> list[list[str]]:
        """A block with its reason; where the reason lists the parts, only the large ones, or each in its own row."""
        parts = block.parts or []
        listed = parts and all(part.why in block.why for part in parts)
        large = [number for number, part in enumerate(parts) if part.bytes >= LARGE_PART * block.bytes]
        name, size = name_of(self.lang, "item", block.item), self.ledger.gib(f"{path}.bytes")
        if not everything:
            reasons = [f"{path}.parts[{number}]" for number in large] if listed else [path]
            return [[name, size, name_of(self.lang, "sign", "semicolon").join(map(self._why, reasons))]]
        inner = [f"{path}.parts[{number}]" for number in range(len(parts))]
        return [
            [name, size, "" if listed else self._why(path)],
            *(["", self.ledger.gib(f"{part}.bytes"), "- " + self._why(part)] for part in inner),
        ]

    def _why(self, path: str) -> str:
        """The reason at a path, in the answer's language."""
        chinese = self.lang == "zh" and self.ledger.at(f"{path}.why_zh")
        return self.ledger.words(f"{path}.why_zh" if chinese else f"{path}.why")

    def assumed(self, index: int, fields: Collection[str] | None = None) -> list[str]:
        """What was not given, with its source; what is ours shares the first line."""
        ours, others = [], []
        colon = name_of(self.lang, "sign", "colon")
        for number, one in enumerate(self.answer.estimates[index].assumptions):
            path = f"estimates[{index}].assumptions[{number}]"
            if fields is not None and one.field not in fields:
                continue
            if one.field in OURS and (
                one.field != "context_len" or one.why.startswith("ours: a ") or one.why.endswith(" tokens")
            ):
                ours.append(self._value(path, one))
            elif told_short(one):
                others.append(self._value(path, one) + colon + self._why(path))
        joined = name_of(self.lang, "sign", "comma").join(ours)
        return [*([name_of(self.lang, "sign", "ours").format(values=joined)] if ours else []), *others]

    def assumed_briefly(self, index: int) -> str:
        """What was not given, on one line; most sources stand in the explanation."""
        told = [
            self._value(path, one) + (f" ({self._why(path)})" if _depends_on_more(one) else "")
            for number, one in enumerate(self.answer.estimates[index].assumptions)
            if (one.field in OURS or told_short(one)) and (path := f"estimates[{index}].assumptions[{number}]")
        ]
        return name_of(self.lang, "sign", "comma").join(told)

    def _value(self, path: str, one: Assumption) -> str:
        name = name_of(self.lang, "field", one.field)
        if isinstance(one.value, int) and not isinstance(one.value, bool):
            return f"{name} {self.ledger.count(f'{path}.value')}"
        return f"{name} {quoted(_plainly(one.value))}"

    def every_assumption(self, index: int) -> list[list[str]]:
        """A row for every value that was not given."""
        rows = []
        for number, one in enumerate(self.answer.estimates[index].assumptions):
            path = f"estimates[{index}].assumptions[{number}]"
            rows.append([one.field, quoted(_plainly(one.value)), self._why(path)])
        return rows

    def phases(self, index: int) -> list[list[str]]:
        """The peak of each phase of the step."""
        path = f"estimates[{index}].per_gpu.phases"
        phases = self.answer.estimates[index].per_gpu.phases  # type: ignore[union-attr]
        return [
            [name_of(self.lang, "phase", one.phase), self.ledger.gib(f"{path}[{number}].allocated_peak", fine=True)]
            for number, one in enumerate(phases)
        ]

    def phase_blocks(self, index: int) -> list[tuple[str, str, list[list[str]]]]:
        """What lives at the peak of every phase but the fullest, which is told apart: name, size, rows."""
        found, path = self.answer.estimates[index].per_gpu, f"estimates[{index}].per_gpu.phases"
        assert found is not None
        return [
            (
                name_of(self.lang, "phase", one.phase),
                self.ledger.gib(f"{path}[{number}].allocated_peak", fine=True),
                [
                    row
                    for place, block in enumerate(one.blocks)
                    for row in self._block_rows(f"{path}[{number}].blocks[{place}]", block, True)
                ],
            )
            for number, one in enumerate(found.phases)
            if one.blocks and one.phase != found.peak_phase
        ]

    def counters(self, index: int, names: list[str]) -> list[list[str]]:
        """What the three counters of a card would show."""
        path = f"estimates[{index}].per_gpu"
        spans = ["interval.low", "allocated_peak", "interval.high"]
        spans += [
            f"{counter}.{end}" for counter in ("reserved_peak", "device_peak") for end in ("low", "expected", "high")
        ]
        cells = [self.ledger.gib(f"{path}.{span}", fine=True) for span in spans]
        return [[name, *cells[3 * number : 3 * number + 3]] for number, name in enumerate(names)]

    def alternatives(self, index: int) -> list[tuple[str, str, str | None]]:
        """What the other choice would need where much was assumed: the choice, its peak and its verdict."""
        found, path = self.answer.estimates[index], f"estimates[{index}].alternatives"
        return [
            (
                one.why_zh if self.lang == "zh" else one.why,
                self.ledger.gib(f"{path}[{number}].allocated_peak"),
                one.verdict,
            )
            for number, one in enumerate(found.alternatives)
        ]

    def notes(self, index: int) -> list[str]:
        """What the estimator has to say besides; that a size stands for a model is said with the model's name."""
        notes = self.answer.estimates[index].notes
        told = [number for number, one in enumerate(notes) if one.field != "model" or not self._is_stand_in(index)]
        return [self._why(f"estimates[{index}].notes[{number}]") for number in told]

    def shared_notes(self) -> list[str]:
        """Notes on any of several runs, each once."""
        return list(dict.fromkeys(note for index in self._all() for note in self.notes(index)))

    def comparison(self) -> list[list[str]]:
        """A row for every run: what it is, its peak, what the card shows, and the verdict."""
        return [self._comparison_row(index) for index in self._all()]

    def _comparison_row(self, index: int) -> list[str]:
        found, path = self.answer.estimates[index], f"estimates[{index}]"
        if found.per_gpu is None:
            return [self.label(index), "-", "-", problem_in(self.lang, found)]
        return [
            self.label(index),
            self.ledger.gib(f"{path}.per_gpu.allocated_peak"),
            self.ledger.span(f"{path}.per_gpu.device_peak"),
            name_of(self.lang, "verdict", found.fit.verdict) if found.fit.verdict else self._smallest(index),
        ]

    def last_heading(self, smallest: str) -> str:
        """The heading of the last column: sizes of cards where none was named, else it speaks for itself."""
        return smallest if any(self.answer.smallest_card_gb) else ""

    def _smallest(self, index: int) -> str:
        if not self.answer.smallest_card_gb[index : index + 1] or self.answer.smallest_card_gb[index] is None:
            return name_of(self.lang, "sign", "none_holds")
        return self.ledger.count(f"smallest_card_gb[{index}]", "GB") + " GB"

    def shared_assumptions(self) -> list[str]:
        """Assumptions that are the same in every run that could be estimated."""
        answered = [index for index in self._all() if self.answer.estimates[index].per_gpu]
        kept = [[(one.field, str(one.value)) for one in self.answer.estimates[index].assumptions] for index in answered]
        shared = frozenset(kept[0]).intersection(*kept) if kept else frozenset()
        return self.assumed(answered[0], fields=frozenset(name for name, _ in shared)) if kept else []


def _depends_on_more(one: Assumption) -> bool:
    """Whether a value was taken for what the card or the published weights are, not for a tool's habit."""
    return one.field == "weight_format" or (one.field == "precision" and one.value != "bf16")


def _plainly(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plainly(inner)}" for key, inner in value.items() if inner is not None)
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def problem_in(lang: str, found: Estimate) -> str:
    """Why there is no estimate."""
    if found.error is None:
        return ""
    return quoted(found.error.message_zh if lang == "zh" and found.error.message_zh else found.error.message, 400)
