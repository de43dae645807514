"""The parts of an answer that are rows and names rather than sentences."""

import re
from collections import Counter
from collections.abc import Collection
from functools import cached_property
from typing import Any

from bot.answer import Answer
from bot.answers.ledger import Ledger
from bot.answers.quote import quoted
from bot.intake.names import card_name, is_other_release
from bot.texts import name_of, say
from estimator.schema import Assumption, Block, Estimate
from knowledge.reading import entries

_SIZE = re.compile(r"([\d.]+)\s*gi?b?", re.IGNORECASE)
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

TOLD_APART = ("model", "way", "cards", "shape")
"""What several runs may differ in."""


def told_short(one: Assumption) -> bool:
    """Whether a short answer tells the assumption; that one card needs no engine goes without saying."""
    return one.field in WEIGHTY and not (one.field == "parallel.engine" and one.value == "none")


class Describer:
    """Rows and names of one answer in its language."""

    def __init__(self, answer: Answer, ledger: Ledger) -> None:
        self.answer, self.ledger, self.lang = answer, ledger, answer.lang

    def entries(self) -> list[dict[str, str]]:
        """Title and text of the entries that answer the question."""
        found = [entries()[one] for one in self.answer.entries]
        return [{"title": one.title.in_(self.lang), "text": one.body(self.lang).text} for one in found]

    def model(self, index: int) -> str:
        """The model's own name; the bare size that it stands in for is added."""
        run = self._run(index)
        typed, hub_id = run.get("model"), run.get("resolved_model")
        if not isinstance(typed, str):
            return "config.json"
        name = quoted(hub_id.split("/")[-1]) if hub_id else quoted(typed)
        if hub_id and typed[:1].isdigit() and typed.strip().lower().endswith(("b", "m")):
            return name_of(self.lang, "sign", "stand_in").format(model=name, typed=quoted(typed))
        if hub_id and is_other_release(typed):
            return name_of(self.lang, "sign", "same_as").format(model=name, typed=quoted(typed.split("/")[-1]))
        return name

    def unknown_family(self) -> str:
        """That a family is not known, and which model was taken in its stead."""
        model = str(self._run(0).get("resolved_model") or self._run(0).get("model"))
        return say(self.lang, "unknown.family", name=quoted(self.answer.unknown_family), model=quoted(model))

    def way(self, index: int) -> str:
        """Method and precision, or the task where nothing is trained."""
        run = self._filled(index)
        method = run.get("method")
        if run.get("task") in ("infer", "serve"):
            parts = [name_of(self.lang, "task", run["task"]), run.get("weight_format") or run.get("precision") or ""]
        else:
            rank = (run.get("adapter") or {}).get("rank") if method in ("lora", "dora", "qlora") else None
            stage = str(run.get("stage") or "")
            parts = [
                name_of(self.lang, "stage", stage) if stage not in ("", "sft") else "",
                name_of(self.lang, "method", method or "") + (f" r{rank}" if rank else ""),
                self._format(run),
                self._precision(index, run),
            ]
        return " ".join(quoted(part) for part in parts if part)

    def _precision(self, index: int, run: dict[str, Any]) -> str:
        """The type of training; that weights are stored in another is added."""
        told, filled = str(run.get("precision") or ""), self.answer.estimates[index].run
        if filled is None or filled.parallel is None or not filled.parallel.engine.startswith("fsdp"):
            return told
        from estimator.parallel.layouts import kept_in_fp32  # most runs are on one card

        return name_of(self.lang, "sign", "fp32_shards") if kept_in_fp32(filled) else told

    def _format(self, run: dict[str, Any]) -> str:
        """The base's format, unless it is what QLoRA means anyway."""
        stated = str(run.get("weight_format") or "")
        return "" if run.get("method") == "qlora" and stated == "nf4" else stated

    def cards(self, index: int) -> str:
        """How many of which card; empty when none is asked about."""
        run = self._run(index)
        gpu, count = run.get("gpu"), run.get("gpu_count") or 1
        if not gpu:
            return ""
        if isinstance(gpu, list) and len(gpu) == count:
            kinds = Counter(map(self._card, gpu))
            return " + ".join(f"{times} x {name}" if times > 1 else name for name, times in kinds.items())
        name = ", ".join(map(self._card, gpu)) if isinstance(gpu, list) else self._card(gpu)
        return f"{count} x {name}" if count > 1 else name

    def _card(self, name: str) -> str:
        """The card as named; a bare size is told as a size."""
        size = _SIZE.fullmatch(name.strip())
        return name_of(self.lang, "sign", "sized_card").format(size=size[1]) if size else quoted(card_name(name))

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

    def _is_stand_in(self, index: int) -> bool:
        return '"' in self.model(index) or "“" in self.model(index)

    def label(self, index: int) -> str:
        """What tells this run from the others."""
        parts = [getattr(self, name)(index) for name in self._differing or ["way"]]
        return " · ".join(part for part in parts if part)

    def common(self) -> str:
        """What all runs share."""
        shared = [getattr(self, name)(0) for name in TOLD_APART if name not in self._differing]
        return " · ".join(part for part in shared if part)

    @cached_property
    def _differing(self) -> list[str]:
        return [name for name in TOLD_APART if len({getattr(self, name)(index) for index in self._all()}) > 1]

    def shape(self, index: int) -> str:
        """Batch and length as given."""
        run = self._run(index)
        given = [(name, run.get(name)) for name in ("micro_batch", "seq_len", "context_len") if run.get(name)]
        named = [f"{name_of(self.lang, 'field', name)} {value:,}" for name, value in given if isinstance(value, int)]
        return name_of(self.lang, "sign", "comma").join(named)

    def comparison(self) -> list[list[str]]:
        """A row for every run: what it is, its peak, what the card shows, and the verdict."""
        return [self._comparison_row(index) for index in self._all()]

    def _comparison_row(self, index: int) -> list[str]:
        found, path = self.answer.estimates[index], f"estimates[{index}]"
        if found.per_gpu is None:
            return [self.label(index), "-", "-", problem_in(self.lang, found)]
        device = f"{path}.per_gpu.device_peak"
        return [
            self.label(index),
            self.ledger.gib(f"{path}.per_gpu.allocated_peak"),
            f"{self.ledger.gib(f'{device}.low', '')}-{self.ledger.gib(f'{device}.high')}",
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

    def _run(self, index: int) -> dict[str, Any]:
        return self.answer.runs[index]

    def _filled(self, index: int) -> dict[str, Any]:
        """The run with defaults filled where the estimator got that far."""
        run = self.answer.estimates[index].run
        return {**self._run(index), **(run.model_dump(exclude_none=True) if run else {})}

    def _all(self) -> range:
        return range(len(self.answer.estimates))


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
