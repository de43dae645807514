"""Every move by name, with the fields that its framework must have a switch for."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from estimator.downgrades import hardware, inference, training
from estimator.downgrades.around import Around
from estimator.schema import Run

Rule = Callable[[Run, Around], Sequence[Run]]


class Move(NamedTuple):
    """A way to need less. ``rule`` gives the runs after it, the mildest first; none where it does not apply.

    ``needs`` are the fields that the framework is told. ``alone``: never part of a chain. ``bold``: where no grade
    fits, the strongest is shown, else one halfway. ``last``: only where nothing else holds the run.
    """

    name: str
    rule: Rule
    needs: tuple[str, ...] = ()
    alone: bool = False
    bold: bool = False
    last: bool = False


TRAINING = (
    Move("sdpa", training.sdpa, ("attention",)),
    Move("flash2", training.flash2, ("attention",)),
    Move("fused-loss", training.fused_loss, ("loss",)),
    Move("chunked-loss", training.chunked_loss, ("loss",)),
    Move("fused-optimizer", training.fused_optimizer, ("optimizer_impl",)),
    Move("precomputed-reference", training.precomputed_reference, ("preference.precomputed_logps",)),
    Move("sleep", training.sleep, ("rl.sleep",)),
    Move("share", training.share, ("rl.colocated_share",)),
    Move("shard", hardware.shard, ("parallel.engine",)),
    Move("tensor", hardware.tensor_shared, ("parallel.tensor",), bold=True),
    Move("micro-batch", training.micro_batch, ("micro_batch", "grad_accum"), bold=True),
    Move("adamw-8bit", training.optimizer_8bit, ("optimizer",)),
    Move("bf16", training.bf16, ("precision",)),
    Move("lora", training.lora, ("method",)),
    Move("qlora", training.qlora, ("method",)),
    Move("checkpointing", training.checkpointing, ("gradient_checkpointing",)),
    Move("offload-inputs", training.offload_inputs, ("gradient_checkpointing",)),
    Move("offload-activations", training.offload_activations, ("offload.activations",)),
    Move("paged", training.paged, ("optimizer",)),
    Move("offload-optimizer", hardware.offload_optimizer, ("offload.optimizer",)),
    Move("offload-parameters", hardware.offload_parameters, ("offload.parameters",)),
    Move("galore", training.galore, ("method",), alone=True),
    Move("lomo", training.lomo, ("method",), alone=True),
    Move("rank", training.rank, ("adapter.rank",)),
    Move("length", training.length, ("seq_len",)),
    Move("length", training.completions, ("rl.max_completion_len",)),
    Move("cards", hardware.cards, ("parallel.engine",), bold=True),
    Move("cards", hardware.cards_of_megatron, ("parallel.tensor",), bold=True),
    Move("card", hardware.card),
    Move("cards", partial(hardware.on_larger, hardware.cards), ("parallel.engine",), last=True),
    Move("cards", partial(hardware.on_larger, hardware.cards_of_megatron), ("parallel.tensor",), last=True),
    Move("cards", partial(hardware.on_larger, hardware.cards_by_zero), ("parallel.engine",), last=True),
)
INFERENCE = (
    Move("pool-share", inference.pool_share, ("serving.gpu_memory_utilization",)),
    Move("last-logits", inference.last_logits, ("logits",)),
    Move("sdpa", training.sdpa, ("attention",)),
    Move("flash2", training.flash2, ("attention",)),
    Move("half", inference.half, ("precision",)),
    Move("ubatch", inference.ubatch, ("serving.ubatch",), bold=True),
    Move("batched-tokens", inference.batched_tokens, ("serving.max_num_batched_tokens",)),
    Move("no-graphs", inference.no_graphs, ("serving.cuda_graphs",)),
    Move("kv-8bit", inference.kv_8bit, ("kv_cache.dtype",)),
    Move("kv-4bit", inference.kv_4bit, ("kv_cache.dtype",)),
    Move("users", inference.users, ("concurrency",), bold=True),
    Move("users", inference.batch, ("micro_batch",), bold=True),
    Move("int8", inference.int8, ("weight_format",)),
    Move("fp8", inference.fp8, ("weight_format",)),
    Move("4bit", inference.four_bit, ("weight_format",)),
    Move("gguf", inference.gguf, ("weight_format",)),
    Move("low-bits", inference.low_bits, ("weight_format",)),
    Move("experts-on-cpu", inference.experts_on_cpu, ("serving.moe_on_cpu",)),
    Move("layers-on-cpu", inference.layers_on_cpu, ("serving.n_gpu_layers",), bold=True),
    Move("context", inference.context, ("context_len",)),
    Move("cards", hardware.cards, ("parallel.engine",), bold=True),
    Move("cards", hardware.tensor_parallel, ("parallel.tensor",), bold=True),
    Move("card", hardware.card),
    Move("cards", partial(hardware.on_larger, hardware.cards), ("parallel.engine",), last=True),
    Move("cards", partial(hardware.on_larger, hardware.tensor_parallel), ("parallel.tensor",), last=True),
)


HARDWARE = ("cards", "card")
"""Moves that buy or rent."""
SPARED = ("length", "context", "adamw-8bit", "paged")
"""Moves that change the job, or whose states cannot be sharded: not made where other hardware is needed anyway."""
DECIDED = ("gpu", "gpu_count", "parallel", "micro_batch", "grad_accum", "precision", "autocast")
"""What a move to other cards decides."""
OFFLOADED = ("offload-optimizer", "offload-parameters")
"""Moves that more cards make needless."""


def moves_of(run: Run, ranks: dict[str, int]) -> list[Move]:
    """The moves for what the run does, cheapest class first."""
    moves = TRAINING if run.task == "train" else INFERENCE
    return sorted(moves, key=lambda move: (move.last, ranks[move.name]))


def fixed(move: Move, after: Run) -> Move:
    """A move to other cards, or another share of one, that was decided: it names the same ones whatever the run."""
    if move.last:
        decided = {name: getattr(after, name) for name in DECIDED}
        return move._replace(rule=lambda run, around: (run.model_copy(update=decided),))
    if move.name == "card":
        return move._replace(rule=lambda run, around: (run.model_copy(update={"gpu": after.gpu}),))
    share = after.serving.gpu_memory_utilization if after.serving else None
    return move._replace(rule=lambda run, around: (inference.with_serving(run, gpu_memory_utilization=share),))
