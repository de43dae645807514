"""Messages that hold a config file, a launch line or a serving command: the run is read from it."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.reading.read import Reading

_KEYS = re.compile(r"^[ \t]*[\"']?[a-z][\w.-]*[\"']?[ \t]*[:=][ \t]*\S", re.MULTILINE)
_LAUNCH = re.compile(
    r"^[^\n]{0,120}?\b(?:accelerate|torchrun|deepspeed|python3?|trl|axolotl|llamafactory-cli|swift|megatron|tune|litgpt"
    r"|vllm|sglang|text-generation-launcher|ollama|llama-server|llama-cli|docker|podman|main|server)\b[^\n]{0,2000}?"
    r"(?:[ \t]--?[A-Za-z]|[ \t]\S+=\S|\\$)",
    re.MULTILINE,
)
_CALL = re.compile(r"\b(?:\w*TrainingArguments|\w+Config|FastLanguageModel\.\w+|from_pretrained|LLM|Llama)\(")
_MODELFILE = re.compile(r"^FROM[ \t]+\S+[ \t]*$", re.MULTILINE)
_BEHIND = (
    r"(?P<command>.*\s--?[A-Za-z][\w.-]*(?:[ =](?!(?:on|in|for|with|and|how|can|does|will)\s)[^\s,;，；。]+)?)"
    r"[,;，；。]?\s*(?P<words>(?:(?:on|in|for|with|and|how|can|does|will|what|which|is|why|but|got|gets|fits?|ooms?)\b"
    r"|[\u4e00-\u9fff]|(?<=[，；。,;\s])\d+[ ]?(?:[张块卡台×*]|[xX*]\s?[A-Za-z\d]))\S*[^\n]*)$"
)
"""A command of one line up to its last option, and the words that go on behind it."""
LEAST_KEYS = 3
LEAST_FIELDS = 3
"""Fields that a paste must state beside the tool, or the words are read as a message."""
LONGEST_LOOK = 200_000


def pasted(text: str) -> "Reading | None":
    """The reading of a message that holds a config or command; None for one that is only words."""
    if text.lstrip().startswith("/") or not _may_hold(text[:LONGEST_LOOK]):
        return None
    from bot.reading.read import flat, read_paste  # most messages are only words

    reading = read_paste(_words_apart(text))
    if reading.error:
        return reading if reading.refused else None
    stated = flat(reading.stated)
    told = [name for name in stated if name not in ("task", "framework", "engine", "gpu", "gpu_count", "stage")]
    whole = isinstance(reading.run.get("model"), dict)
    return reading if whole or (reading.tool and len(told) >= LEAST_FIELDS) else None


def _words_apart(text: str) -> str:
    """The words behind a command of one line on a line of their own: "... --max-model-len 8192 on an A100?"."""
    found = None if "\n" in text.strip() else re.match(_BEHIND, text)
    return f"{found['command']}\n{found['words']}" if found else text


def _may_hold(text: str) -> bool:
    """A cheap look, so that a plain question costs nothing."""
    if _LAUNCH.search(text) or _CALL.search(text) or _MODELFILE.search(text):
        return True
    keys = len(_KEYS.findall(text)) + text.count('":')
    return keys >= LEAST_KEYS and ("\n" in text.strip() or text.lstrip().startswith("{"))


def words_of(reading: "Reading", text: str) -> str:
    """The words around a paste; of a message of one line all of it, as its words may be in front, too."""
    return reading.words if "\n" in text.strip() else text


def run_of_paste(reading: "Reading", before: dict[str, Any] | None) -> dict[str, Any]:
    """The run of a paste; the model and cards that it leaves open stay as the conversation had them."""
    run, old = dict(reading.run), before or {}
    cards = () if "gpu" in run else ("gpu", "memory_gb") if "gpu_count" in run else ("gpu", "memory_gb", "gpu_count")
    kept = [name for name in ("model", *cards) if name in old and name not in run]
    return {**{name: old[name] for name in kept}, **run}
