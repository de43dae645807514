"""Why an engine would not start, or would make requests wait, and what to change: one note each."""

from estimator.schema import Assumption
from estimator.serving.engines import FILES, memory_of
from estimator.serving.facts import GIB, gib
from estimator.serving.memory import Memory, note
from estimator.serving.plan import Plan
from estimator.serving.shown import CONTEXT, beyond_the_pool
from estimator.serving.solve import SHARED, experts_kept, utilization_needed
from estimator.serving.vllm import utilization

SAYS = {
    "vllm": "No available memory for the cache blocks",
    "sglang": "Not enough memory. Please try to increase --mem-fraction-static",
    "tgi": "Not enough memory to handle the prefill tokens",
}
"""What an engine prints where nothing is left for its cache (vllm v1/core/kv_cache_utils.py, sglang model_runner)."""

AUTOMATIC_SINCE = (0, 20)
"""``--max-model-len auto`` is spoken of as there in vllm issue 41364."""

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
    if found.weights.bytes > usable:
        return [_while_loading(plan, found, usable)]
    if found.left <= 0:
        return [_no_blocks(plan, found, usable)]
    if found.cache.longest is not None and found.cache.longest < plan.length:
        return [_too_long(plan, found, usable)]
    possible = found.cache.users
    if possible is not None and possible < plan.users:
        return [_waiting(plan, possible)]
    beyond = beyond_the_pool(plan, found).high - usable
    return [_too_large_a_share(plan, usable, beyond)] if plan.engine in SHARED and beyond > 0 else []


def _gib(size: float) -> str:
    return f"{size / GIB:.2f} GiB"


def _too_large_a_share(plan: Plan, usable: int, beyond: int) -> Assumption:
    flag, total = FLAGS[plan.engine][0], plan.total or 0
    least = utilization_needed(plan, usable)
    cure, cure_zh = "end other processes", "请结束其他进程"
    if least is not None:
        cure, cure_zh = f"{flag} {least:g} is enough", f"{flag} 设为 {least:g} 即可"
    return note(
        "serving.gpu_memory_utilization",
        least,
        f"beside {plan.engine}'s share of the card's {_gib(total)}, {_gib(beyond)} may be missing for the CUDA context,"
        f" graphs and work outside of it; {cure}",
        f"{plan.engine} 按比例占用显存（全卡 {_gib(total)}）后，留给 CUDA 上下文、graph 等的空间可能还差"
        f" {_gib(beyond)}；{cure_zh}",
    )


def _free(plan: Plan) -> Assumption:
    total, wanted = plan.total or 0, utilization(plan) * (plan.total or 0)
    free = total - plan.taken
    share = int(100 * (free - gib(CONTEXT[1])) / total) / 100
    return note(
        "serving.gpu_memory_utilization",
        share,
        f"vLLM does not start (Free memory on device is less than desired): {_gib(free)} are free of {_gib(total)}, it"
        f" wants {_gib(wanted)} (--gpu-memory-utilization {utilization(plan):g}); end the other processes or set"
        f" {share:g}",
        f"vLLM 无法启动（Free memory on device is less than desired）：{_gib(total)} 中仅空闲 {_gib(free)}，"
        f"而 --gpu-memory-utilization {utilization(plan):g} 需要 {_gib(wanted)}；请结束其他进程，或设为 {share:g}",
    )


def _while_loading(plan: Plan, found: Memory, usable: int) -> Assumption:
    cure, cure_zh = _cure(plan, usable)
    return note(
        "serving",
        "loading",
        f"{plan.engine} runs out of memory while it loads: the weights take {_gib(found.weights.bytes)} of"
        f" {_gib(usable)}, and nothing is left for the KV cache; {cure}",
        f"{plan.engine} 在加载权重时就会显存不足：权重需要 {_gib(found.weights.bytes)}，"
        f"而显存只有 {_gib(usable)}；{cure_zh}",
    )


def _no_blocks(plan: Plan, found: Memory, usable: int) -> Assumption:
    lacking = _gib(-(found.left or 0))
    cure, cure_zh = _cure(plan, usable)
    return note(
        "serving",
        "no_blocks",
        f"{plan.engine} does not start ({SAYS[plan.engine]}): nothing is left for the KV cache, {lacking} short after"
        f" weights, activations and what is outside PyTorch; {cure}",
        f"{plan.engine} 无法启动（{SAYS[plan.engine]}）：扣除权重、激活与 PyTorch 之外的占用后"
        f"没有空间放 KV 缓存，还差 {lacking}；{cure_zh}",
    )


def _too_long(plan: Plan, found: Memory, usable: int) -> Assumption:
    if plan.engine == "sglang":
        return _refused(plan, found, usable)
    one = plan._replace(users=1)
    needed, have = memory_of(one).cache.needed, found.cache.bytes
    flag = FLAGS.get(plan.engine, FLAGS["vllm"])[1]
    cure, cure_zh = _cure(plan, usable)
    auto = plan.engine == "vllm" and plan.version >= AUTOMATIC_SINCE
    most = f"{found.cache.longest:,}"
    return note(
        "context_len",
        found.cache.longest,
        f"{plan.engine} does not start with {plan.length:,} tokens: they take {_gib(needed)} of KV cache and"
        f" {_gib(have)} are left; set {flag} to at most {most}{' (or auto)' if auto else ''}, or {cure}",
        f"{plan.engine} 无法以 {plan.length:,} 个 token 启动：需要 {_gib(needed)} KV 缓存，只剩 {_gib(have)}；"
        f"请把 {flag} 设为不超过 {most}{'（或 auto）' if auto else ''}，或{cure_zh}",
    )


def _refused(plan: Plan, found: Memory, usable: int) -> Assumption:
    """SGLang starts whatever its context length is, and turns away what its pool does not hold."""
    cure, cure_zh = _cure(plan, usable)
    return note(
        "context_len",
        found.cache.longest,
        f"sglang starts, but refuses requests of more than {found.cache.longest:,} tokens: its pool holds no more;"
        f" shorten them, or {cure}",
        f"sglang 能启动，但会拒绝超过 {found.cache.longest:,} 个 token 的请求：缓存池只有这么大；"
        f"请缩短请求，或{cure_zh}",
    )


def _cure(plan: Plan, usable: int) -> tuple[str, str]:
    """A larger share where one is enough, else what makes the model smaller."""
    flag = FLAGS.get(plan.engine, FLAGS["vllm"])[0]
    share = utilization_needed(plan._replace(users=1), usable) if plan.engine in SHARED else None
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
        more = memory_of(plan._replace(tensor=cards, users=1))
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


def needs_offload(plan: Plan, possible: int | None, usable: int) -> Assumption | None:
    """What llama.cpp can keep on the card when not everything fits; experts go first, for they are seldom read."""
    layers = len(plan.arch.layer_types) + 1
    if plan.engine not in FILES or possible is None or possible >= layers or plan.serving.n_gpu_layers is not None:
        return None
    kept = experts_kept(plan, usable)
    if kept is not None:
        return note(
            "serving.moe_on_cpu",
            kept,
            f"--n-cpu-moe {kept} is enough: the experts of {kept} of {layers - 1} layers stay in the computer's memory,"
            " all else lies on the card; slower, but faster than whole layers on the CPU",
            f"--n-cpu-moe {kept} 即可放下：{layers - 1} 层中有 {kept} 层的专家权重留在内存，其余都在显卡上；"
            "速度会变慢，但比整层放 CPU 快",
        )
    flag = "num_gpu" if plan.engine == "ollama" else "-ngl"
    return note(
        "serving.n_gpu_layers",
        possible,
        f"{possible} of {layers} layers fit the card ({flag} {possible}); the rest runs from the computer's memory,"
        " slower",
        f"显卡可放 {possible}/{layers} 层（{flag} {possible}）；其余在内存中运行，速度会变慢",
    )
