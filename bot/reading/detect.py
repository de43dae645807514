"""Which tool a file is for: the tool that knows most of its keys, the rare ones counting most."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from bot.reading.entries import Entry, Piece
from bot.reading.tables import Tool, tool

CONFIGS = (
    "transformers", "axolotl", "llama-factory", "trl", "ms-swift", "torchtune", "torchtitan", "litgpt", "deepspeed",
    "accelerate", "vllm", "sglang", "verl", "openrlhf",
)  # fmt: skip
"""Tools whose files or flags are told by their keys, the likelier first."""
FLAGS = (*CONFIGS, "megatron", "DeepSpeed-Chat", "fsdp_qlora", "minimind", "tgi", "llama.cpp")
LEAST = 1.0
PLAIN, OWN_SCRIPT = "transformers", 2.0
"""Someone's own script takes the Trainer's arguments, unless its flags are clearly another tool's."""
TRAINERS = frozenset({"model_name_or_path", "per_device_train_batch_size"})
"""Flags by which a script is one of the Trainer's even where its others are its own."""
MOST_KEYS = 400
SHAPES = frozenset(
    {"hidden_size", "num_hidden_layers", "n_embd", "n_layer", "d_model", "num_attention_heads", "n_head"}
)


def is_hub_config(entries: list[Entry]) -> bool:
    """Whether keys are those of a model's config.json."""
    keys = {one.key for one in entries if "." not in one.key}
    inner = {one.last for one in entries}
    return ("architectures" in keys or "model_type" in keys) and bool(inner & SHAPES or "architectures" in keys)


def is_adapter_config(entries: list[Entry]) -> bool:
    """Whether keys are those of peft's adapter_config.json."""
    keys = {one.key for one in entries}
    return "peft_type" in keys or {"base_model_name_or_path", "r"} <= keys


def tool_of_keys(piece: Piece) -> Tool | None:
    """The tool that knows a piece's keys best; None when none does."""
    names = CONFIGS if piece.form != "command" else FLAGS
    keys = list(islice(_telling(piece), MOST_KEYS))
    scores = {name: _score(keys, tool(name)) for name in names}
    best = max(scores, key=lambda name: scores[name], default="")
    if piece.form == "command" and piece.program.endswith(".py") and scores[best] < scores[PLAIN] + OWN_SCRIPT:
        if TRAINERS & {key for key, _ in keys}:
            return tool(PLAIN)
        best = PLAIN if scores[PLAIN] >= LEAST else best
    return tool(best) if best and scores[best] >= LEAST else None


def _telling(piece: Piece) -> Iterator[tuple[str, bool]]:
    """Distinct keys, and whether each holds a section."""
    seen: set[str] = set()
    for entry in piece.entries:
        if entry.key not in seen and not entry.key.startswith("$") and "[" not in entry.key:
            seen.add(entry.key)
            yield entry.key, isinstance(entry.value, dict)


def _score(keys: list[tuple[str, bool]], candidate: Tool) -> float:
    """How well a tool fits: a key counts the more, the fewer tools have it; those with a meaning for memory thrice."""
    score = 0.0
    for key, is_section in keys:
        if candidate.nested and is_section and "." not in key:
            continue
        fact = candidate.fact(key)
        if fact is not None:
            score += (3.0 if fact else 1.0) / _users(key)
        elif "." not in key:
            score -= 0.25
    return score


@lru_cache(maxsize=4096)
def _users(key: str) -> int:
    """How many tools know a key."""
    return max(1, sum(tool(name).fact(key) is not None for name in FLAGS))
