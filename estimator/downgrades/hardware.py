"""Moves to other hardware: more of the same cards, or the smallest card that holds the run."""

from estimator.catalogue.sizes import sizes_gb
from estimator.downgrades.around import Around
from estimator.downgrades.figures import effective_batch
from estimator.downgrades.training import changed
from estimator.schema import Parallel, Run
from estimator.serving.plan import SERVERS

GIB = 1 << 30
COUNTS = (2, 3, 4, 6, 8, 12, 16, 32, 64)
TENSOR_COUNTS = (2, 4, 8, 16)
SHARDED_COUNTS = (2, 4, 8, 16, 32, 64)


def shard(run: Run, around: Around) -> tuple[Run, ...]:
    """Shared-out weights instead of a copy on each of several cards."""
    cards = run.gpu_count or 1
    engine = run.parallel.engine if run.parallel else "none"
    if run.task != "train" or cards == 1 or engine not in ("none", "ddp") or "8bit" in str(run.optimizer):
        return ()
    return tuple(changed(run, parallel=one) for one in _sharded(cards))


def _sharded(cards: int) -> tuple[Parallel, ...]:
    return (Parallel(engine="fsdp2", data=cards, zero=3),)


def cards(run: Run, around: Around) -> tuple[Run, ...]:
    """More of the same cards: layers dealt out in inference, weights and states sharded in training."""
    known = run.gpu_count or 1
    if isinstance(run.gpu, list) or run.engine in SERVERS:
        return ()
    if run.task == "train":
        return tuple(one for count in SHARDED_COUNTS if count > known for one in _trained_on(run, count))
    dealt = Parallel(engine="device_map")
    return tuple(changed(run, gpu_count=count, parallel=dealt) for count in COUNTS if count > known)


def tensor_parallel(run: Run, around: Around) -> tuple[Run, ...]:
    """More of the same cards for a serving engine: every layer shared out among them."""
    known = run.gpu_count or 1
    if run.engine not in SERVERS or isinstance(run.gpu, list):
        return ()
    parallel = run.parallel or Parallel()
    return tuple(
        changed(run, gpu_count=count, parallel=parallel.model_copy(update={"engine": "none", "tensor": count}))
        for count in TENSOR_COUNTS
        if count > known and around.arch.heads % count == 0
    )


def _trained_on(run: Run, count: int) -> tuple[Run, ...]:
    """The run sharded over ``count`` cards with its effective batch; a larger one where its rows do not divide.

    bitsandbytes' 8-bit states and updates inside the backward do not go with FSDP's sharded tensors.
    """
    if "8bit" in str(run.optimizer) or run.method not in ("full", "lora", "dora", "qlora"):
        return ()
    rows = effective_batch(run)
    micro = max(size for size in range(1, (run.micro_batch or 1) + 1) if rows % (count * size) == 0 or size == 1)
    accumulated = -(-rows // (count * micro))
    return tuple(
        changed(run, gpu_count=count, parallel=parallel, micro_batch=micro, grad_accum=accumulated)
        for parallel in _sharded(count)
    )


def card(run: Run, around: Around) -> tuple[Run, ...]:
    """The smallest size of card that surely holds the run; what it needs may grow with the card (a share for vLLM)."""
    found = around.measure(run)
    needed = found.shown[2] + int((run.reserved_by_others_gib or 0) * GIB) if found is not None else None
    larger = (changed(run, gpu=f"{size}GB") for size in sizes_gb(needed)) if needed is not None else iter(())
    return next(((one,) for one in larger if (on_it := around.measure(one)) is not None and on_it.fits), ())
