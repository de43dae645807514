"""How a run lies on its cards when it does not say: one copy a card in training, the layers dealt out in inference."""

from functools import cache, lru_cache

from estimator.errors import EstimatorError
from estimator.schema import Assumption, Engine, Offload, Parallel, Run
from estimator.serving.engines import SERVERS


def with_surroundings(run: Run) -> tuple[Run, list[Assumption]]:
    """The run with its parallelism and offloading, and what was assumed of them."""
    update: dict[str, Parallel | Offload] = {}
    said: list[Assumption] = []
    if run.task == "train":
        run, said = with_engine(run)
    if run.parallel is not None and run.task == "train":
        agreed = agreeing(run.gpu_count or 1, run.parallel)
        run = run if agreed is run.parallel else run.model_copy(update={"parallel": agreed})
    if run.parallel is None or (run.parallel == Parallel() and (run.gpu_count or 1) > 1):
        parallel = update["parallel"] = parallel_of(run.gpu_count or 1, run.task, run.engine, run.framework)
        said.append(TENSOR if parallel.tensor > 1 else _engine(parallel.engine))
    if run.offload is None:
        update["offload"] = ON_THE_CARD
        said.append(NOTHING_OFFLOADED)
    return (run.model_copy(update=update) if update else run), said


def with_engine(run: Run) -> tuple[Run, list[Assumption]]:
    """The run with the engine that its framework brings, or offloading or a stage of ZeRO needs, if none is named."""
    given = run.parallel or Parallel()
    unsaid = given.engine == "none" and (run.parallel is None or "engine" not in given.model_fields_set)
    needed = offloads(run) or given.zero > 0
    if not unsaid or not (needed or each_of(given) > 1):
        return run, []
    own = OF_FRAMEWORK.get(run.framework)
    if own is None and not needed:
        return run, []
    engine, zero = own if own is not None else ("deepspeed", 2)
    said = [_engine(engine) if own is not None else MOVED if offloads(run) else STAGED]
    if engine == "deepspeed" and run.offload is not None and run.offload.parameters != "none":
        zero = 3
    update = {"engine": engine, "zero": given.zero or zero}
    return run.model_copy(update={"parallel": given.model_copy(update=update)}), said


def offloads(run: Run) -> bool:
    """Whether parameters or optimizer states are to wait on the host."""
    return run.offload is not None and {run.offload.optimizer, run.offload.parameters} != {"none"}


def counted(run: Run) -> Run:
    """The run with the number of cards that its layout has, or that it lists, where it says nothing else."""
    if run.gpu_count is not None:
        return run
    spread = each_of(run.parallel) * run.parallel.data if run.parallel else 1
    cards = spread if spread > 1 else len(run.gpu) if isinstance(run.gpu, list) else 1
    return run.model_copy(update={"gpu_count": cards}) if cards > 1 else run


def each_of(parallel: Parallel) -> int:
    """Cards that hold one copy of the data's share."""
    return parallel.replicate * parallel.tensor * parallel.pipeline * parallel.context


def agreeing(count: int, parallel: Parallel) -> Parallel:
    """The layout with its data-parallel share where only the number of cards is said."""
    each = each_of(parallel)
    if count % each:
        raise _too_few(count, each, parallel)
    if "data" not in parallel.model_fields_set and parallel.engine != "none" and count % each == 0:
        return parallel.model_copy(update={"data": count // each})
    if count != each * parallel.data and parallel.engine != "none":
        raise EstimatorError(
            f"gpu_count {count} does not match parallel: data {parallel.data} x replicate {parallel.replicate} x "
            f"tensor {parallel.tensor} x pipeline {parallel.pipeline} x context {parallel.context} is "
            f"{each * parallel.data}",
            f"gpu_count {count} 与 parallel 不符：data {parallel.data} x replicate {parallel.replicate} x tensor "
            f"{parallel.tensor} x pipeline {parallel.pipeline} x context {parallel.context} = {each * parallel.data}",
            "gpu_count",
        )
    return parallel


def _too_few(count: int, each: int, parallel: Parallel) -> EstimatorError:
    axes = ("replicate", "tensor", "pipeline", "context")
    sizes = " x ".join(f"{axis} {size}" for axis in axes if (size := getattr(parallel, axis)) > 1)
    needed = each if count < each else -(-count // each) * each
    return EstimatorError(
        f"{sizes} needs {each} cards, or a multiple of that, and gpu_count is {count}; take {needed} cards or a "
        "smaller layout",
        f"{sizes} 需要 {each} 张卡（或其整数倍），而 gpu_count 为 {count}；请改用 {needed} 张卡，或缩小并行规模",
        "gpu_count",
    )


ENGINES = {
    "none": ("one card", "单卡"),
    "ddp": ("several cards and no engine named: a copy on each", "多卡且未指定并行方式：每卡一份副本"),
    "fsdp1": ("this framework's own: FSDP", "该框架默认使用 FSDP"),
    "fsdp2": ("this framework's own: FSDP2", "该框架默认使用 FSDP2"),
    "megatron": ("this framework's own: the distributed optimizer", "该框架默认使用分布式优化器"),
    "deepspeed": ("DeepSpeed with no stage named: ZeRO-2", "未说明 ZeRO 阶段，按 ZeRO-2 计算"),
    "device_map": ("several cards and no engine named: layers dealt out", "多卡且未指定并行方式：按层分摊"),
}
ON_THE_CARD = Offload()
TENSOR = Assumption(
    field="parallel.tensor",
    value="cards",
    why="several cards: every layer is split over them (tensor parallel)",
    why_zh="多张卡：每层切分到各卡（张量并行）",
)
STAGED = Assumption(
    field="parallel.engine",
    value="deepspeed",
    why="a stage of ZeRO is named: that is DeepSpeed's",
    why_zh="指定了 ZeRO 级别：按 DeepSpeed 计算",
)
MOVED = Assumption(
    field="parallel.engine",
    value="deepspeed",
    why="offloading needs an engine that moves states: DeepSpeed's, ZeRO-2, or ZeRO-3 where parameters wait too",
    why_zh="卸载需要搬运状态的引擎：按 DeepSpeed ZeRO-2 计算（同时卸载参数时为 ZeRO-3）",
)
OF_FRAMEWORK: dict[str | None, tuple[Engine, int]] = {
    "torchtitan": ("fsdp2", 3),
    "fsdp_qlora": ("fsdp1", 3),
    "megatron": ("megatron", 1),
    "deepspeed": ("deepspeed", 2),
}
"""What several cards do in frameworks that exist for it."""
NOTHING_OFFLOADED = Assumption(
    field="offload",
    value="none",
    why="nothing is offloaded unless asked for",
    why_zh="未要求卸载，全部留在显卡上",
)


@lru_cache(maxsize=64)
def parallel_of(cards: int, task: str | None, engine: str | None = None, framework: str | None = None) -> Parallel:
    """What several cards do when nothing is said."""
    if cards == 1:
        return Parallel()
    if task == "train" and framework in OF_FRAMEWORK:
        own, zero = OF_FRAMEWORK[framework]
        return Parallel(engine=own, data=cards, zero=zero)
    if task != "train" and engine in SERVERS:
        return Parallel(tensor=cards)
    return Parallel(engine="ddp", data=cards) if task == "train" else Parallel(engine="device_map")


@cache
def _engine(engine: str) -> Assumption:
    why, why_zh = ENGINES[engine]
    return Assumption(field="parallel.engine", value=engine, why=why, why_zh=why_zh)
