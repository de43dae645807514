"""What is not estimated yet, or contradicts itself: one sentence each."""

from estimator.bases import check_base
from estimator.catalogue import ModelMatch
from estimator.errors import EstimatorError
from estimator.parallel.scope import check_layout
from estimator.positions import check_positions
from estimator.regimes import adapted
from estimator.schema import Lengths, Run
from estimator.serving.engines import check_engine, is_served
from estimator.stack import check_stack
from estimator.targets_check import unmatched
from estimator.vision.held import check_images

STAGES = ("pretrain", "sft", "reward", "dpo", "orpo", "kto", "simpo", "grpo", "ppo", "embed")


def check_scope(run: Run, model: ModelMatch) -> None:
    """Raise for runs whose answer would be a guess."""
    _stage(run)
    if not is_served(run):
        check_layout(run)
    _contradictions(run)
    check_stack(run.stack)
    _lengths(run)
    check_positions(run, model.architecture)
    check_images(run, model.architecture)
    if run.task == "train" and adapted(run):
        unmatched(run, model.architecture)


def _stage(run: Run) -> None:
    if run.task == "train" and run.stage not in (*STAGES, None):
        raise EstimatorError(
            f"stage {run.stage} is not estimated yet; pretrain and sft are",
            f"暂不支持阶段 {run.stage}；目前支持 pretrain 和 sft",
            "stage",
        )
    if is_served(run):
        check_engine(str(run.engine))


def _lengths(run: Run) -> None:
    rows = run.seq_len
    if isinstance(rows, Lengths) and rows.mean > rows.max:
        raise EstimatorError(
            f"seq_len.mean {rows.mean:g} is above seq_len.max {rows.max:,}; the mean is at most the longest row",
            f"seq_len.mean {rows.mean:g} 大于 seq_len.max {rows.max:,}；平均长度不能超过最长的一行",
            "seq_len",
        )


def _contradictions(run: Run) -> None:
    if run.task != "train" or not run.weight_format:
        return
    if adapted(run):
        check_base(run.weight_format)
    else:
        raise EstimatorError(
            f"weights in {run.weight_format} cannot be trained by method {run.method}; use qlora or drop weight_format",
            f"{run.weight_format} 量化权重不能用 {run.method} 训练；请改用 qlora，或去掉 weight_format",
            "weight_format",
        )
