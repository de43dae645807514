"""What is not estimated yet, or contradicts itself: one sentence each."""

from estimator.bases import check_base
from estimator.catalogue import ModelMatch
from estimator.errors import EstimatorError
from estimator.in_backward import steps_in_backward
from estimator.parallel.scope import check_heads, check_layout
from estimator.positions import check_positions
from estimator.regimes import adapted
from estimator.schema import Lengths, Run
from estimator.serving.engines import check_engine, is_served
from estimator.stack import check_stack
from estimator.stages.rows import ONLINE
from estimator.targets_check import unmatched
from estimator.vision.held import check_images

STAGES = ("pretrain", "sft", "reward", "dpo", "orpo", "kto", "simpo", "grpo", "ppo", "embed")


def check_scope(run: Run, model: ModelMatch) -> None:
    """Raise for runs whose answer would be a guess."""
    _stage(run)
    if not is_served(run):
        check_layout(run)
        check_heads(run, model.architecture)
    if model.architecture.kind == "encoder-decoder":
        from estimator.two_stacks import check

        check(run, model.architecture)
    _contradictions(run)
    check_stack(run.stack)
    _lengths(run)
    _kind(run, model.architecture.kind)
    _completions(run)
    check_positions(run, model.architecture)
    check_images(run, model.architecture)
    if run.task == "train" and adapted(run):
        unmatched(run, model.architecture)


GENERATE = ("dpo", "orpo", "kto", "simpo", "grpo", "ppo")
"""Stages that score or make text token by token."""


def _kind(run: Run, kind: str) -> None:
    if run.task == "train" and run.stage in GENERATE and kind == "encoder":
        raise EstimatorError(
            f"stage {run.stage} needs a model that generates text, and this one is an encoder; name a decoder",
            f"阶段 {run.stage} 需要能生成文本的模型，而该模型是编码器；请换用解码器模型",
            "stage",
        )


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


def _completions(run: Run) -> None:
    """Completions are part of their row."""
    rows, online = run.seq_len, run.rl
    if run.task != "train" or run.stage not in ONLINE or online is None or not isinstance(rows, int):
        return
    if (online.max_completion_len or 0) >= rows:
        raise EstimatorError(
            f"rl.max_completion_len {online.max_completion_len:,} leaves no prompt in rows of {rows:,} tokens; "
            "seq_len counts prompt and completion",
            f"rl.max_completion_len {online.max_completion_len:,} 已占满 {rows:,} 个 token 的行；"
            "seq_len 包含提示与回答",
            "seq_len",
        )


def _contradictions(run: Run) -> None:
    if steps_in_backward(run) and (run.grad_accum or 1) > 1:
        raise EstimatorError(
            f"an optimizer step inside the backward leaves no gradients for {run.grad_accum} micro-batches to add up; "
            "use grad_accum 1 or step after the backward",
            f"优化器在反向传播中更新，没有梯度可供 {run.grad_accum} 个微批累积；"
            "请把 grad_accum 设为 1，或改为反向之后再更新",
            "grad_accum",
        )
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
