"""How a run lies on its cards when it does not say: one copy a card in training, the layers dealt out in inference."""

from functools import cache

from estimator.schema import Assumption, Offload, Parallel, Run


def with_surroundings(run: Run) -> tuple[Run, list[Assumption]]:
    """The run with its parallelism and offloading, and what was assumed of them."""
    update: dict[str, Parallel | Offload] = {}
    said: list[Assumption] = []
    if run.parallel is None:
        parallel = update["parallel"] = parallel_of(run)
        said.append(_engine(parallel.engine))
    if run.offload is None:
        update["offload"] = Offload()
        said.append(NOTHING_OFFLOADED)
    return (run.model_copy(update=update) if update else run), said


ENGINES = {
    "none": ("one card", "单卡"),
    "ddp": ("several cards and no engine named: a copy on each", "多卡且未指定并行方式：每卡一份副本"),
    "device_map": ("several cards and no engine named: layers dealt out", "多卡且未指定并行方式：按层分摊"),
}
NOTHING_OFFLOADED = Assumption(
    field="offload",
    value="none",
    why="nothing is offloaded unless asked for",
    why_zh="未要求卸载，全部留在显卡上",
)


def parallel_of(run: Run) -> Parallel:
    """What several cards do when nothing is said."""
    cards = run.gpu_count or 1
    if cards == 1:
        return Parallel()
    return Parallel(engine="ddp", data=cards) if run.task == "train" else Parallel(engine="device_map")


@cache
def _engine(engine: str) -> Assumption:
    why, why_zh = ENGINES[engine]
    return Assumption(field="parallel.engine", value=engine, why=why, why_zh=why_zh)
