"""Which tool a file is for: the tool that knows most of its keys, the rare ones counting most."""

from functools import cache

from bot.reading.entries import Entry, Piece
from bot.reading.tables import Tool, tool

CONFIGS = (
    "transformers", "axolotl", "llama-factory", "trl", "ms-swift", "torchtune", "torchtitan", "litgpt", "deepspeed",
    "accelerate", "vllm", "sglang", "verl", "openrlhf",
)  # fmt: skip
"""Tools whose files or flags are told by their keys, the likelier first."""
FLAGS = (*CONFIGS, "megatron", "DeepSpeed-Chat", "fsdp_qlora", "minimind", "tgi", "llama.cpp")
LEAST = 1.0
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
    scores = {name: _score(piece, tool(name)) for name in names}
    best = max(scores, key=lambda name: scores[name], default="")
    return tool(best) if best and scores[best] >= LEAST else None


def _score(piece: Piece, candidate: Tool) -> float:
    """How well a tool fits: a key counts the more, the fewer tools have it; those with a meaning for memory twice."""
    score = 0.0
    for entry in piece.entries:
        if entry.key.startswith("$") or (candidate.nested and "." not in entry.key and isinstance(entry.value, dict)):
            continue
        fact = candidate.fact(entry.key)
        if fact is not None:
            score += (3.0 if fact else 1.0) / _users(entry.key)
        elif "." not in entry.key:
            score -= 0.25
    return score


@cache
def _users(key: str) -> int:
    """How many tools know a key."""
    return max(1, sum(tool(name).fact(key) is not None for name in FLAGS))
