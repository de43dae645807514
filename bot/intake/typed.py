"""From the options of a command, each typed into its own box, to the question they ask."""

import json
from collections.abc import Mapping
from typing import Any

from bot.intake.doubts import Doubt
from bot.intake.lexicon import lexicon
from bot.intake.names import card_name
from bot.intake.runs import Fields, spoken_runs, with_facts, with_open_readings
from bot.intake.settled import settled
from bot.intake.understand import Question, read_sheet

PLAIN = {
    "batch": "micro_batch",
    "length": "seq_len",
    "precision": "precision",
    "quantisation": "weight_format",
    "checkpointing": "gradient_checkpointing",
    "optimizer": "optimizer",
    "gpus": "gpu_count",
}
"""Options whose value is the value of a field of Run."""
TASKS = ("infer", "serve")
"""Values of the option ``method`` that train nothing."""
LAYOUTS = ("ddp", "zero1", "zero2", "zero3", "zero3 offload", "fsdp", "tp 2", "tp 4", "tp 8", "pp 2", "device_map")
"""Values that the option ``parallelism`` offers; others are read as words."""


def typed_question(given: Mapping[str, Any]) -> Question:
    """The question of options ``model``, ``method``, ``gpu``, ``framework``, ``parallelism`` and those of ``PLAIN``.

    None is needed but the model. What cannot be read is a doubt.
    """
    fields, doubts = typed_fields(given)
    run = settled(fields, False)
    runs, missing = with_open_readings([run])
    missing += [name for name in ("model", "gpu") if not run.get(name)]
    stuck = doubts or not run.get("model")
    return Question(
        reply="clarify" if stuck else "answer",
        question="fit" if run.get("gpu") else "need_memory",
        spoken=[run],
        runs=[with_facts(one) for one in ([run] if stuck else runs)],
        missing=missing,
        doubts=doubts,
    )


def typed_fields(given: Mapping[str, Any]) -> tuple[Fields, list[Doubt]]:
    """The fields of a run that options name, and what cannot be read."""
    fields: Fields = {}
    doubts: list[Doubt] = []
    if model := str(given.get("model") or "").strip():
        fields["model"] = _model(model)
    if method := given.get("method"):
        fields["task" if method in TASKS else "method"] = method
    if gpu := str(given.get("gpu") or "").strip():
        fields.update(_cards(gpu))
    fields.update({field: given[name] for name, field in PLAIN.items() if given.get(name) is not None})
    if framework := given.get("framework"):
        fields["engine" if framework in lexicon().choices("engine") else "framework"] = framework
    if layout := str(given.get("parallelism") or "").strip():
        read = _layout(layout)
        fields.update(read)
        doubts += [] if read else [Doubt("value", "parallelism", layout, LAYOUTS)]
    return fields, doubts


def _model(text: str) -> str | Fields:
    """The name as typed; a pasted ``config.json`` as an object."""
    if not text.startswith("{"):
        return text
    try:
        config = json.loads(text)
    except ValueError:
        return text
    return config if isinstance(config, dict) else text


def _cards(text: str) -> Fields:
    """The catalogue's own name as it is; else the count, memory and name that its words give, such as ``2x4090``."""
    if card_name(text) == text:
        return {"gpu": text}
    runs = spoken_runs(read_sheet(f"gpu:{text}"))
    read: Fields = {name: runs[0][name] for name in ("gpu", "memory_gb", "gpu_count", "nodes") if name in runs[0]}
    return read if len(runs) == 1 and "gpu" in read else {"gpu": text}


def _layout(text: str) -> Fields:
    """How the model is laid over the cards, and what is offloaded."""
    run = spoken_runs(read_sheet(text))[0]
    return {name: run[name] for name in ("parallel", "offload") if name in run}
