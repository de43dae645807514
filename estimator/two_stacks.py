"""Models of an encoder and a decoder: what their runs assume, and what of them is not estimated."""

from collections.abc import Iterator

from estimator.architecture import Architecture
from estimator.errors import EstimatorError
from estimator.regimes import taken_as_non_reentrant, target_length, tokens_per_row, uneven
from estimator.schema import Assumption, Run
from estimator.serving.engines import is_served

WITHOUT_FLASH = ("t5", "mt5", "umt5")
"""Types whose position biases no flash kernel takes (transformers 5.24, ``_supports_flash_attn``)."""


def begun(run: Run) -> tuple[Run, list[Assumption]]:
    """The run before its defaults: trl's and its kin's trainers take decoders only."""
    update: dict[str, str] = {} if run.loss else {"loss": "standard"}
    if run.framework:
        return run.model_copy(update=update), []
    said = Assumption(
        field="framework",
        value="transformers",
        why="trl's SFTTrainer takes decoders only: transformers' Seq2SeqTrainer",
        why_zh="trl 的 SFTTrainer 只支持解码器模型：按 transformers 的 Seq2SeqTrainer 计算",
    )
    return run.model_copy(update={**update, "framework": "transformers"}), [said]


def notes(run: Run, arch: Architecture) -> Iterator[tuple[str, object, str, str]]:
    """What the one length means, and what of such a run is read in the library's source and not traced."""
    if run.task == "train" and not (run.details or {}).get("target_len"):
        yield (
            "seq_len",
            target_length(run),
            f"the length is the source's, which the encoder reads; the target is taken as long, {target_length(run):,} "
            "tokens (details.target_len says otherwise)",
            f"长度指编码器读入的源序列；目标序列按同样的 {target_length(run):,} 个 token 计算"
            "（可用 details.target_len 指定）",
        )
    if run.task == "train" and uneven(run):
        yield (
            "seq_len",
            tokens_per_row(run),
            "masks of padded rows are counted from the library's source, not traced",
            "填充样本的掩码依据库源码计入，未经跟踪验证",
        )
    if taken_as_non_reentrant(run, arch):
        yield (
            "gradient_checkpointing",
            run.gradient_checkpointing,
            "reentrant checkpoints of two stacks are not traced: counted like non-reentrant ones",
            "编码器—解码器模型的 reentrant 检查点未经跟踪，按 non-reentrant 计算",
        )


def check(run: Run, arch: Architecture) -> None:
    """Raise for what is not described of such models."""
    for field, what, what_zh in () if is_served(run) else _beyond(run, arch):
        raise EstimatorError(
            f"{arch.model_type} is an encoder-decoder: {what}",
            f"{arch.model_type} 是编码器—解码器模型：{what_zh}",
            field,
        )


def _beyond(run: Run, arch: Architecture) -> Iterator[tuple[str, str, str]]:
    if run.task == "train" and run.stage not in ("sft", "pretrain", None):
        yield "stage", f"stage {run.stage} is not estimated for it; sft is", f"暂不支持阶段 {run.stage}；可用 sft"
    engine = run.parallel.engine if run.parallel is not None else None
    if engine not in (None, "none", "ddp") or ((run.gpu_count or 1) > 1 and run.task != "train"):
        yield (
            "parallel",
            "only copies on every card (ddp) are estimated for it",
            "多卡时目前只支持每卡一份完整副本（ddp）",
        )
    if str(run.attention).startswith("flash") and arch.model_type in WITHOUT_FLASH:
        yield "attention", "its position biases go with sdpa or eager only", "其位置偏置只支持 sdpa 或 eager"
    if run.packing:
        yield "packing", "its rows are not packed; pad them", "其样本不做打包；请改为填充"
