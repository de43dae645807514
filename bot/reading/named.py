"""Files that a paste only names: DeepSpeed's, accelerate's and torchtune's recipes, read by their well-known names."""

import csv
import re
from functools import cache
from pathlib import Path

from bot.reading.entries import Entry
from bot.reading.facts import DEFAULT, NAMED, Fact, Facts
from bot.reading.tables import Tool, tool, words

RECIPES = Path(__file__).parent / "data" / "recipes_torchtune.csv"
_STAGE = re.compile(r"(?:zero|stage|(?<![a-z])z)[_-]?([0-3])(?!\d)", re.IGNORECASE)


def note_named_files(facts: Facts, running: Tool | None, pasted: bool) -> None:
    """What the names of files say; nothing where DeepSpeed's file is in the paste itself."""
    deepspeed = facts.stated("deepspeed")
    if deepspeed and isinstance(deepspeed.value, str) and not pasted:
        _deepspeed(facts, deepspeed, running)
    accelerate = facts.stated("accelerate_file")
    if accelerate and not facts.stated("distributed_type"):
        _accelerate(facts, accelerate)


def _deepspeed(facts: Facts, found: Fact, running: Tool | None) -> None:
    name = str(found.value).rsplit("/", 1)[-1].lower()
    stage = _STAGE.search(name)
    if stage and "zero" not in facts.found:
        _put(facts, "zero", int(stage[1]), found)
    own = running is not None and running.framework == "axolotl" and name in words("zero")["axolotl_cpu_optimizer"]
    parameters = "cpuoffload_params" in name or "cpuoffload_all" in name
    if ("offload" in name and not re.search(r"no[_-]?offload", name)) or own:
        both = parameters or (stage is not None and stage[1] == "3")
        _put(facts, "offload_optimizer", "cpu", found) if "cpuoffload_params" not in name else None
        if both:
            _put(facts, "offload_params", "cpu", found)


def _accelerate(facts: Facts, found: Fact) -> None:
    """Accelerate's files as trl and the alignment handbook name them: deepspeed_zero3, fsdp1, fsdp2, multi_gpu."""
    name = str(found.value).rsplit("/", 1)[-1].lower()
    if stage := _STAGE.search(name):
        _put(facts, "zero", int(stage[1]), found)
        _put(facts, "distributed_type", "DEEPSPEED", found)
        if "offload" in name and not re.search(r"no[_-]?offload", name):
            _put(facts, "offload_optimizer", "cpu", found)
    elif "fsdp" in name:
        _put(facts, "distributed_type", "FSDP", found)
        _put(facts, "fsdp_version", 2 if re.search(r"fsdp[_-]?(?:v)?2", name) else 1, found)
        if "offload" in name and not re.search(r"no[_-]?offload", name):
            _put(facts, "fsdp_offload", True, found)
    elif "multi_gpu" in name or "ddp" in name:
        _put(facts, "distributed_type", "MULTI_GPU", found)


def _put(facts: Facts, name: str, value: object, file: Fact) -> None:
    facts.put(name, Fact(value, f"{file.key} {file.value}, read by its name", file.line, NAMED, file.source))


@cache
def _recipes() -> dict[str, dict[str, str]]:
    with RECIPES.open(encoding="utf-8", newline="") as lines:
        return {row["recipe"]: row for row in csv.DictReader(line for line in lines if not line.startswith("#"))}


def note_recipe(facts: Facts, config: Entry) -> None:
    """The keys of a torchtune recipe lie under what the command overrides; its model is stated by the name."""
    name = str(config.value).removesuffix(".yaml").removeprefix("recipes/configs/")
    row = _recipes().get(name)
    if row is None:
        return
    table = tool("torchtune")
    for key, value in row.items():
        spec = table.keys.get(key)
        if spec and value != "":
            rank = NAMED if spec == "component" else DEFAULT
            line = config.line if rank else 0
            written = f"--config {name}" if rank else key
            facts.note(spec, Entry(key, value, line, written), rank, f"torchtune 0.6.1, recipe {name}")
