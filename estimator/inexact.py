"""Modes that are estimated from the nearest described one, each with what is assumed."""

from collections.abc import Iterator
from typing import NamedTuple

from estimator.in_backward import IN_BACKWARD, steps_in_backward
from estimator.schema import Run
from estimator.stages.rows import reference_of

SHARDING = ("fsdp1", "fsdp2", "deepspeed")


class Inexact(NamedTuple):
    """The field that asks for it, its value, and what is assumed, in both languages."""

    field: str
    value: object
    why: str
    why_zh: str


def inexact_modes(run: Run) -> Iterator[Inexact]:
    """What of a run is not described operation by operation."""
    if run.task != "train":
        return
    yield from _of_stage(run)
    if run.compile:
        yield Inexact(
            "compile",
            run.compile,
            "compiled graphs keep matrix products and make norms, rotations and activations again, logits stay in the "
            "model's type; their buffers are not followed one by one",
            "编译后的图只保留矩阵乘的结果，归一化、旋转位置编码和激活函数在反向时重算，logits 保持模型精度；"
            "缓冲区未逐一跟踪",
        )
    if run.optimizer_impl == IN_BACKWARD and not steps_in_backward(run):
        yield Inexact(
            "optimizer_impl",
            IN_BACKWARD,
            "the optimizer's step inside the backward is counted as after it where several cards share the work",
            "多卡分工时，反向中的优化器更新按反向之后计算",
        )
    if "lora" in (run.fused_kernels or ()) and run.framework != "trl":  # IBM's for trl: 80 published peaks agree
        yield Inexact(
            "fused_kernels",
            "lora",
            "unsloth's LoRA kernels, read in their source and not traced",
            "unsloth 的 LoRA 内核：依据源码，未经跟踪验证",
        )
    if (run.weight_format or "").startswith("awq"):
        yield Inexact(
            "weight_format",
            run.weight_format,
            "AWQ's training path is read in AutoAWQ's and GPTQModel's source and not traced",
            "AWQ 训练路径依据 AutoAWQ / GPTQModel 源码，未经跟踪验证",
        )
    if (run.optimizer or "").startswith(("adamw-4bit", "adamw-torchao")):
        yield Inexact(
            "optimizer",
            run.optimizer,
            "torchao's step runs compiled: its temporaries are counted as none",
            "torchao 的更新在编译后运行：临时张量按零计算",
        )
    if run.gradient_checkpointing == "selective-attention":
        yield Inexact(
            "gradient_checkpointing",
            run.gradient_checkpointing,
            "Megatron's core-attention recompute, around the attention of transformers' code",
            "Megatron 的 core-attention 重算，套用在 transformers 的注意力代码上",
        )


def _of_stage(run: Run) -> Iterator[Inexact]:
    """What of a stage is read in sources and not traced."""
    if run.stage == "ppo":
        yield Inexact(
            "stage",
            "ppo",
            "trl 1.16 has no PPO trainer: counted as trl.experimental.ppo of 2025 runs (policy, reference, reward and "
            "value model of one size), read in its source and not traced",
            "trl 1.16 已无 PPO 训练器：按 2025 年 trl.experimental.ppo 的源码计算（策略、参考、奖励、价值模型同规模），"
            "未经跟踪验证",
        )
    if reference_of(run) == "model" and run.parallel is not None and run.parallel.engine in SHARDING:
        yield Inexact(
            "preference.reference",
            "model",
            "of a reference model that is shared out each card's part is counted, the gathering of its layers is not",
            "参考模型分片时只计入每张卡的份额，未计入其各层的聚合",
        )
    if run.stage == "embed":
        yield Inexact(
            "stage",
            "embed",
            "anchors and positives counted as one forward of twice the rows; sentence-transformers runs one after the "
            "other and keeps both, not traced",
            "锚点与正例按一次两倍行数的前向计算；sentence-transformers 依次前向并同时保留两者，未经跟踪验证",
        )
    if run.rl is not None and run.rl.engine not in (None, "hf") and run.stage == "grpo":
        yield Inexact(
            "rl.engine",
            run.rl.engine,
            "vLLM beside the training: its share as it is told, not traced",
            "与训练同卡的 vLLM：按其声明的显存占比计算，未经跟踪验证",
        )
