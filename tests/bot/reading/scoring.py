"""How a reading is held against what is expected: stated fields, defaults, nothing beside them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.reading.read import Reading, flat

CASES = Path(__file__).parents[2] / "data" / "configs.jsonl"
NEUTRAL = {
    "gpu_count": 1, "nodes": 1, "concurrency": 1, "parallel.engine": "none", "parallel.data": 1, "parallel.zero": 0,
    "parallel.replicate": 1, "parallel.tensor": 1, "parallel.context": 1, "parallel.pipeline": 1, "compile": False,
    "packing": False, "autocast": False, "task": "train", "offload.optimizer": "none", "offload.parameters": "none",
    "serving.lora_slots": 0, "adapter.dropout": 0,
}  # fmt: skip
UNCHECKED = re.compile(
    r"(stack\..*|optimizer_impl|gradient_clipping|kbit_prepare|autocast|epochs|samples|vision\..*|adapter\.dtype"
    r"|fused_kernels|parallel\.(bucket_bytes|reshard_after_forward)|details\..*)$"
)
NAMED = {
    "qv": {"q_proj", "v_proj"},
    "qkv": {"q_proj", "k_proj", "v_proj"},
    "attention": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "all-linear": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
}


def cases() -> Iterator[dict[str, Any]]:
    with CASES.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _flat(run: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Expected fields by dotted names; several allowed values stay together."""
    found: dict[str, Any] = {}
    for name, value in run.items():
        if isinstance(value, dict) and "any_of" not in value and prefix + name != "model":
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


def same(field: str, want: Any, got: Any) -> bool:
    if isinstance(want, dict) and "any_of" in want:
        return any(same(field, one, got) for one in want["any_of"])
    if want is None or got is None:
        return want is got
    if field == "model":
        return _same_model(want, got)
    if field == "adapter.targets":
        return _targets(want) == _targets(got)
    if isinstance(want, bool) or isinstance(got, bool) or not isinstance(want, str):
        return bool(want == got) if not isinstance(want, list) else set(want) == set(got)
    return isinstance(got, str) and _plain(want) == _plain(got)


def _same_model(want: Any, got: Any) -> bool:
    if isinstance(want, dict):
        return isinstance(got, dict) and all(got.get(key) == value for key, value in want.items())
    own, other = (_plain(str(one).rsplit("/", 1)[-1].removesuffix(".gguf")) for one in (want, got))
    return own == other or (min(len(own), len(other)) >= 6 and (own.startswith(other) or other.startswith(own)))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower().replace("meta-llama-", "llama-").replace("rtx", ""))


def _targets(value: Any) -> frozenset[str]:
    return frozenset(NAMED.get(value, {value})) if isinstance(value, str) else frozenset(value)


def wrong_in(case: dict[str, Any], reading: Reading) -> list[str]:
    """Everything that differs from what a case expects, defaults included."""
    expect = case["expect"]
    if expect["safe"] == "refuse":
        return [] if reading.error else ["not refused"]
    if reading.error:
        return [] if expect["safe"] == "read_or_error" else [f"error: {reading.error.message}"]
    want, got = _flat(expect["run"]), flat(reading.run)
    wrong = [f"{name}: {value} {got.get(name)}" for name, value in want.items() if not same(name, value, got.get(name))]
    wrong += [
        f"extra {name}: {got[name]}" for name in got if name not in want and _is_extra(expect, reading, name, got)
    ]
    said = " ".join(reading.contradictions)
    wrong += [f"not named: {keys}" for keys in expect["contradictions"] if not all(key in said for key in keys)]
    known = {re.sub(r".*\.|^-+", "", name).replace("-", "_") for name in reading.unknown_keys}
    return wrong + [
        f"unknown: {key}" for key in expect["unknown_keys"] if key.lstrip("-").replace("-", "_") not in known
    ]


def _is_extra(expect: dict[str, Any], reading: Reading, name: str, got: dict[str, Any]) -> bool:
    """Whether a field says what the case neither states nor leaves open."""
    if name in expect.get("optional", {}):
        return not same(name, expect["optional"][name], got[name])
    neutral = name in NEUTRAL and NEUTRAL[name] == got[name]
    default = reading.origins[name].startswith("default")
    return not (neutral or default or UNCHECKED.match(name) or name in expect.get("invalid", []))
