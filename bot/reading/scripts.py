"""Which calls of a Python script matter, and what they state."""

import re
from dataclasses import dataclass

from bot.reading.entries import Entry, Piece
from bot.reading.facts import FILE, Fact, Facts
from bot.reading.tables import Tool, tool

UNSLOTH = re.compile(r"Fast(?:Language|Vision|Text|)Model\.(?:from_pretrained|get_peft_model)$")
STAGES = {
    "SFT": "sft", "DPO": "dpo", "GRPO": "grpo", "KTO": "kto", "ORPO": "orpo", "CPO": "simpo", "Reward": "reward",
    "PPO": "ppo", "RLOO": "grpo",
}  # fmt: skip
_TRL = re.compile(r"(SFT|DPO|GRPO|KTO|ORPO|CPO|Reward|PPO|RLOO)(Config|Trainer)$")
MODELS = re.compile(
    r"(?:Auto|Fast)?\w*(?:Model|LM|ForSequenceClassification|ForConditionalGeneration)\w*\.from_pretrained$"
)
OTHERS = re.compile(r"(?:Tokenizer|Processor|PeftModel|PeftConfig|AutoConfig|GenerationConfig|FeatureExtractor)")
ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")
CHECKED = frozenset((*ARGUMENTS, "LoraConfig", "BitsAndBytesConfig"))
ADAPTERS = frozenset({"LoraConfig", "get_peft_model"})


@dataclass(frozen=True, slots=True)
class Script:
    """The tool of a script, the call that shows it, and the calls whose keywords are checked."""

    tool: Tool
    how: str
    checked: tuple[str, ...] = ()


def script_tool(calls: list[str]) -> Script | None:
    """The tool that a script's calls belong to; None for a script about something else."""
    last = [name.rsplit(".", 1)[-1] for name in calls]
    if fast := next((name for name in calls if UNSLOTH.search(name)), None):
        checked = tuple(one for one in last if one in ARGUMENTS or (_TRL.search(one) and one.endswith("Config")))
        return Script(tool("unsloth"), fast, checked)
    if "LLM" in last and not any(_TRL.search(name) for name in last):
        return Script(tool("vllm"), "LLM(…)", ("LLM",))
    if "Llama" in last or "Llama.from_pretrained" in calls:
        return Script(tool("llama.cpp"), "Llama(…)")
    matters = next((name for name in calls if _matters(name)), None)
    checked = tuple(
        dict.fromkeys(one for one in last if one in CHECKED or (_TRL.search(one) and one.endswith("Config")))
    )
    return Script(tool("python"), matters, checked) if matters else None


def _matters(name: str) -> bool:
    last = name.rsplit(".", 1)[-1]
    known = last in (
        *ARGUMENTS,
        *ADAPTERS,
        "BitsAndBytesConfig",
        "prepare_model_for_kbit_training",
        "Trainer",
        "pipeline",
    )
    return known or bool(_TRL.search(last)) or (bool(MODELS.search(name)) and not OTHERS.search(name))


def framework_of(calls: frozenset[str]) -> str:
    """What a hand-written script trains with."""
    if any(_TRL.search(name) for name in calls):
        return "trl"
    return "peft" if calls & ADAPTERS else "transformers"


def scripted(facts: Facts, found: Tool, piece: Piece) -> None:
    """Note every keyword that the tool's table knows, and what the presence of a call says."""
    for entry in piece.entries:
        _keyword(facts, found, entry)
    for name in piece.words:
        _presence(facts, name.rsplit(".", 1)[-1], name, piece.line)


def _keyword(facts: Facts, found: Tool, entry: Entry) -> None:
    """Note one keyword of a call, or what a dict given as one holds."""
    call, _, key = entry.key.rpartition(".")
    if call.endswith("from_pretrained"):
        if OTHERS.search(call) or not MODELS.search(call):
            return
        call = "from_pretrained"
    if isinstance(entry.value, dict):
        _nested(facts, found, entry, key)
    elif spec := _spec(found, call, key):
        facts.note(spec, entry, FILE, found.name)


def _spec(found: Tool, call: str, key: str) -> str | None:
    """The fact that a keyword of a call states: by the call's own key, or by the key alone for a config."""
    own = found.keys.get(f"{call}.{key}")
    if own is not None or key.isdigit():
        return own
    if call == "Llama":
        return LLAMA.get(key) or found.keys.get(key)
    config = call in (*ARGUMENTS, "LLM", "EngineArgs") or (_TRL.search(call) and call.endswith("Config"))
    return found.keys.get(key) if config else None


LLAMA = {
    "model_path": "model", "n_ctx": "cache_tokens", "n_gpu_layers": "gpu_layers", "n_ubatch": "ubatch",
    "filename": "hf_file", "repo_id": "hf_repo",
}  # fmt: skip


def _nested(facts: Facts, found: Tool, entry: Entry, key: str) -> None:
    """``model_init_kwargs={"torch_dtype": …}``, ``fsdp_config={…}``, ``deepspeed={…}``, ``device_map={"": 0}``."""
    if key == "deepspeed":
        facts.put("deepspeed", Fact(True, entry.name, entry.line, FILE, found.name))
        table = tool("deepspeed")
        for name, spec in table.keys.items():
            value = entry.value
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            if value is not None and spec:
                facts.note(spec, Entry(name, value, entry.line, f"deepspeed.{name}"), FILE, table.name)
        return
    prefix = "from_pretrained" if key in ("model_init_kwargs", "model_kwargs") else key
    for name, value in entry.value.items():
        meant = found.keys.get(f"{prefix}.{name}")
        if meant:
            facts.note(meant, Entry(f"{key}.{name}", value, entry.line, f"{key}.{name}"), FILE, found.name)


def _presence(facts: Facts, last: str, name: str, line: int) -> None:
    """What a call says by being there."""
    trl = _TRL.search(last)
    if trl:
        facts.put("stage", Fact(STAGES[trl[1]], name, line, FILE, "script"))
    if last in ADAPTERS:
        facts.put("use_peft", Fact(True, name, line, FILE, "script"))
    if last in ("prepare_model_for_kbit_training", "prepare_model_for_int8_training"):
        facts.put("kbit_prepare", Fact(True, name, line, FILE, "script"))
        if "kbit_checkpointing" not in facts.found:
            facts.put("kbit_checkpointing", Fact(True, f"default of {last}", line, FILE, "script"))
    if last == "gradient_checkpointing_enable":
        facts.put("checkpointing_call", Fact(True, name, line, FILE, "script"))
