"""The run that a wreck is of, as far as its text says."""

import re
from typing import Any

from bot.intake.runs import with_facts
from bot.intake.settled import OF_TRAINING, settled
from bot.intake.understand import understand
from bot.reading.folders import model_of_folder
from estimator.catalogue import find_gpu, find_model
from estimator.catalogue.cards import cards
from estimator.errors import EstimatorError
from knowledge.logs.reading import Log

Fields = dict[str, Any]

BARE_SIZE = re.compile(r"[\d.]+ ?GB")
GIB = 2**30
EXACT = 0.02
NEAR = 0.1
"""A card's real total is at most this much below its label."""
SERVING = ("serve_start", "serving")
TRAINING = ("backward", "optimizer_step", "after_steps", "resume", "loss")
UTILISATION = ("memory_utilization", "memory-utilization", "memory_utilisation", "memory utilization")


def run_in(log: Log) -> Fields:
    """What the text says of the run; the reading whose card is the one of the message comes first.

    Swap ``_readings`` when config files and launch lines are read as such.
    """
    total = log.message.size("total")
    readings = _readings(log)
    run = max(readings, key=lambda one: _likeness(one, log), default={})
    run = dict(run)
    share = log.message.get("gpu_memory_utilization") or _share(log.lowered)
    if share:
        run["serving"] = {"gpu_memory_utilization": share}
    if share and not run.get("stage"):
        run = {name: value for name, value in run.items() if name not in OF_TRAINING}
        run |= {"task": "serve", "engine": run.get("engine", "vllm")}
    if isinstance(run.get("model"), str):
        run["model"] = model_of_folder(run["model"])
    if "task" not in run:
        task = _task(log)
        run |= {"task": task} if task else {}
    if total and not _is_card(run, total) and (size := _label(total)):
        run["gpu"] = f"{size}GB"
    if run.get("stage"):
        run["task"] = "train"
    if run.get("task") == "train" and "gpu_count" not in run and (cards_seen := _cards_seen(log)) > 1:
        run["gpu_count"] = cards_seen
    return with_facts(settled(run, False)) if run else {}


def _cards_seen(log: Log) -> int:
    """How many cards there are at least, by the ranks that wrote the log."""
    return max(log.ranks, default=0) + 1


def _likeness(run: Fields, log: Log) -> tuple[bool, bool, bool, bool, int]:
    """How well a reading fits: it explains the request, has the message's card, a model, a named card, many tokens."""
    is_card = _is_card(run, log.message.size("total"))
    return (
        _explains(run, log.message.size("tried")),
        is_card,
        bool(run.get("model")),
        _has_named_card(run),
        _tokens(run),
    )


def _explains(run: Fields, tried: int | None) -> bool:
    """Whether the request that failed is as large as one copy of the run's logits."""
    vocabulary = _of_model(run).get("vocabulary") if tried and _tokens(run) > 1 else None
    sizes = [_tokens(run) * vocabulary * width for width in (2, 4)] if vocabulary else []
    return any(abs(size - (tried or 0)) <= EXACT * size for size in sizes)


def _has_named_card(run: Fields) -> bool:
    """Whether the card is named; a bare size may be memory in use as well."""
    return bool(run.get("gpu")) and BARE_SIZE.fullmatch(str(run["gpu"])) is None


def _readings(log: Log) -> list[Fields]:
    """Runs in the words around the error, by the reader of chat messages."""
    question = understand(log.about_the_run())
    named = {run.get("model") for run in question.spoken}
    others = [one.value for one in question.readings if one.field == "model" and one.value not in named]
    return question.spoken + [{**run, "model": model} for model in others for run in question.spoken[:1]]


def _task(log: Log) -> str | None:
    if (
        log.phase in SERVING
        or str(log.message.get("backend")) in ("vllm", "ggml", "sglang")
        or "llm(model" in log.lowered
    ):
        return "serve"
    return "train" if log.phase in TRAINING else None


def _tokens(run: Fields) -> int:
    length = run.get("seq_len") or run.get("context_len") or 0
    return (run.get("micro_batch") or 1) * length if isinstance(length, int) else 0


def _is_card(run: Fields, total: int | None) -> bool:
    """Whether the run's card has about the memory of the message."""
    try:
        found = find_gpu(str(run["gpu"])) if total and run.get("gpu") else None
    except EstimatorError:
        return False
    return bool(found and total and found.usable_low * (1 - NEAR) <= total <= found.usable_high * (1 + NEAR / 2))


def _label(total: int) -> int | None:
    """The size in GB that a card with so many bytes is sold with."""
    sizes = sorted({size for card in cards() for size in card.nominal})
    return next((size for size in sizes if size * GIB * (1 - NEAR) <= total <= size * GIB * 1.01), None)


def _share(lowered: str) -> float | None:
    """The share of the card that a serving engine was told to take."""
    for name in UTILISATION:
        rest = lowered.partition(name)[2][:12].lstrip("`\"' =:")
        digits = rest.split()[0].rstrip(",;.)`\"'") if rest.split() else ""
        try:
            share = float(digits)
        except ValueError:
            continue
        if 0 < share <= 1:
            return share
    return None


def known_of(run: Fields) -> dict[str, Any]:
    """What the catalogue knows of the run's model and card, under the names that the entries use."""
    return {name: value for name, value in {**_of_model(run), **_of_card(run)}.items() if value is not None}


def _of_model(run: Fields) -> dict[str, Any]:
    try:
        found = find_model(run["model"])
    except (EstimatorError, KeyError):
        return {}
    arch = found.architecture
    return {
        "params_b": found.params_total / 1e9,
        "vocabulary": arch.vocab,
        "heads": arch.heads,
        "moe": "yes" if arch.experts else None,
        "vision": "yes" if arch.vision or found.kind == "vlm" else None,
    }


def _of_card(run: Fields) -> dict[str, Any]:
    try:
        found = find_gpu(str(run["gpu"]))
    except (EstimatorError, KeyError):
        return {}
    facts: dict[str, Any] = {"card_total": found.usable_low} if _has_named_card(run) else {}
    if found.vendor == "NVIDIA":
        facts |= {"bf16_native": "yes" if found.bf16 else "no", "flash_attention": "yes" if found.flash_attn2 else "no"}
    return facts
