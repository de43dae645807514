"""The changes of a run that the fixes of the entries name: from the filled run to a partial run, or None."""

from collections.abc import Callable
from typing import Any

from estimator.schema import Lengths, Run

Change = dict[str, Any]
Move = Callable[[Run], Change | None]

LEAST_LENGTH = 256
EIGHT_BIT = {"adamw": "adamw-8bit", "paged-adamw-32bit": "paged-adamw-8bit", "lion": "lion-8bit"}
ADAPTED = ("lora", "qlora", "dora")
FULL_CACHE = (None, "auto", "bf16", "fp16", "fp32")


def change_of(name: str, run: Run) -> Change | None:
    """What a move changes in ``run``; None where it does not apply. Raises KeyError for an unknown move."""
    return MOVES[name](run)


def _smaller_batch(run: Run) -> Change | None:
    micro = run.micro_batch or 1
    if run.task != "train" or micro == 1:
        return None
    return {"micro_batch": 1, "grad_accum": micro * (run.grad_accum or 1)}


def _half_length(run: Run) -> Change | None:
    length = run.seq_len.max if isinstance(run.seq_len, Lengths) else run.seq_len
    return {"seq_len": length // 2} if run.task == "train" and length and length // 2 >= LEAST_LENGTH else None


def _checkpointing(run: Run) -> Change | None:
    on = run.gradient_checkpointing in ("full", "offload", True)
    return None if on or run.task != "train" else {"gradient_checkpointing": "full"}


def _chunked_loss(run: Run) -> Change | None:
    return {"loss": "chunked"} if run.task == "train" and run.loss == "standard" else None


def _sdpa(run: Run) -> Change | None:
    return {"attention": "sdpa"} if run.attention == "eager" else None


def _eight_bit_states(run: Run) -> Change | None:
    small = EIGHT_BIT.get(str(run.optimizer))
    return {"optimizer": small, "optimizer_impl": None} if run.task == "train" and small else None


def _fused_optimizer(run: Run) -> Change | None:
    return {"optimizer_impl": "fused"} if run.optimizer_impl in ("foreach", "for-loop") else None


def _qlora(run: Run) -> Change | None:
    if run.task != "train" or run.method == "qlora":
        return None
    return {"method": "qlora", "weight_format": "nf4", "precision": "bf16", "autocast": None, "kbit_prepare": None}


def _lora(run: Run) -> Change | None:
    if run.task != "train" or run.method in ADAPTED:
        return None
    return {"method": "lora", "precision": "bf16", "autocast": None, "adapter": {"rank": 16}}


def _bf16(run: Run) -> Change | None:
    return {"precision": "bf16", "autocast": None} if run.precision == "fp32" else None


def _pure_bf16(run: Run) -> Change | None:
    return None if run.precision == "bf16" or run.task != "train" else {"precision": "bf16", "autocast": None}


def _zero3(run: Run) -> Change | None:
    parallel, count = run.parallel, run.gpu_count or 1
    sharded = parallel is not None and (parallel.zero == 3 or parallel.engine in ("fsdp1", "fsdp2", "megatron"))
    if run.task != "train" or count < 2 or sharded:
        return None
    return {"parallel": {"engine": "deepspeed", "zero": 3, "data": count}}


def _offload_optimizer(run: Run) -> Change | None:
    sharded = run.parallel is not None and run.parallel.engine == "deepspeed"
    return {"offload": {"optimizer": "cpu"}} if run.task == "train" and sharded and _not_yet(run, "optimizer") else None


def _offload_parameters(run: Run) -> Change | None:
    sharded = run.parallel is not None and run.parallel.zero == 3
    return (
        {"offload": {"parameters": "cpu"}} if run.task == "train" and sharded and _not_yet(run, "parameters") else None
    )


def _not_yet(run: Run, part: str) -> bool:
    return run.offload is None or getattr(run.offload, part) == "none"


def _precomputed(run: Run) -> Change | None:
    return {"preference": {"precomputed_logps": True}} if run.stage in ("dpo", "kto") else None


def _served_in_4bit(run: Run) -> Change | None:
    return {"weight_format": "awq-4bit-g128"} if run.task in ("infer", "serve") and not run.weight_format else None


def _fp8_cache(run: Run) -> Change | None:
    return {"kv_cache": {"dtype": "fp8"}} if run.task == "serve" and _full_cache(run) else None


def _q8_cache(run: Run) -> Change | None:
    return {"kv_cache": {"dtype": "q8_0"}} if run.engine == "llama.cpp" and _full_cache(run) else None


def _full_cache(run: Run) -> bool:
    return run.kv_cache is None or run.kv_cache.dtype in FULL_CACHE


def _shorter_context(run: Run) -> Change | None:
    return {"context_len": run.context_len // 2} if run.context_len and run.context_len // 2 >= LEAST_LENGTH else None


def _two_cards(run: Run) -> Change | None:
    if run.task != "serve" or (run.gpu_count or 1) > 1:
        return None
    return {"gpu_count": 2, "parallel": {"tensor": 2}}


MOVES: dict[str, Move] = {
    "smaller_batch": _smaller_batch,
    "half_length": _half_length,
    "checkpointing": _checkpointing,
    "chunked_loss": _chunked_loss,
    "sdpa": _sdpa,
    "adamw_8bit": _eight_bit_states,
    "optimizer_fused": _fused_optimizer,
    "qlora": _qlora,
    "lora": _lora,
    "bf16": _bf16,
    "pure_bf16": _pure_bf16,
    "zero3": _zero3,
    "offload_optimizer": _offload_optimizer,
    "offload_parameters": _offload_parameters,
    "precompute_reference": _precomputed,
    "serve_4bit": _served_in_4bit,
    "kv_fp8": _fp8_cache,
    "kv_q8": _q8_cache,
    "shorter_context": _shorter_context,
    "two_cards": _two_cards,
}

FIELD_OF = {
    "smaller_batch": "micro_batch", "half_length": "seq_len", "checkpointing": "gradient_checkpointing",
    "chunked_loss": "loss", "sdpa": "attention", "adamw_8bit": "optimizer", "optimizer_fused": "optimizer_impl",
    "qlora": "method", "lora": "method", "bf16": "precision", "pure_bf16": "precision", "zero3": "parallel",
    "offload_optimizer": "offload", "offload_parameters": "offload", "precompute_reference": "preference",
    "serve_4bit": "weight_format", "kv_fp8": "kv_cache", "kv_q8": "kv_cache", "shorter_context": "context_len",
    "two_cards": "gpu_count",
}  # fmt: skip
"""The field of a run that a move changes."""
OF_TRAINING = frozenset(
    ("smaller_batch", "half_length", "checkpointing", "chunked_loss", "adamw_8bit", "optimizer_fused", "qlora", "lora",
     "pure_bf16", "zero3", "offload_optimizer", "offload_parameters", "precompute_reference")
)  # fmt: skip
