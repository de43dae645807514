"""config.json and adapter_config.json of the hub: the model itself, and an adapter of one."""

from typing import Any

from bot.reading.entries import Piece
from bot.reading.facts import FILE, Fact, Facts

SOURCE = "config.json"


def note_hub_config(facts: Facts, piece: Piece) -> None:
    """The keys as the model, the stored type as the weights' type."""
    config: dict[str, Any] = {one.key: one.value for one in piece.entries if "." not in one.key and "[" not in one.key}
    facts.put("hub_config", Fact(config, "config.json", piece.line, FILE, SOURCE))
    for entry in piece.entries:
        if entry.key in ("torch_dtype", "dtype"):
            facts.note("hub_dtype", entry, FILE, SOURCE)


def note_adapter_config(facts: Facts, piece: Piece) -> None:
    """Peft's adapter_config.json: the base, the rank and the linears."""
    specs = {
        "base_model_name_or_path": "model", "r": "rank", "lora_dropout": "dropout", "target_modules": "targets",
        "use_dora": "use_dora", "task_type": "lora_task",
    }  # fmt: skip
    for entry in piece.entries:
        if entry.key in specs:
            facts.note(specs[entry.key], entry, FILE, "adapter_config.json")
    facts.put("use_peft", Fact(True, "peft_type", piece.line, FILE, "adapter_config.json"))
    facts.put("adapter_config", Fact(True, "peft_type", piece.line, FILE, "adapter_config.json"))
