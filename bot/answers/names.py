"""What the runs of an answer are called: model, method, cards, and what tells one from the others."""

import re
from collections import Counter
from functools import cached_property
from typing import Any

from bot.answer import Answer
from bot.answers.quote import quoted
from bot.intake.names import card_name, is_other_release
from bot.texts import name_of, say

_SIZE = re.compile(r"([\d.]+)\s*gi?b?(?: card)?", re.IGNORECASE)
TOLD_APART = ("model", "way", "cards", "shape", "settings")
"""What several runs may differ in."""


SETTINGS = ("optimizer", "gradient_checkpointing", "attention", "parallel", "kv_cache")
"""Fields of a run that are told where they are set against each other."""
LAYOUTS = {"tensor": "TP", "pipeline": "PP", "context": "CP"}


class Names:
    """Names of an answer's runs in its language."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.lang = answer, answer.lang

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
            kinds = Counter(map(self.card, gpu))
            return " + ".join(f"{times} x {name}" if times > 1 else name for name, times in kinds.items())
        name = ", ".join(map(self.card, gpu)) if isinstance(gpu, list) else self.card(gpu)
        return f"{count} x {name}" if count > 1 else name

    def card(self, name: str) -> str:
        """The card as named; a bare size is told as a size."""
        size = _SIZE.fullmatch(name.strip())
        return name_of(self.lang, "sign", "sized_card").format(size=size[1]) if size else quoted(card_name(name))

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

    def settings(self, index: int) -> str:
        """What else was said of this run and not of the others: optimizer, checkpointing, attention, layout, cache."""
        run = self._run(index)
        told = [self._setting(name, run.get(name)) for name in SETTINGS if self._varies(name)]
        return name_of(self.lang, "sign", "comma").join(quoted(one) for one in told if one)

    def _varies(self, name: str) -> bool:
        return len({repr(self._run(index).get(name)) for index in self._all()}) > 1

    def _setting(self, name: str, value: Any) -> str:
        """The value in a few letters: ZeRO-3, "8-bit AdamW", "KV fp8"."""
        if name == "parallel":
            layout = value or {}
            sizes = [f"{short}{layout[key]}" for key, short in LAYOUTS.items() if (layout.get(key) or 1) > 1]
            engine = f"ZeRO-{layout['zero']}" if layout.get("zero") else str(layout.get("engine") or "").upper()
            return " ".join(part for part in (engine, *sizes) if part)
        if name == "kv_cache":
            return f"KV {(value or {}).get('dtype') or ''}".strip()
        if name == "gradient_checkpointing":
            return name_of(self.lang, "gap", f"gradient_checkpointing {value}") if value else ""
        return str(value or "")

    def _run(self, index: int) -> dict[str, Any]:
        return self.answer.runs[index]

    def _filled(self, index: int) -> dict[str, Any]:
        """The run with defaults filled where the estimator got that far."""
        run = self.answer.estimates[index].run
        return {**self._run(index), **(run.model_dump(exclude_none=True) if run else {})}

    def _all(self) -> range:
        return range(len(self.answer.estimates))

    def _is_stand_in(self, index: int) -> bool:
        return '"' in self.model(index) or "“" in self.model(index)
