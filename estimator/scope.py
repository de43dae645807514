"""What is not estimated yet, or contradicts itself: one sentence each."""

from estimator.catalogue import ModelMatch
from estimator.errors import EstimatorError
from estimator.schema import Parallel, Run

STAGES = ("pretrain", "sft")


def check_scope(run: Run, model: ModelMatch) -> None:
    """Raise for runs whose answer would be a guess."""
    _stage(run)
    _parallel(run.parallel)
    _offload(run)
    _contradictions(run)


def _stage(run: Run) -> None:
    if run.task == "train" and run.stage not in (*STAGES, None):
        raise EstimatorError(
            f"stage {run.stage} is not estimated yet; pretrain and sft are",
            f"暂不支持阶段 {run.stage}；目前支持 pretrain 和 sft",
            "stage",
        )
    if run.engine not in (None, "hf", "llama.cpp"):
        raise EstimatorError(
            f"engine {run.engine} is not estimated yet; hf and llama.cpp are",
            f"暂不支持引擎 {run.engine}；目前支持 hf 和 llama.cpp",
            "engine",
        )
    if run.serving is not None and run.serving.n_gpu_layers is not None:
        raise EstimatorError(
            "serving.n_gpu_layers is not estimated yet; leave it out to see the need with every layer on the card",
            "暂不支持 serving.n_gpu_layers；去掉该项可查看全部层放在显卡上的需求",
            "serving",
        )


def _parallel(parallel: Parallel | None) -> None:
    if parallel is None or parallel.engine in ("none", "ddp"):
        return
    raise EstimatorError(
        f"parallel.engine {parallel.engine} is not estimated yet; none and ddp are",
        f"暂不支持 parallel.engine {parallel.engine}；目前支持 none 和 ddp",
        "parallel",
    )


def _offload(run: Run) -> None:
    places = run.offload
    if places is not None and {places.optimizer, places.parameters} != {"none"}:
        raise EstimatorError(
            "offload of parameters or optimizer states is not estimated yet; leave it out to see the need without it",
            "暂不支持参数或优化器状态卸载；去掉该项可查看不卸载时的需求",
            "offload",
        )


def _contradictions(run: Run) -> None:
    if run.task == "train" and run.method in ("full", "freeze", "galore", "apollo", "lomo") and run.weight_format:
        raise EstimatorError(
            f"weights in {run.weight_format} cannot be trained by method {run.method}; use qlora, or drop weight_format",
            f"{run.weight_format} 量化权重不能用 {run.method} 训练；请改用 qlora，或去掉 weight_format",
            "weight_format",
        )
