"""Why an engine would not start, or would make requests wait, and what to change: one note each."""

from dataclasses import replace

from estimator.schema import Assumption
from estimator.serving.engines import FILES, memory_of
from estimator.serving.facts import GIB
from estimator.serving.memory import Memory, note
from estimator.serving.plan import Plan
from estimator.serving.solve import SHARED, utilization_needed
from estimator.serving.vllm import utilization

FLAGS = {
    "vllm": ("--gpu-memory-utilization", "--max-model-len"),
    "sglang": ("--mem-fraction-static", "--context-length"),
    "tgi": ("--cuda-memory-fraction", "--max-total-tokens"),
}


def startup_notes(plan: Plan, found: Memory, usable: int) -> list[Assumption]:
    """What stands in the way, the first thing that the engine would say first."""
    if plan.total is None or found.left is None:
        return []
    if plan.engine == "vllm" and plan.taken and plan.total - plan.taken < utilization(plan) * plan.total:
        return [_free(plan)]
    if found.left <= 0:
        return [_no_blocks(plan, found, usable)]
    if found.cache.longest is not None and found.cache.longest < plan.length:
        return [_too_long(plan, found, usable)]
    possible = found.cache.users
    if possible is not None and possible < plan.users:
        return [_waiting(plan, possible)]
    return []


def _gib(size: float) -> str:
    return f"{size / GIB:.2f} GiB"


def _free(plan: Plan) -> Assumption:
    total, wanted = plan.total or 0, utilization(plan) * (plan.total or 0)
    share = int(100 * (total - plan.taken) / total) / 100
    free = total - plan.taken
    return note(
        "serving.gpu_memory_utilization",
        share,
        f"vLLM does not start: {_gib(free)} are free of {_gib(total)}, it wants {_gib(wanted)}"
        f" (--gpu-memory-utilization {utilization(plan):g}); end the other processes or set {share:g}",
        f"vLLM 无法启动：{_gib(total)} 中仅空闲 {_gib(free)}，而 --gpu-memory-utilization {utilization(plan):g}"
        f" 需要 {_gib(wanted)}；请结束其他进程，或设为 {share:g}",
    )


def _no_blocks(plan: Plan, found: Memory, usable: int) -> Assumption:
    lacking = _gib(-(found.left or 0))
    cure, cure_zh = _cure(plan, usable)
    return note(
        "serving",
        "no_blocks",
        f"{plan.engine} does not start: nothing is left for the KV cache ({lacking} short after weights, activations"
        f" and what is outside PyTorch); {cure}",
        f"{plan.engine} 无法启动：扣除权重、激活与 PyTorch 之外的占用后没有空间放 KV 缓存（还差 {lacking}）；{cure_zh}",
    )


def _too_long(plan: Plan, found: Memory, usable: int) -> Assumption:
    one = replace(plan, users=1)
    needed, have = memory_of(one).cache.needed, found.cache.bytes
    flag = FLAGS.get(plan.engine, FLAGS["vllm"])[1]
    cure, cure_zh = _cure(plan, usable)
    return note(
        "context_len",
        found.cache.longest,
        f"{plan.engine} does not start with {plan.length:,} tokens: they take {_gib(needed)} of KV cache and"
        f" {_gib(have)} are left; set {flag} to at most {found.cache.longest:,}, or {cure}",
        f"{plan.engine} 无法以 {plan.length:,} 个 token 启动：需要 {_gib(needed)} KV 缓存，只剩 {_gib(have)}；"
        f"请把 {flag} 设为不超过 {found.cache.longest:,}，或{cure_zh}",
    )


def _cure(plan: Plan, usable: int) -> tuple[str, str]:
    """A larger share where one is enough, else what makes the model smaller."""
    flag = FLAGS.get(plan.engine, FLAGS["vllm"])[0]
    share = utilization_needed(replace(plan, users=1), usable) if plan.engine in SHARED else None
    if share is not None:
        return f"set {flag} {share:g}", f"设置 {flag} {share:g}"
    cards = _cards_needed(plan)
    if cards is None:
        return "use weights of fewer bits or larger cards", "改用更低位数的权重，或显存更大的显卡"
    return (
        f"use weights of fewer bits or {cards} cards (tensor parallel)",
        f"改用更低位数的权重，或 {cards} 张卡（张量并行）",
    )


def _cards_needed(plan: Plan) -> int | None:
    """The fewest cards over which the layers may be split and one request fits."""
    heads = plan.arch.heads or 1
    for cards in (count for count in (2, 4, 8, 16) if count > plan.tensor and heads % count == 0):
        more = memory_of(replace(plan, tensor=cards, users=1))
        if more.left is not None and more.left - more.uncertain[0] >= more.cache.needed:
            return cards
    return None


def _waiting(plan: Plan, possible: int) -> Assumption:
    return note(
        "concurrency",
        possible,
        f"{possible:,} of {plan.users:,} requests of {plan.length:,} tokens run at once; the others wait",
        f"{plan.users:,} 个长度 {plan.length:,} 的请求中，同时只能处理 {possible:,} 个，其余排队",
    )


def needs_offload(plan: Plan, possible: int | None) -> Assumption | None:
    """What llama.cpp can keep on the card when not everything fits."""
    layers = len(plan.arch.layer_types) + 1
    if plan.engine not in FILES or possible is None or possible >= layers or plan.serving.n_gpu_layers is not None:
        return None
    flag = "num_gpu" if plan.engine == "ollama" else "-ngl"
    return note(
        "serving.n_gpu_layers",
        possible,
        f"{possible} of {layers} layers fit the card ({flag} {possible}); the rest runs from the computer's memory,"
        " slower",
        f"显卡可放 {possible}/{layers} 层（{flag} {possible}）；其余在内存中运行，速度会变慢",
    )
