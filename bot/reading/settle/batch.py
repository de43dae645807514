"""Micro-batch, accumulation and lengths: what each tool counts, brought to sequences, pairs and prompts per rank."""

from math import prod

from bot.reading.draft import Draft
from bot.reading.facts import Fact


def settle_batch(draft: Draft) -> None:
    """``micro_batch``, ``grad_accum``, ``seq_len`` and what goes with them."""
    micro = draft.facts.best("batch", "ds_batch")
    if draft.on("batch_open"):
        micro = None
    if micro and draft.run.get("stage") == "grpo" and _counts_completions(draft):
        _prompts(draft, micro)
    elif micro:
        draft.put("micro_batch", micro.value, micro)
    _accumulation(draft)
    _length(draft)
    if draft.tool.framework != "verl" or draft.run.get("stage") != "grpo":
        _agreement(draft)


def _counts_completions(draft: Draft) -> bool:
    return draft.tool.completions or draft.tool.framework in ("trl", "unsloth", "axolotl")


def _prompts(draft: Draft, micro: Fact) -> None:
    """Completions over generations; a batch that holds only part of a prompt's completions is one prompt in parts."""
    generations = draft.facts.best("generations")
    each = generations.value if generations else 1
    draft.put("micro_batch", max(1, micro.value // each), micro, generations)
    if micro.value % each:
        draft.put("details.rows_in_forward", micro.value, micro)


def _accumulation(draft: Draft) -> None:
    stated = draft.facts.best("grad_accum", "ds_grad_accum")
    if stated and stated.rank:
        draft.put("grad_accum", stated.value, stated)
    elif "micro_batch" not in draft.run and draft.facts.stated("ds_global"):
        _alone(draft)
    elif not _divided(draft) and stated:
        draft.put("grad_accum", stated.value, stated)


def _divided(draft: Draft) -> bool:
    """The global batch over the micro-batches of all ranks; False where one of them is not known."""
    total, micro = draft.facts.best("global_batch", "ds_global"), draft.facts.best("batch", "ds_batch")
    ranks = _ranks(draft)
    if not total or not micro or not ranks or draft.run.get("stage") in ("grpo", "ppo"):
        return False
    each = micro.value * ranks
    if total.value % each == 0:
        draft.put("grad_accum", total.value // each, total, micro)
    elif total.rank:
        draft.clash("batch_not_divisible", total.key, micro.key, total=total.value, micro=micro.value, ranks=ranks)
    return True


def _alone(draft: Draft) -> None:
    """DeepSpeed with only the global batch: one step of total / ranks."""
    total, ranks = draft.facts.best("ds_global"), _ranks(draft)
    if total and ranks and total.value % ranks == 0:
        draft.put("grad_accum", 1, total)
        draft.put("micro_batch", total.value // ranks, total)


def _ranks(draft: Draft) -> int | None:
    """Data-parallel ranks, when the cards are known."""
    if "parallel.data" in draft.run:
        return int(draft.run["parallel.data"]) * int(draft.run.get("parallel.replicate", 1))
    count = draft.run.get("gpu_count")
    return (
        int(count) // prod(draft.run.get(f"parallel.{one}", 1) for one in ("tensor", "pipeline", "context"))
        if count
        else None
    )


def _length(draft: Draft) -> None:
    prompt, completion = draft.facts.best("prompt_len"), draft.facts.best("completion_len")
    online = draft.run.get("stage") in ("grpo", "ppo")
    if online and prompt and completion:
        draft.put("seq_len", prompt.value + completion.value, prompt, completion)
    elif not online or draft.named("seq_len"):
        draft.copy("seq_len", "seq_len")
    packing, neat = draft.facts.best("packing"), draft.facts.best("neat_packing")
    chosen = neat if neat and neat.value is True else packing
    if chosen:
        draft.put("packing", chosen.value, chosen)


def _agreement(draft: Draft) -> None:
    """DeepSpeed's file against the trainer's arguments, which transformers refuses when they differ."""
    for own, file in (("batch", "ds_batch"), ("grad_accum", "ds_grad_accum")):
        one, other = draft.facts.stated(own), draft.facts.stated(file)
        if one and other and one.value != other.value:
            draft.clash("differ", other.key, one.key, one=other.value, other=one.value)
    total, micro, steps = draft.facts.stated("ds_global"), draft.run.get("micro_batch"), draft.run.get("grad_accum")
    ranks = _ranks(draft)
    if total and micro and steps and ranks and total.value != micro * steps * ranks:
        parts = [one.key for name in ("ds_batch", "batch") if (one := draft.facts.stated(name))][:1]
        draft.clash("global_differs", total.key, *parts, total=total.value, micro=micro, steps=steps, ranks=ranks)
