"""One failure: the log, the run that it is of, and that run's estimate, as facts by name."""

import re
from typing import Any

from estimator.schema import Estimate
from knowledge.facts import Facts
from knowledge.logs.reading import Log

VISIBLE = re.compile(r"(?:cuda|hip|ascend(?:_rt)?)_visible_devices ?[=\"': ]+(\d+(?:, ?\d+)*)")
SHAPE = re.compile(r"\b(?:f32|f16|bf16)\[([\d,]{3,60})\]")
SIZES = re.compile(r"(?<![\d.x*])(\d{1,3}(?:\.\d{1,2})?) ?(g|gb|gib)\b(?! (?:card|gpu|vram)| ?(?:的卡|显卡|卡|显存))")
LEAST_SQUARE = 1024
LEAST_VOCABULARY = 20_000
WIDTHS = range(128, 16_385)
"""Widths of layers."""
OTHERS = re.compile(r"process \d+ has [\d.]+ [kmg]ib memory in use")
PROSE = 1200
"""A longer text prints many sizes."""
SAME = 0.04
"""Share by which a size that somebody states may differ from what it is of."""
STATES = ("weights", "adapter", "gradients", "optimizer_states", "master_weights")
SHARDED = ("fsdp1", "fsdp2", "megatron")
PLAIN = ("task", "method", "stage", "engine", "framework", "precision", "micro_batch", "grad_accum", "seq_len",
         "context_len", "params_b", "gradient_checkpointing", "optimizer", "attention", "gpu_count")  # fmt: skip
NAMES = (
    *PLAIN, "phase", "steps_done", "outside", "outside_pytorch", "unused_cache", "others", "need_by_shards",
    "trainable_share", "share_that_is_free", "load_bytes_per_parameter", "logits_16bit", "logits_fp32",
    "attention_scores", "zero", "parallel", "sharded", "offload", "gpu_memory_utilization", "stated_memory", "bits",
    "visible_devices", "card_total", "est_peak", "est_weights", "est_states", "est_activations", "est_logits",
    "est_peak_without_checkpointing", "usable", "vocabulary", "heads", "moe", "vision", "bf16_native",
    "flash_attention", "tensor_fp32", "weights_16bit", "weights_4bit", "weights_saved", "states_bf16", "states_mixed",
    "kv_per_token", "kv_wanted", "kv_pool", "stated_fp32", "square_tensor", "vocabulary_tensor",
    "process_count",
)  # fmt: skip
"""Facts by name, beside the numbers of a message."""
PER_PARAMETER = {"weights_16bit": 2, "weights_4bit": 0.56, "weights_saved": 1.44, "states_bf16": 8, "states_mixed": 16}
BITS = {"nf4": 4, "fp4": 4, "gpt": 4, "awq": 4, "q4_": 4, "int8": 8, "fp8": 8, "q8_": 8, "mxf": 4, "nvf": 4}


def facts_of(log: Log, run: dict[str, Any], found: Estimate | None, known: dict[str, Any]) -> Facts:
    """Facts of a failure. ``known`` is what the service knows of model and card (vocabulary, bf16_native …)."""
    message = {name: value for name, value in log.message.model_dump().items() if isinstance(value, int | float | str)}
    values: dict[str, Any] = {**known, **_run_facts(run), **_estimate_facts(found), **message}
    sources = {name: f"diagnosis.message.{name}" for name in message}
    sources |= dict.fromkeys(_estimate_facts(found), "estimates[0].per_gpu.at_peak")
    values |= {"phase": log.phase, "steps_done": log.steps_done, "visible_devices": _visible(log.lowered)}
    values.setdefault("total", values.get("smi_total") or values.get("card_total"))
    derived = _derived_facts(log, values)
    sources |= {name: f"diagnosis.derived.{name}" for name in derived if name.endswith("_pytorch")}
    sources |= {"outside": "diagnosis.derived.outside_pytorch", "unused_cache": "diagnosis.derived.unused_cache"}
    return Facts({**values, **derived}, sources)


def _run_facts(run: dict[str, Any]) -> dict[str, Any]:
    parallel, offload = run.get("parallel") or {}, run.get("offload") or {}
    facts = {name: run.get(name) for name in PLAIN}
    zero = parallel.get("zero") or (3 if parallel.get("engine") in SHARDED else None)
    facts |= {
        "zero": zero,
        "parallel": parallel.get("engine"),
        "sharded": "yes" if zero == 3 or parallel.get("tensor", 1) > 1 else "no",
        "offload": "yes" if any(place != "none" for place in offload.values()) else None,
        "gpu_memory_utilization": (run.get("serving") or {}).get("gpu_memory_utilization"),
        "stated_memory": int(run["memory_gb"] * 10**9) if run.get("memory_gb") else None,
        "bits": BITS.get(str(run.get("weight_format") or "").lower()[:3]),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _estimate_facts(found: Estimate | None) -> dict[str, Any]:
    if found is None or found.per_gpu is None:
        return {}
    parts: dict[str, int] = {block.item: block.bytes for block in found.per_gpu.at_peak}
    without = [one.allocated_peak for one in found.alternatives if one.change.get("gradient_checkpointing") == "none"]
    facts = {
        "est_peak": found.per_gpu.allocated_peak,
        "est_weights": parts.get("weights"),
        "est_states": sum(parts.get(name, 0) for name in STATES),
        "est_activations": parts.get("activations", 0) + parts.get("recompute", 0),
        "est_logits": parts.get("logits_loss"),
        "est_peak_without_checkpointing": without[0] if without else None,
        "usable": found.fit.usable,
        "kv_per_token": found.serving.kv_bytes_per_token if found.serving else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _derived_facts(log: Log, values: dict[str, Any]) -> dict[str, Any]:
    derived: dict[str, Any] = dict(log.derived)
    total, free, process = values.get("total"), values.get("free"), values.get("process_in_use")
    if "outside_pytorch" in derived:
        derived["outside"] = derived["outside_pytorch"]
    if total and free is not None and process and process <= total:
        derived["others"] = total - free - process
    if values.get("shards_loaded") and values.get("allocated"):
        derived["need_by_shards"] = values["allocated"] * values["shards_total"] // values["shards_loaded"]
    if share := _trainable_share(values):
        derived["trainable_share"] = share
    if total and free is not None:
        derived["share_that_is_free"] = int(100 * free / total) / 100
    if values.get("weights") and values.get("params_b"):
        derived["load_bytes_per_parameter"] = values["weights"] / (values["params_b"] * 10**9)
    if values.get("gpu") or values.get("card_total"):
        derived["gpu_count"] = values.get("gpu_count") or 1
    if _is_fp32_stated(log, values):
        derived["stated_fp32"] = "yes"
    return derived | _seen(log) | _tensors(values) | _by_parameters(values.get("params_b")) | _cache(values)


def _trainable_share(values: dict[str, Any]) -> float | None:
    """The share of the parameters that are trained, as counts or a percentage say it."""
    if values.get("trainable_params") and values.get("all_params"):
        return float(values["trainable_params"] / values["all_params"])
    return values["trainable_percent"] / 100 if values.get("trainable_percent") else None


def _seen(log: Log) -> dict[str, Any]:
    """What shapes and lists of processes in the text say."""
    seen = {
        "square_tensor": "yes" if _is_square(log.lowered) else None,
        "vocabulary_tensor": "yes" if _is_vocabulary(log.message.get("tensor_shape")) else None,
        "process_count": len(OTHERS.findall(log.lowered)) or None,
    }
    return {name: value for name, value in seen.items() if value}


def _is_square(lowered: str) -> bool:
    """Whether a tensor's last two sides are as long as each other, as those of attention scores are."""
    shapes = ([int(side) for side in found[1].split(",") if side] for found in SHAPE.finditer(lowered))
    return any(len(sides) > 2 and sides[-1] == sides[-2] >= LEAST_SQUARE for sides in shapes)


def _is_vocabulary(shape: Any) -> bool:
    """Whether a tensor has the shape of an embedding: a row for each of many words; numbers of tokens are even."""
    return isinstance(shape, list) and len(shape) == 2 and shape[0] >= LEAST_VOCABULARY and shape[1] in WIDTHS


def _is_fp32_stated(log: Log, values: dict[str, Any]) -> bool:
    """Whether a size in the words about a model is what its weights take at four bytes a parameter."""
    billions, card = values.get("params_b"), values.get("stated_memory")
    if not billions or values.get("allocated") or len(log.lowered) > PROSE:
        return False
    sizes = ((float(found[1]), found[2]) for found in SIZES.finditer(log.lowered))
    told = (size * (2**30 if unit == "gib" else 10**9) for size, unit in sizes)
    return any(
        abs(size - 4e9 * billions) <= SAME * size and (not card or abs(size - card) > SAME * card) for size in told
    )


def _cache(values: dict[str, Any]) -> dict[str, int]:
    """Key/value cache: a token's part, what the longest request wants, and what there is."""
    needed, length, tokens = values.get("kv_needed"), values.get("max_model_len"), values.get("kv_tokens")
    each = needed / length if needed and length else values.get("kv_per_token")
    sizes = {"kv_per_token": 1, "kv_wanted": length, "kv_pool": tokens}
    return {name: round(each * count) for name, count in sizes.items() if each and count}


def _by_parameters(billions: float | None) -> dict[str, int]:
    """What a model of so many parameters takes by the usual rules: its weights, and full training with AdamW."""
    if not billions:
        return {}
    return {name: round(billions * 10**9 * width) for name, width in PER_PARAMETER.items()}


def _visible(lowered: str) -> int | None:
    """How many devices CUDA_VISIBLE_DEVICES lists."""
    found = VISIBLE.search(lowered)
    return len(found[1].split(",")) if found else None


def _tensors(values: dict[str, Any]) -> dict[str, int]:
    """Sizes of the tensors that most often are the one which fails."""
    length, batch = values.get("seq_len"), values.get("micro_batch") or 1
    if not isinstance(length, int):
        return {}
    sizes: dict[str, int] = {}
    if vocabulary := values.get("vocabulary"):
        sizes |= {"logits_16bit": batch * length * vocabulary * 2, "logits_fp32": batch * length * vocabulary * 4}
    if heads := values.get("heads"):
        sizes |= {"attention_scores": batch * heads * length**2 * 2}
    return sizes
