"""A serving run made definite: the card as the engine sees it, how the model is spread, what the engine is told."""

from typing import Any, NamedTuple

from estimator.architecture import Architecture
from estimator.catalogue import GpuMatch
from estimator.catalogue.cards import class_middle
from estimator.errors import EstimatorError
from estimator.schema import Parallel, Run, Serving
from estimator.serving.engines import SERVERS
from estimator.serving.facts import GIB, Version, engine_version, facts

ITEMSIZES = {"fp32": 4, "bf16": 2, "fp16": 2}


class Plan(NamedTuple):
    """What the engine is told and what it finds.

    ``total`` bytes of one card (None: none asked about), ``unsure_total`` less where only a size is known, ``taken``
    by others; ``length`` tokens of the longest request, ``users`` of them at once; ``tensor`` ranks share every layer,
    ``stages`` the layers.
    """

    arch: Architecture
    engine: str
    version: Version
    total: int | None
    unsure_total: int
    taken: int
    vendor: str
    card: str
    generation: str
    tensor: int
    stages: int
    fmt: str | None
    itemsize: int
    kv_dtype: str
    length: int
    users: int
    serving: Serving
    rank: int | None
    graphs: bool
    run: Run

    @property
    def ranks(self) -> int:
        """Cards of one replica."""
        return self.tensor * self.stages

    @property
    def amd(self) -> bool:
        """Whether the card is AMD's: ROCm holds more."""
        return self.vendor == "AMD"

    @property
    def least(self) -> "Plan":
        """The plan on the smallest card of its size: what surely fits is judged there."""
        if self.total is None or not self.unsure_total:
            return self
        return self._replace(total=self.total - self.unsure_total, unsure_total=0)

    def details(self, name: str) -> Any:
        """A fact that few runs give."""
        return (self.run.details or {}).get(name)


def plan_of(run: Run, arch: Architecture, gpu: GpuMatch | None) -> Plan:
    """The plan of a run whose defaults are filled."""
    tensor, stages = split_of(run)
    total = total_of(gpu) if gpu else None
    check_split(arch, tensor)
    engine = run.engine or "vllm"
    serving = run.serving or Serving()
    return Plan(
        arch=arch,
        engine=engine,
        version=engine_version(engine, run.stack),
        total=total,
        unsure_total=max(total - gpu.usable_low, 0) if total and gpu and gpu.kind == "class" else 0,
        taken=int((run.reserved_by_others_gib or 0) * GIB),
        vendor=gpu.vendor if gpu else "NVIDIA",
        card=gpu.name if gpu else "",
        generation=gpu.arch if gpu else "Hopper",
        tensor=tensor,
        stages=stages,
        fmt=run.weight_format,
        itemsize=ITEMSIZES.get(str(run.precision), 2),
        kv_dtype=(run.kv_cache.dtype if run.kv_cache else None) or "auto",
        length=int(run.context_len or 1) + int(run.new_tokens or 0),
        users=(run.concurrency or 1) * (run.micro_batch or 1),
        serving=serving,
        rank=run.adapter.rank if run.adapter else None,
        graphs=serving.cuda_graphs is not False,
        run=run,
    )


def total_of(gpu: GpuMatch) -> int:
    """The card's memory as engines print it; for other cards the middle of what torch was seen to report."""
    known = facts()["total_gib"].get(gpu.name)
    if known is None and gpu.kind == "class":
        known = class_middle(round(gpu.nominal_gb))
    return int(known * GIB) if known else (gpu.usable_low + gpu.usable_high) // 2


def split_of(run: Run) -> tuple[int, int]:
    """Tensor-parallel ranks and pipeline stages; several cards without either are tensor parallel in the servers."""
    parallel = run.parallel or Parallel()
    if parallel.tensor * parallel.pipeline > 1 or run.engine not in SERVERS:
        return parallel.tensor, parallel.pipeline
    if parallel.data > 1 or parallel.replicate > 1:
        return 1, 1
    return run.gpu_count or 1, 1


def check_split(arch: Architecture, tensor: int) -> None:
    """Raise where the heads do not divide: the engines refuse to start."""
    heads, kv_heads = arch.heads, arch.kv_heads
    shared = arch.latent is not None or not kv_heads or kv_heads % tensor == 0 or tensor % kv_heads == 0
    if shared and (not heads or heads % tensor == 0):
        return
    fitting = ", ".join(str(n) for n in (1, 2, 3, 4, 5, 6, 7, 8) if heads % n == 0)
    raise EstimatorError(
        f"{heads} attention heads do not divide by tensor parallel size {tensor}, so the engine does not start;"
        f" use one of {fitting}, or pipeline parallel for the rest",
        f"{heads} 个注意力头无法被张量并行数 {tensor} 整除，引擎无法启动；可用 {fitting}，其余卡用流水线并行",
        "parallel.tensor",
    )
