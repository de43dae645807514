"""What a tool refuses, or what cannot be true together; each is named by its keys."""

from collections.abc import Callable
from math import prod

from bot.intake.names import model_meant
from bot.reading.draft import Draft
from bot.reading.facts import Fact
from bot.reading.scalars import switch
from bot.reading.settle.spread import visible_cards
from estimator.catalogue import rows

LOW_RANK = ("galore", "apollo", "badam")
FULL_CACHE = ("f16", "bf16", "f32", "auto")


def check(draft: Draft) -> None:
    """Every rule on every run; a rule looks only at what is stated."""
    for rule in RULES:
        rule(draft)


def _both(draft: Draft, one: str, other: str, why: str) -> None:
    """Two switches of which at most one may be on."""
    first, second = draft.facts.stated(one), draft.facts.stated(other)
    if first and second and _is_on(first) and _is_on(second):
        draft.clash(why, first.key, second.key)


def _is_on(fact: Fact) -> bool:
    return fact.value is not False and switch(fact.value) is not False and fact.value not in ("", [])


def _pairs(draft: Draft) -> None:
    _both(draft, "load_4bit", "load_8bit", "one_quant")
    _both(draft, "full_finetuning", "load_4bit", "full_and_quantised")
    _both(draft, "kv_bytes", "share", "overrides")
    _both(draft, "batch_schedule", "global_batch", "one_schedule")
    deepspeed, fsdp = draft.facts.stated("deepspeed"), draft.facts.stated("fsdp")
    if deepspeed and fsdp and _is_on(deepspeed) and _is_on(fsdp):
        draft.clash("one_engine", deepspeed.key, fsdp.key)


def _llama_factory(draft: Draft) -> None:
    pure, tuning, method = (draft.facts.stated(name) for name in ("pure_bf16", "tuning", "method"))
    if pure and pure.value is True and draft.run.get("parallel.zero") == 3:
        found = draft.facts.stated("deepspeed", "zero")
        draft.clash("pure_zero3", pure.key, found.key if found else "deepspeed")
    if draft.tool.name == "llama-factory" and method and method.value in LOW_RANK:
        chosen = tuning or draft.facts.best("tuning")
        if chosen and str(chosen.value) == "lora":
            draft.clash("low_rank_and_lora", method.key, chosen.key)


def _litgpt(draft: Draft) -> None:
    quantised, devices, name = (draft.facts.stated(one) for one in ("quantize", "procs_per_node", "precision_name"))
    if draft.tool.name != "litgpt" or quantised is None:
        return
    if devices and devices.value > 1:
        draft.clash("one_device", quantised.key, devices.key)
    if name and str(name.value).endswith("-mixed"):
        draft.clash("not_mixed", quantised.key, name.key)


def _torchtune(draft: Draft) -> None:
    backward, steps = draft.facts.best("in_backward"), draft.facts.stated("grad_accum")
    if backward and backward.value is True and steps and steps.value > 1:
        draft.clash("in_backward", backward.key, steps.key)
    offload, checkpointing = draft.facts.stated("activation_offload"), draft.facts.best("checkpointing")
    if (
        draft.tool.name == "torchtune"
        and offload
        and offload.value is True
        and draft.run.get("gradient_checkpointing") == "none"
    ):
        draft.clash(
            "offload_needs", offload.key, checkpointing.key if checkpointing else "enable_activation_checkpointing"
        )


def _deepspeed(draft: Draft) -> None:
    zero = draft.facts.stated("zero")
    for name, least in (("offload_params", 3), ("offload_optimizer", 1)):
        found = draft.facts.stated(name)
        if zero and found and zero.value < least and str(found.value).lower() in ("cpu", "nvme"):
            draft.clash("offload_stage", found.key, zero.key, stage=least)
    for own, file in (("bf16", "ds_fp16"), ("fp16", "ds_bf16")):
        one, other = draft.facts.stated(own), draft.facts.stated(file)
        if one and other and switch(one.value) is True and other.value is True:
            draft.clash("one_half", one.key, other.key)
    total, micro, steps = (draft.facts.stated(name) for name in ("ds_global", "ds_batch", "ds_grad_accum"))
    each = prod(one.value for one in (micro, steps) if one)
    if total and micro and total.value % each and "gpu_count" not in draft.run:
        draft.clash(
            "not_multiple", total.key, *(one.key for one in (micro, steps) if one), total=total.value, each=each
        )


def _cards(draft: Draft) -> None:
    """More ranks than visible cards; several processes where none are meant to be."""
    visible, count = visible_cards(draft), draft.run.get("gpu_count")
    nodes = draft.facts.get("nodes") or 1
    if visible and count and nodes == 1 and count > visible.value:
        keys = [one.key for name in COUNTING if (one := draft.facts.stated(name)) and one.value != 1]
        draft.clash("too_few_cards", visible.key, *keys[:2], count=count, visible=visible.value)
    kind, procs = draft.facts.stated("distributed_type"), draft.facts.stated("procs")
    if kind and procs and str(kind.value).upper() == "NO" and procs.value > 1:
        draft.clash("not_distributed", kind.key, procs.key)
    machines = draft.facts.stated("nodes")
    if procs and machines and procs.value < machines.value:
        draft.clash("fewer_than_nodes", procs.key, machines.key)


COUNTING = ("procs", "procs_per_node", "tensor", "rollout_tensor", "pipeline", "data")


def _heads(draft: Draft) -> None:
    """Tensor parallelism splits attention heads evenly."""
    found, name = draft.facts.stated("tensor"), draft.run.get("model")
    if found is None or found.value < 2:
        return
    heads = name.get("num_attention_heads") if isinstance(name, dict) else _heads_of(name)
    stated = draft.facts.stated("shape_heads", "model")
    if isinstance(heads, int) and heads % found.value:
        draft.clash("heads", found.key, stated.key if stated else "model", heads=heads, tensor=found.value)


def _heads_of(name: object) -> int | None:
    known = model_meant(name) if isinstance(name, str) else None
    if known is None or known.family or known.size:
        return None
    heads = rows.model_row(known.hub_id).config.get("num_attention_heads")
    return heads if isinstance(heads, int) else None


def _generations(draft: Draft) -> None:
    """A step's completions are whole groups."""
    batch, each = draft.facts.stated("batch"), draft.facts.stated("generations")
    if draft.run.get("stage") != "grpo" or not batch or not each or draft.tool.framework == "verl":
        return
    counts = draft.tool.completions or draft.tool.framework in ("trl", "unsloth", "axolotl")
    ranks = draft.run.get("gpu_count") or 1
    total = batch.value * ranks * (draft.run.get("grad_accum") or 1)
    if counts and total % each.value:
        draft.clash("generations", batch.key, each.key, total=total, each=each.value)


def _packing(draft: Draft) -> None:
    packing, attention = draft.facts.stated("packing"), draft.facts.stated("attention")
    plain = draft.run.get("attention") in ("eager", "sdpa")
    if draft.tool.name == "ms-swift" and packing and packing.value is True and attention and plain:
        draft.clash("packing", packing.key, attention.key)


def _prefill(draft: Draft) -> None:
    given, prefill = draft.facts.stated("input_len"), draft.facts.stated("max_num_batched_tokens")
    if draft.tool.engine == "tgi" and given and prefill and prefill.value < given.value:
        draft.clash("prefill", prefill.key, given.key)


def _cache(draft: Draft) -> None:
    values, flash = draft.facts.stated("kv_dtype_v"), draft.facts.stated("flash")
    if values and flash and str(flash.value).lower() in ("off", "0", "false") and str(values.value) not in FULL_CACHE:
        draft.clash("cache_flash", values.key, flash.key)


RULES: tuple[Callable[[Draft], None], ...] = (
    _pairs, _llama_factory, _litgpt, _torchtune, _deepspeed, _cards, _heads, _generations, _packing, _prefill, _cache,
)  # fmt: skip
