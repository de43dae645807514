"""Layouts that are not estimated, or contradict themselves: one sentence each."""

from math import gcd

from estimator.architecture import Architecture
from estimator.errors import EstimatorError
from estimator.regimes import ITEMSIZES
from estimator.schema import Parallel, Run

TRAINING = ("none", "ddp", "deepspeed", "fsdp1", "fsdp2", "megatron")
INFERENCE = ("none", "device_map")
DEEPSPEED = ("deepspeed", "megatron")


def check_layout(run: Run) -> None:
    """Raise for layouts whose figures would be a guess."""
    parallel = run.parallel or Parallel()
    _engine(run, parallel)
    _updates(run, parallel)
    _types(run, parallel)
    _groups(run, parallel)
    _offload(run, parallel)


def _engine(run: Run, parallel: Parallel) -> None:
    known = TRAINING if run.task == "train" else INFERENCE
    if parallel.engine not in known:
        raise EstimatorError(
            f"parallel.engine {parallel.engine} is not estimated yet; {', '.join(known)} are",
            f"暂不支持 parallel.engine {parallel.engine}；目前支持 {'、'.join(known)}",
            "parallel",
        )


def _updates(run: Run, parallel: Parallel) -> None:
    """LOMO lets a gradient go before ZeRO's first stages could reduce it (lomo-optim has its own for stage 3)."""
    if run.method == "lomo" and parallel.engine == "deepspeed" and parallel.zero in (1, 2):
        raise EstimatorError(
            f"LOMO updates inside the backward and leaves no gradients for ZeRO-{parallel.zero}; use ZeRO-3 or ddp",
            f"LOMO 在反向传播中更新参数，没有梯度留给 ZeRO-{parallel.zero}；请改用 ZeRO-3 或 ddp",
            "method",
        )


def _types(run: Run, parallel: Parallel) -> None:
    """Types that only engines for many cards have."""
    wanted = {"fsdp-mixed-bf16": ("fsdp1", "fsdp2"), "deepspeed-bf16": DEEPSPEED, "deepspeed-fp16": DEEPSPEED}
    engines = wanted.get(str(run.precision))
    if engines is not None and parallel.engine not in engines:
        name = " or ".join(engines)
        raise EstimatorError(
            f"precision {run.precision} belongs to {name}, not to parallel.engine {parallel.engine}; use one of "
            f"{', '.join(ITEMSIZES)}, or name the engine",
            f"精度 {run.precision} 属于 {name}，与 parallel.engine {parallel.engine} 不符；可用："
            f"{'、'.join(ITEMSIZES)}，或指定并行引擎",
            "precision",
        )


def _groups(run: Run, parallel: Parallel) -> None:
    """What tensor and context parallel are not described with."""
    if parallel.tensor > 1 and run.task != "train":
        raise EstimatorError(
            f"tensor parallel over {parallel.tensor} cards in inference is what a serving engine does: name engine "
            "vllm, sglang or tgi, or leave tensor out and the layers are dealt out (device_map)",
            f"推理时 {parallel.tensor} 卡张量并行由推理引擎完成：请指定 engine 为 vllm、sglang 或 tgi，"
            "或去掉 tensor（按层分摊，device_map）",
            "engine",
        )
    if parallel.tensor > 1 and (run.method not in ("full", "lora") or run.weight_format):
        what, what_zh = ("quantised weights", "量化权重") if run.weight_format else (f"method {run.method}",) * 2
        raise EstimatorError(
            f"tensor parallel is estimated for full fine-tuning and LoRA on plain weights, not with {what}; drop "
            "parallel.tensor, and share the model over the cards by FSDP (parallel.engine fsdp2) or ZeRO-3",
            f"张量并行目前支持全参数微调和未量化权重上的 LoRA，不支持{what_zh}；请去掉 parallel.tensor，"
            "改用 FSDP（parallel.engine fsdp2）或 ZeRO-3 分片",
            "parallel",
        )
    _experts(parallel)
    _stages(parallel)
    if parallel.context > 1 and (str(run.precision) == "fp32" or run.attention == "eager"):
        raise EstimatorError(
            "context parallel needs the flash kernel: half precision and attention sdpa or flash2",
            "上下文并行需要 flash 内核：半精度，attention 为 sdpa 或 flash2",
            "parallel",
        )


def _experts(parallel: Parallel) -> None:
    """Experts are dealt out by Megatron, and by torchtitan out of FSDP2's own cards."""
    if parallel.expert > 1 and parallel.engine in ("fsdp1", "deepspeed"):
        raise EstimatorError(
            f"parallel.expert {parallel.expert} under {parallel.engine} is not estimated; use parallel.engine fsdp2 "
            "(as torchtitan does), megatron or none",
            f"暂不支持 {parallel.engine} 下的 parallel.expert {parallel.expert}；可用 parallel.engine fsdp2"
            "（torchtitan 的做法）、megatron 或 none",
            "parallel",
        )
    cards = parallel.data * parallel.context
    if parallel.expert > 1 and parallel.engine == "fsdp2" and cards % parallel.expert:
        raise EstimatorError(
            f"parallel.expert {parallel.expert} does not divide the {cards} cards that share the parameters; use "
            f"{gcd(cards, parallel.expert)}",
            f"parallel.expert {parallel.expert} 不能整除分担参数的 {cards} 张卡；请用 {gcd(cards, parallel.expert)}",
            "parallel",
        )


def _stages(parallel: Parallel) -> None:
    """DeepSpeed's pipeline engine asserts that gradients are not dealt out; FSDP1 has no pipeline schedule."""
    if parallel.pipeline == 1 or parallel.engine in ("none", "ddp", "megatron", "fsdp2"):
        return
    if parallel.engine == "deepspeed" and parallel.zero < 2:
        return
    if parallel.engine == "deepspeed":
        raise EstimatorError(
            f"DeepSpeed refuses pipeline stages with ZeRO-{parallel.zero}: its pipeline engine takes zero 0 or 1",
            f"DeepSpeed 的流水线引擎不支持 ZeRO-{parallel.zero}：请用 zero 0 或 1",
            "parallel",
        )
    raise EstimatorError(
        f"parallel.pipeline {parallel.pipeline} under {parallel.engine} is not estimated; use parallel.engine fsdp2 "
        "(as torchtitan does), megatron, ddp or none",
        f"暂不支持 {parallel.engine} 下的 parallel.pipeline {parallel.pipeline}；可用 fsdp2（torchtitan 的做法）、"
        "megatron、ddp 或 none",
        "parallel",
    )


def check_heads(run: Run, arch: Architecture) -> None:
    """Raise where the tensor-parallel ranks cannot share the heads evenly."""
    tensor = (run.parallel or Parallel()).tensor
    least = min(one for one in (arch.heads, arch.kv_heads) if one) if arch.heads else tensor
    if run.task == "train" and (arch.heads % tensor or least % tensor):
        raise EstimatorError(
            f"parallel.tensor {tensor} does not divide the model's heads ({arch.heads} of queries, {arch.kv_heads} of "
            f"keys and values); use {gcd(arch.heads, least, tensor)}, and spread the rest over data or pipeline",
            f"parallel.tensor {tensor} 不能整除该模型的注意力头（query {arch.heads} 个，KV {arch.kv_heads} 个）；"
            f"请用 {gcd(arch.heads, least, tensor)}，其余的卡用于数据并行或流水线并行",
            "parallel",
        )


def _offload(run: Run, parallel: Parallel) -> None:
    """States and parameters wait on the host only where an engine moves them."""
    places = run.offload
    if places is None or {places.optimizer, places.parameters} == {"none"}:
        return
    if parallel.engine not in ("fsdp1", "fsdp2", "deepspeed"):
        raise EstimatorError(
            "offload of parameters or optimizer states needs an engine that moves them: parallel.engine deepspeed, "
            "fsdp1 or fsdp2",
            "参数或优化器状态卸载需要支持它的引擎：parallel.engine 设为 deepspeed、fsdp1 或 fsdp2",
            "offload",
        )
    if parallel.engine == "deepspeed" and places.parameters != "none" and parallel.zero != 3:
        raise EstimatorError(
            f"DeepSpeed offloads parameters only with ZeRO-3, not with zero {parallel.zero}",
            f"DeepSpeed 仅在 ZeRO-3 下支持参数卸载，zero {parallel.zero} 不支持",
            "offload",
        )
    if parallel.engine != "deepspeed" and "nvme" in (places.optimizer, places.parameters):
        raise EstimatorError(
            "FSDP offloads to host memory only; use cpu, or DeepSpeed's ZeRO-3 for nvme",
            "FSDP 只能卸载到主机内存；请改用 cpu，或用 DeepSpeed ZeRO-3 的 nvme",
            "offload",
        )
