"""How a training run is spread: cards, nodes, engine, sharding, offload."""

import re
from math import prod

from bot.reading.draft import Draft
from bot.reading.facts import Fact
from bot.reading.scalars import switch, words_of

STRATEGIES = {
    "1": 3, "full_shard": 3, "2": 2, "shard_grad_op": 2, "3": 0, "no_shard": 0, "4": 3, "hybrid_shard": 3, "5": 2,
    "hybrid_shard_zero2": 2, "_hybrid_shard_zero2": 2, "ddp": 0, "optim_grads_params": 3, "optim_grads": 2, "optim": 1,
}  # fmt: skip
HYBRID = frozenset({"4", "5", "hybrid_shard", "hybrid_shard_zero2", "_hybrid_shard_zero2"})
AXES = ("tensor", "pipeline", "context", "expert")
PLACES = {"cpu": "cpu", "nvme": "nvme", "none": "none", "true": "cpu", "false": "none", "disk": "nvme"}


def settle_spread(draft: Draft) -> None:
    """``parallel``, ``offload``, ``gpu_count`` and ``nodes`` of a training run."""
    _axes(draft)
    count = _count(draft)
    if count:
        draft.put("gpu_count", *count)
    draft.copy("nodes", "nodes")
    _engine(draft)
    _sharding(draft)
    _data(draft)
    _offload(draft)


def _axes(draft: Draft) -> None:
    for axis in AXES:
        found = draft.facts.stated(axis)
        if found and found.value > 1:
            draft.put(f"parallel.{axis}", found.value, found)
    if draft.on("sequence"):
        draft.copy("parallel.sequence", "sequence")
    draft.copy("parallel.schedule", "schedule")
    replicate = draft.facts.stated("replicate")
    if replicate and replicate.value > 1:
        draft.put("parallel.replicate", replicate.value, replicate)
    _virtual(draft)


def _virtual(draft: Draft) -> None:
    """Megatron's interleaving: stages per rank, or layers per stage."""
    stages, per_stage = draft.facts.stated("virtual_stages"), draft.facts.stated("layers_per_stage")
    layers, pipeline = draft.facts.get("shape_layers"), draft.facts.get("pipeline") or 1
    if stages:
        draft.put("parallel.virtual_stages", stages.value, stages)
    elif per_stage and layers and layers % (pipeline * per_stage.value) == 0:
        draft.put("parallel.virtual_stages", layers // pipeline // per_stage.value, per_stage)


def _count(draft: Draft) -> tuple[int, *tuple[Fact, ...]] | None:
    """All cards of all machines, and what says so."""
    facts = draft.facts
    total, each, nodes = facts.stated("procs"), facts.best("procs_per_node"), facts.best("nodes")
    visible = visible_cards(draft)
    if total and not (each and each.rank):
        return total.value, total
    if each and each.rank:
        count = each.value * (nodes.value if nodes else 1)
        if visible and draft.tool.framework == "ms-swift" and visible.value > count:
            return visible.value, visible
        return count, *(one for one in (each, nodes) if one and one.rank)
    by_axes = _product(draft)
    if by_axes:
        return by_axes
    if visible:
        stated = nodes if nodes and nodes.rank else None
        return visible.value * (stated.value if stated else 1), visible, *((stated,) if stated else ())
    if each:
        return each.value * (nodes.value if nodes else 1), each
    return None


def visible_cards(draft: Draft) -> Fact | None:
    """How many cards a list such as CUDA_VISIBLE_DEVICES or --include leaves."""
    for name in ("visible", "include", "docker_gpus"):
        found = draft.facts.stated(name)
        if found is None:
            continue
        if name == "include":
            count = len(
                [one for host in str(found.value).split("@") for one in host.partition(":")[2].split(",") if one]
            )
        elif name == "docker_gpus":
            count = found.value
        else:
            listed = words_of(str(found.value) if isinstance(found.value, int) else found.value)
            count = len(listed) if listed and listed[0] != "all" else 0
        if count > 0:
            return Fact(count, found.key, found.line, found.rank, found.source)
    return None


def _product(draft: Draft) -> tuple[int, *tuple[Fact, ...]] | None:
    """Cards by the sizes of all axes, where the sharded one is stated."""
    shard = draft.facts.stated("shard")
    if shard is None or shard.value < 1:
        return None
    axes = [one for name in ("tensor", "pipeline", "context", "replicate") if (one := draft.facts.stated(name))]
    return shard.value * prod(one.value for one in axes), shard, *axes


def _engine(draft: Draft) -> None:
    name, origin = _engine_of(draft)
    if name:
        draft.put("parallel.engine", name, origin)


def _engine_of(draft: Draft) -> tuple[str | None, Fact | str | None]:
    kind = draft.facts.stated("distributed_type")
    word = str(kind.value).upper().rsplit(".", 1)[-1] if kind else ""
    own = _own_engine(draft)
    if own:
        return own
    zero = draft.facts.stated("deepspeed", "ds_batch", "ds_global", "ds_bf16", "ds_fp16", "zero")
    if zero and zero.value is not False:
        return "deepspeed", draft.facts.stated("zero") or zero
    if word == "DEEPSPEED":
        draft.has("deepspeed")
        return "deepspeed", kind
    fsdp = _fsdp(draft)
    if word == "FSDP" or fsdp:
        draft.has("fsdp")
        version = draft.facts.best("fsdp_version")
        by_launcher = fsdp is not None and fsdp.source == "accelerate" and not draft.facts.stated("fsdp_version")
        named = version.value if version and version.value in (1, 2) and not by_launcher else 1
        return f"fsdp{named}", fsdp if by_launcher else version or fsdp or kind
    if word == "MEGATRON_LM":
        return "megatron", kind
    several = int(draft.run.get("gpu_count", 1)) > 1 and not draft.unseen
    if several and draft.tool.task == "train" and (draft.named("procs", "procs_per_node") or draft.tool.visible_ranks):
        return "ddp", kind or draft.default("several processes, no sharding")
    return _device_map(draft)


def _fsdp(draft: Draft) -> Fact | None:
    """What turns FSDP on: words, a list or true; empty ones leave it off."""
    found = draft.facts.stated("fsdp", "fsdp_strategy")
    if found is None or switch(found.value) is False or (isinstance(found.value, list) and not found.value):
        return (
            draft.facts.stated("fsdp_version", "fsdp_offload", "fsdp_reshard")
            if draft.tool.framework == "axolotl"
            else None
        )
    return found


def _own_engine(draft: Draft) -> tuple[str, Fact | str] | None:
    """Engines that a tool brings itself."""
    count = int(draft.run.get("gpu_count", 1))
    name, framework = draft.tool.name, draft.tool.framework
    if name in ("megatron", "ms-swift megatron"):
        return "megatron", draft.facts.stated("megatron_sharding") or draft.default("its own engine")
    if name in ("openrlhf", "DeepSpeed-Chat"):
        return "deepspeed", draft.facts.best("zero") or draft.default("deepspeed")
    if framework == "verl":
        return _verl(draft)
    alone = draft.run.get("gpu_count") == 1
    if framework == "torchtitan" and not alone:
        return "fsdp2", draft.default("fully_shard (FSDP2)")
    if framework == "torchtune" and (count > 1 or draft.facts.get("distributed")):
        return "fsdp2", draft.default("fully_shard (FSDP2)")
    if framework == "fsdp_qlora":
        return "fsdp1", draft.default("FSDP1")
    if framework == "litgpt" and count > 1:
        adapted = draft.run.get("method") in ("lora", "qlora")
        return ("fsdp2" if adapted else "fsdp1"), draft.default("several devices")
    return None


def _verl(draft: Draft) -> tuple[str, Fact | str]:
    found = draft.facts.best("verl_strategy")
    word = str(found.value) if found else "fsdp"
    name = {"fsdp": "fsdp1", "fsdp2": "fsdp2", "megatron": "megatron"}.get(word, "fsdp1")
    return name, found or draft.default("strategy fsdp")


def _device_map(draft: Draft) -> tuple[str | None, Fact | None]:
    found = draft.facts.stated("device_map")
    spread = found is not None and str(found.value) in ("auto", "balanced", "balanced_low_0", "sequential")
    return ("device_map", found) if spread and int(draft.run.get("gpu_count", 1)) > 1 else (None, None)


def _sharding(draft: Draft) -> None:
    engine = draft.run.get("parallel.engine")
    if engine == "deepspeed":
        draft.copy("parallel.zero", "zero")
    elif engine == "megatron":
        if draft.on("distributed_optimizer"):
            draft.put("parallel.zero", 1, draft.facts.best("distributed_optimizer"))
        sharding = draft.facts.stated("megatron_sharding")
        if sharding:
            draft.put("parallel.zero", STRATEGIES.get(str(sharding.value).lower()), sharding)
    elif engine in ("fsdp1", "fsdp2"):
        _fsdp_sharding(draft)
    buckets = draft.facts.stated("bucket_elements")
    half = draft.run.get("precision", "deepspeed-bf16") != "fp32"
    if buckets and engine == "deepspeed":
        draft.put("parallel.bucket_bytes", buckets.value * (2 if half else 4), buckets)


def _fsdp_sharding(draft: Draft) -> None:
    """FULL_SHARD is stage 3, SHARD_GRAD_OP 2; FSDP2 says it by resharding after the forward."""
    strategy, reshard = draft.facts.best("fsdp_strategy"), draft.facts.stated("fsdp_reshard")
    listed = draft.facts.stated("fsdp")
    names = [word.lower() for word in words_of(listed.value)] if listed and not isinstance(listed.value, bool) else []
    word = next((one for one in names if one in STRATEGIES), "")
    origin: Fact | str | None = listed if word else None
    if strategy and (strategy.rank or not word):
        word, origin = str(strategy.value).lower().rsplit(".", 1)[-1], strategy
    off = reshard is not None and switch(reshard.value) is False
    if reshard and str(reshard.value).lower() in STRATEGIES and switch(reshard.value) is None:
        word, origin = str(reshard.value).lower(), reshard
    if draft.run["parallel.engine"] == "fsdp2" and (strategy is None or not strategy.rank):
        word = word or "full_shard"
        stage = 2 if off else STRATEGIES.get(word, 3)
        origin = reshard if off else origin
    else:
        stage = 2 if off and word in ("", "full_shard", "1") else STRATEGIES.get(word, 3)
    draft.put("parallel.zero", stage, origin or draft.default("full shard"))
    if reshard and switch(reshard.value) is not None:
        draft.put("parallel.reshard_after_forward", switch(reshard.value), reshard)
    if word in HYBRID and (draft.facts.get("nodes") or 1) > 1 and "parallel.replicate" not in draft.run:
        draft.put("parallel.replicate", draft.facts.get("nodes"), origin)


def _data(draft: Draft) -> None:
    count = draft.run.get("gpu_count")
    ranks = draft.facts.stated("procs_per_node")
    if ranks and draft.tool.framework == "ms-swift" and count and ranks.value < count and not draft.facts.get("nodes"):
        draft.put("parallel.data", ranks.value, ranks)  # each rank spreads its model over several cards
        return
    if not count or draft.run.get("parallel.engine") == "device_map":
        return
    spread = prod(draft.run.get(f"parallel.{axis}", 1) for axis in ("tensor", "pipeline", "context", "replicate"))
    sized = draft.facts.stated("tensor", "pipeline", "context") is not None
    if count % spread:
        keys = [one.key for axis in ("tensor", "pipeline", "context", "replicate") if (one := draft.facts.stated(axis))]
        draft.clash("not_divisible", *keys, _written(draft), total=count, parts=spread)
    elif count > 1 or sized:
        draft.put("parallel.data", count // spread, draft.origins["gpu_count"])


def _written(draft: Draft) -> str:
    return re.sub(r" \(line \d+\)", "", draft.origins["gpu_count"])


def _offload(draft: Draft) -> None:
    for field, fact in (("optimizer", "offload_optimizer"), ("parameters", "offload_params")):
        found = draft.facts.stated(fact)
        place = PLACES.get(str(found.value).lower()) if found else None
        if place and place != "none":
            draft.put(f"offload.{field}", place, found)
    both = draft.facts.best("offload_both")
    fsdp = draft.facts.best("fsdp_offload")
    listed = draft.facts.stated("fsdp")
    if listed and not isinstance(listed.value, bool) and "offload" in words_of(listed.value):
        fsdp = Fact(True, listed.key, listed.line, listed.rank, listed.source)
    for found in (both, fsdp):
        if found and found.value is True:
            draft.put("offload.parameters", "cpu", found)
            draft.put("offload.optimizer", "cpu", found)
    activations = draft.facts.best("activation_offload")
    if activations and activations.value is True:
        draft.put("offload.activations", "cpu", activations)
