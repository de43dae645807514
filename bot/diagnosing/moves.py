"""The moves that the fixes of the entries name: each one of the estimator's own, made by itself."""

from collections.abc import Sequence
from typing import NamedTuple

from estimator.regimes import tokens_per_row
from estimator.schema import Run
from estimator.single import Choice, Single, single


def mildest(grades: Sequence[Run]) -> Run:
    """The least change."""
    return grades[0]


def strongest(grades: Sequence[Run]) -> Run:
    """The most that a move does."""
    return grades[-1]


def halved(grades: Sequence[Run]) -> Run:
    """The largest length that is half of what it was or less; of grades in sixteenths from 15 on downwards."""
    lengths = [run.context_len or 0 if run.task != "train" else tokens_per_row(run) for run in grades]
    most = lengths[0] * 16 / 15 / 2
    return next((run for run, length in zip(grades, lengths, strict=True) if length <= most), grades[-1])


class Named(NamedTuple):
    """A fix's move: the estimator's moves that it may be, which of their grades, and the field that it changes."""

    moves: tuple[str, ...]
    field: str
    choose: Choice = mildest
    of_training: bool = False


MOVES: dict[str, Named] = {
    "smaller_batch": Named(("micro-batch",), "micro_batch", strongest, of_training=True),
    "half_length": Named(("length",), "seq_len", halved, of_training=True),
    "checkpointing": Named(("checkpointing",), "gradient_checkpointing", of_training=True),
    "chunked_loss": Named(("fused-loss", "chunked-loss"), "loss", of_training=True),
    "sdpa": Named(("sdpa",), "attention"),
    "adamw_8bit": Named(("adamw-8bit",), "optimizer", of_training=True),
    "optimizer_fused": Named(("fused-optimizer",), "optimizer_impl", of_training=True),
    "qlora": Named(("qlora",), "method", of_training=True),
    "lora": Named(("lora",), "method", of_training=True),
    "bf16": Named(("bf16", "half"), "precision"),
    "pure_bf16": Named(("bf16",), "precision", of_training=True),
    "zero3": Named(("shard",), "parallel", of_training=True),
    "offload_optimizer": Named(("offload-optimizer",), "offload", of_training=True),
    "offload_parameters": Named(("offload-parameters",), "offload", of_training=True),
    "precompute_reference": Named(("precomputed-reference",), "preference", of_training=True),
    "serve_4bit": Named(("4bit",), "weight_format"),
    "kv_fp8": Named(("kv-8bit",), "kv_cache"),
    "kv_q8": Named(("kv-8bit",), "kv_cache"),
    "shorter_context": Named(("context",), "context_len", halved),
    "two_cards": Named(("cards",), "gpu_count"),
}


def made(name: str, run: Run) -> Single | None:
    """A move made in a filled run; None where it does not apply to it, its card or its framework.

    Raises KeyError for an unknown move, EstimatorError for a model or a card that is not known.
    """
    move = MOVES[name]
    if move.of_training and run.task != "train":
        return None
    return single(run, move.moves, move.choose)
