"""From readings to runs: every combination that is asked about, each with only what the message said."""

import math
import re
from itertools import pairwise, product
from typing import Any

from bot.intake.clauses import by_clause
from bot.intake.economics import economics_of
from bot.intake.hardware import Hardware
from bot.intake.models import named_models
from bot.intake.names import full_card_name, model_meant, nearest_sized, plain_card_name
from bot.intake.quantities import billions
from bot.intake.settled import BITS, ENGINE_OF_CACHE, OF_TRAINING, settled
from bot.intake.sheet import Sheet
from bot.intake.stages import ONLINE, stage_fields
from bot.intake.tokens import tokenize
from estimator.serving.engines import SERVERS
from estimator.step.quantised import BITSANDBYTES_4BIT

Fields = dict[str, Any]

_WITHOUT_SIZE = re.compile(r" \(\d+GB\)$")
"""What the catalogue's name ends with where cards of several sizes go by it: Ascend 910B (64GB)."""
MOST_RUNS = 8
TRAINING_METHODS = ("full", "lora", "qlora")
LEAST_SHOWN = 0.9
"""Of a card's memory, what its driver may show: 11 GB of a K80's 12, 22 of an A10G's 24."""
SAME_CARD = 0.05
"""Stated and marketed memory this close mean one card: an H20 of 96 or 98 GB."""
SERVING = ("gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "n_gpu_layers", "ubatch", "moe_on_cpu",
           "lora_slots")  # fmt: skip
"""Fields of ``serving`` that a message may name."""
PLAIN = (
    "stage", "precision", "optimizer", "gradient_checkpointing", "attention", "loss", "framework", "engine",
    "grad_accum", "concurrency", "new_tokens", "host_ram_gib", "samples", "epochs", "tokens", "hours",
    "price_usd_per_hour", "reserved_by_others_gib", "optimizer_impl",
)  # fmt: skip
SHARDING: dict[str, Fields] = {
    "zero0": {"engine": "ddp"},
    "zero1": {"engine": "deepspeed", "zero": 1},
    "zero2": {"engine": "deepspeed", "zero": 2},
    "zero3": {"engine": "deepspeed", "zero": 3},
    "deepspeed": {"engine": "deepspeed"},
    "fsdp": {"engine": "fsdp2"},
    "fsdp1": {"engine": "fsdp1"},
    "ddp": {"engine": "ddp"},
    "device_map": {"engine": "device_map"},
}


RIVALS = ("zero1", "zero2", "zero3", "fsdp", "fsdp1", "ddp")
"""Ways to shard that are told apart where one is set against another."""


def spoken_runs(sheet: Sheet) -> list[Fields]:
    """The runs that the message itself describes, before history and open readings are added."""
    shared = _shared_fields(sheet)
    parts: dict[str, list[Fields]] = {
        "models": [{"model": name} for name in named_models(sheet)] or [{}],
        "methods": [{"method": name} for name in _methods(sheet)] or [{}],
        "hardware": _hardware(sheet),
        "formats": [{"weight_format": name} for name in sheet.values("weight_format")] or [{}],
        "shapes": _shapes(sheet),
        "layouts": _layouts(sheet, shared),
        "optimizers": [{"optimizer": name} for name in sheet.values("optimizer")] or [{}],
        "caches": _caches(sheet),
        "ranks": [{"adapter": {"rank": rank}} for rank in _ranks(sheet)] or [{}],
        **{name: _rivals(sheet, name) for name in ("precision", "gradient_checkpointing", "attention")},
    }
    chosen = product(*by_clause(sheet, parts))
    runs: list[Fields] = [{**shared, **dict(pair for part in one for pair in part.items())} for one in chosen]
    return _with_shards_where_spread(runs[:MOST_RUNS])


def _with_shards_where_spread(runs: list[Fields]) -> list[Fields]:
    """Of runs on one card and on several, those on one are spread over nothing: "7b fsdp on 4 of them, 13b on one"."""
    counts = [run.get("gpu_count") or 1 for run in runs]
    alone = [max(counts, default=1) > 1 == count for count in counts]
    return [
        {name: value for name, value in run.items() if name != "parallel"} if one else run
        for run, one in zip(runs, alone, strict=True)
    ]


def _ranks(sheet: Sheet) -> list[int]:
    """Ranks of the adapter; several only where they are set against each other."""
    ranks: list[int] = sheet.values("rank")
    return ranks if sheet.against else ranks[-1:]


def _rivals(sheet: Sheet, name: str) -> list[Fields]:
    """The values of a field that are set against each other: "bf16 vs fp32"."""
    values = sheet.values(name)
    return [{name: value} for value in values] if sheet.against and len(values) > 1 else [{}]


def _layouts(sheet: Sheet, shared: Fields) -> list[Fields]:
    """Ways to lay a model out over cards that stand against each other: "2x tp4 or 1x tp8", "zero2 or zero3"."""
    shardings = [SHARDING[name] for name in sheet.values("parallelism") if name in RIVALS]
    if sheet.against and len(shardings) > 1:
        return [{"parallel": {**shared.get("parallel", {}), "zero": 0, **one}} for one in shardings]
    layouts: list[Fields] = sheet.values("layout")
    parallel = {name: size for name, size in shared.get("parallel", {}).items() if not layouts or name != "tensor"}
    return [{"parallel": {**parallel, **one}, "gpu_count": math.prod(one.values())} for one in layouts] or [{}]


def _methods(sheet: Sheet) -> list[str]:
    """Stated methods; "lora, qlora" about one run means the more special one."""
    methods: list[str] = sheet.values("method")
    galore = [name for name in methods if name not in ("full",)]
    return galore if {"galore", "apollo", "lomo", "badam"} & set(methods) else methods


def _shared_fields(sheet: Sheet) -> Fields:
    fields: Fields = {}
    for name in PLAIN:
        if values := sheet.values(name):
            fields[name] = values[-1]
    fields |= _switches(sheet)
    if special := [stage for stage in sheet.values("stage") if stage != "sft"]:
        fields["stage"] = special[-1]  # SFT beside it is what went before, or went well
    if "params_b" in sheet.invalid:
        fields["params_b"] = sheet.values("params_b")[-1]
    if tasks := _tasks(sheet):
        fields["task"] = tasks
    told = stage_fields(sheet)
    if "engine" in told.get("rl", {}):
        fields.pop("engine", None)
    if said := economics_of(sheet):
        fields["economics"] = said
    parallel = _parallel_fields(sheet)
    spread = {"parallel": parallel} if parallel else {}
    return {**fields, **told, **_serving_fields(sheet), **spread, **_offload_fields(sheet)}


def _switches(sheet: Sheet) -> Fields:
    """What is only on or off, and the versions of packages."""
    compiled = {"compile": True} if sheet.values("compile") else {}
    packing, versions = sheet.values("packing"), sheet.values("version")
    packed = {"packing": packing[-1] == "on"} if packing else {}
    return {**compiled, **packed, **({"stack": dict(versions)} if versions else {})}


def _serving_fields(sheet: Sheet) -> Fields:
    """What a serving engine is told: flags of its command, the cache's type."""
    told = {name: values[-1] for name in SERVING if (values := sheet.values(name))}
    caches = sheet.values("kv_dtype")
    one = {"kv_cache": {"dtype": caches[0]}} if len(caches) == 1 else {}
    return {**({"serving": told} if told else {}), **one}


def _caches(sheet: Sheet) -> list[Fields]:
    """Types of the cache that stand against each other."""
    caches = sheet.values("kv_dtype")
    engine = next((ENGINE_OF_CACHE[name] for name in caches if name in ENGINE_OF_CACHE), None)
    of_one = {"engine": engine, "task": "serve" if engine in SERVERS else "infer"}
    of_one = of_one if engine and not sheet.values("engine") else {}
    return [{**of_one, "kv_cache": {"dtype": name}} for name in caches] if len(caches) > 1 else [{}]


def _tasks(sheet: Sheet) -> str | None:
    """The task in so many words: serving beats inference beats training, as the last step is what is asked about."""
    tasks = sheet.values("task")
    if any(stage in ONLINE for stage in sheet.values("stage")):  # they generate while they train
        return "train"
    named = next((name for name in ("serve", "infer", "train") if name in tasks), None)
    trained = [name for name in OF_TRAINING if name != "micro_batch"]  # requests are answered in batches, too
    of_cache = sheet.has("cue", value="cache") and not any(sheet.values(name) for name in trained)
    return named or ("infer" if of_cache else None)  # a model that trains keeps no cache


def _parallel_fields(sheet: Sheet) -> Fields:
    fields: Fields = {}
    for name in sheet.values("parallelism"):
        fields.update(SHARDING[name])
    for name in ("data", "tensor", "pipeline", "context", "expert"):
        if sizes := sheet.values(name):
            fields[name] = sizes[-1]
    if sheet.values("sequence") and fields.get("tensor", 1) > 1:
        fields["sequence"] = True
    return fields


def _offload_fields(sheet: Sheet) -> Fields:
    places = sheet.values("offload")
    if not places:
        return {}
    activations = {"activations": "cpu"} if "activations" in places else {}
    if set(places) == {"activations"}:
        return {"offload": activations}
    place = "nvme" if "nvme" in places else "cpu"
    both = "zero3" in sheet.values("parallelism") or not sheet.values("parallelism")
    parameters = {"parameters": place} if both and "optimizer" not in places else {}
    return {"offload": {"optimizer": place, **parameters, **activations}}


JOINERS = frozenset({"+", "&", "and", "plus", "和", "加", "加上", "以及", "与", "跟", "a", "an", "one"})
"""What may stand between the cards of one set; commas and "or" stand between alternatives."""
ADDED = frozenset({"+", "plus", "加"})
"""Those that put cards into one machine whatever else is said."""


def _hardware(sheet: Sheet) -> list[Fields]:
    """The sets of cards; unlike cards that are joined by "+" or "and" are one set where the run is spread over it."""
    parts = sorted((one for one in sheet.readings if one.field == "hardware"), key=lambda one: one.start)
    sets = [_hardware_fields(one) for one in sheet.values("hardware")]
    between = [{word.text for word in sheet.tokens[one.end : other.start]} for one, other in pairwise(parts)]
    added = bool(between) and all(words & ADDED for words in between)
    if len(sets) < 2 or len(sets) != len(parts) or sheet.against or not (added or _is_spread(sheet)):
        return [one for place, one in enumerate(sets) if one not in sets[:place]] or [_count_alone(sheet)]
    if all(words and words <= JOINERS for words in between) and all("gpu" in one for one in sets):
        names = [one["gpu"] for one in sets for _ in range(one.get("gpu_count", 1))]
        return [{"gpu": names, "gpu_count": len(names)}]
    return sets


def _is_spread(sheet: Sheet) -> bool:
    """Whether a way to share a model out over cards is named."""
    return bool(set(sheet.values("parallelism")) & set(SHARDING) or sheet.values("tensor") or sheet.values("pipeline"))


def _hardware_fields(hardware: Hardware) -> Fields:
    fields: Fields = {}
    if hardware.slice:
        fields["gpu"] = f"{hardware.gpu or 'MIG'} {hardware.slice}"
    elif hardware.gpu:
        fields["gpu"] = _card_name(hardware)
    elif hardware.memory_gb:
        fields["gpu"] = f"{hardware.memory_gb:g}GB"
    if hardware.memory_gb:
        fields["memory_gb"] = hardware.memory_gb
    nodes = hardware.nodes or 1
    if hardware.count or nodes > 1:
        fields["gpu_count"] = (hardware.count or 1) * nodes
    if nodes > 1:
        fields["nodes"] = nodes
    return fields


def _count_alone(sheet: Sheet) -> Fields:
    """How many cards, told by a word of its own where no card is: "gpus: 8", 卡数加到 8."""
    counts, nodes = sheet.values("gpu_count"), sheet.values("nodes")
    return {"gpu_count": counts[-1] * (nodes[-1] if nodes else 1)} if counts else {}


def _card_name(hardware: Hardware) -> str:
    """The card as the message has it, with the stated memory where the name alone does not say that."""
    name, stated, card = plain_card_name(str(hardware.gpu)), hardware.memory_gb, hardware.card
    if card is None and stated is not None and not hardware.usable:
        return f"{name} {stated:g}GB"
    if card is None or hardware.usable:
        return name
    if stated is None:
        return full_card_name(name)
    usual = card.memory_gb or 0
    if abs(usual / stated - 1) <= SAME_CARD or usual > stated >= usual * LEAST_SHOWN:
        alone = full_card_name(name) if usual == stated else name
        return f"{name} {usual:g}GB" if card.several_sizes and usual == stated else alone
    return f"{_WITHOUT_SIZE.sub('', name)} {stated:g}GB"


def _shapes(sheet: Sheet) -> list[Fields]:
    """Batch and length: paired when each has as many values, else every combination."""
    batches, lengths = sheet.values("micro_batch"), sheet.values("seq_len")
    named_batches: list[Fields] = [{"micro_batch": value} for value in batches] or [{}]
    named_lengths: list[Fields] = [{"seq_len": value} for value in lengths] or [{}]
    if len(batches) == len(lengths) > 1:
        return [{**batch, **length} for batch, length in zip(named_batches, named_lengths, strict=True)]
    return [{**batch, **length} for batch in named_batches for length in named_lengths]


def with_open_readings(runs: list[Fields]) -> tuple[list[Fields], list[str]]:
    """Each sensible reading of what is left open, and the names of what is open."""
    missing = [name for name in ("task", "method") if any(_lacks(run, name) for run in runs)]
    readings = [reading for run in runs for reading in _readings_of(run)]
    return readings[:MOST_RUNS], missing


def _lacks(run: Fields, name: str) -> bool:
    if name == "task":
        return "task" not in run
    return run.get("task") == "train" and "method" not in run and run.get("stage") != "pretrain"


def _readings_of(run: Fields) -> list[Fields]:
    if "task" not in run:
        training = settled({**run, "task": "train", "method": _usual_method(run)}, False)
        return [settled({**run, "task": "infer"}, False), training]
    if run.get("stage") == "pretrain" and "method" not in run:
        return [settled({**run, "method": "full"}, False)]  # nothing is there yet for adapters to stand on
    if not _lacks(run, "method"):
        return [run]
    if run.get("weight_format"):
        return [settled({**run, "method": _usual_method(run)}, False)]
    return [settled({**run, "method": method}, False) for method in TRAINING_METHODS]


def _usual_method(run: Fields) -> str:
    return "qlora" if run.get("weight_format") in (BITS, *BITSANDBYTES_4BIT) else "lora"


def with_facts(run: Fields) -> Fields:
    """The run with the resolved model and its size."""
    if not isinstance(run.get("model"), str):
        return run
    known = model_meant(run["model"])
    stated = billions_in(run["model"])
    experts = known is not None and "x" in run["model"].lower()  # 8x7b states the size of one of them
    size = known.params_b if known and (experts or not known.size) else stated
    if known is None and is_bare_size(run["model"]) and stated:
        known = nearest_sized(stated)
    return {**run, "params_b": size, "resolved_model": known.hub_id if known else None}


def is_bare_size(name: str) -> bool:
    """Whether a name is nothing but a number of parameters."""
    tokens = tokenize(name)
    size = billions(tokens, 0) if tokens else None
    return size is not None and size.end == len(tokens)


def billions_in(name: str) -> float | None:
    """The parameters that a name states, in billions."""
    tokens = tokenize(name)
    sizes = [size.value for start in range(len(tokens)) if (size := billions(tokens, start))]
    return sizes[0] if sizes else None
