"""Moves of a run that generates or serves: each a pure function to the runs after it, the mildest first."""

from collections.abc import Sequence

from estimator.catalogue import weight_format
from estimator.downgrades.around import Around
from estimator.downgrades.hardware import Lazily
from estimator.downgrades.training import CUDA, changed, half_type
from estimator.schema import KVCache, Run, Serving
from estimator.serving.engines import FILES, SERVERS
from estimator.serving.plan import plan_of
from estimator.serving.solve import SHARED, utilization_needed

GGUF = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M")
GGUF_LOW = ("Q3_K_M", "Q2_K")
FULL_TYPES = (None, "auto", "f16", "fp16", "bf16", "fp32", "float16", "bfloat16")
EIGHT_BITS = ("q8_0", "fp8", "int8")
UNIFIED = "unified"
"""Cards that share the computer's memory: what the CPU keeps lies in the same."""
LEAST_CONTEXT, STEP, LEAST_UBATCH = 256, 64, 64


def pool_share(run: Run, around: Around) -> tuple[Run, ...]:
    """The smallest share of the card with which a serving engine starts and holds what was asked for."""
    if run.engine not in SHARED or isinstance(run.gpu, list):
        return ()
    plan = plan_of(run, around.arch, around.gpu).least
    share = utilization_needed(plan, (plan.total or 0) - plan.taken)
    return (with_serving(run, gpu_memory_utilization=share),) if share is not None else ()


def last_logits(run: Run, around: Around) -> tuple[Run, ...]:
    """The head on the last position only."""
    return (changed(run, logits="last"),) if run.logits == "all" else ()


def half(run: Run, around: Around) -> tuple[Run, ...]:
    """16-bit weights in place of fp32."""
    if run.precision != "fp32" or run.weight_format:
        return ()
    return (around.refill(changed(run, precision=half_type(around))),)


def ubatch(run: Run, around: Around) -> tuple[Run, ...]:
    """llama.cpp's micro-batch of prompt tokens, halved down to 64."""
    if run.engine not in FILES:
        return ()
    known = (run.serving.ubatch if run.serving else None) or 512
    sizes = [known >> shift for shift in range(1, 6) if known >> shift >= LEAST_UBATCH]
    return tuple(with_serving(run, ubatch=size) for size in sizes)


def batched_tokens(run: Run, around: Around) -> tuple[Run, ...]:
    """Fewer prompt tokens in one forward of a serving engine."""
    known = run.serving.max_num_batched_tokens if run.serving else None
    if run.engine != "vllm" or not known:
        return ()
    return tuple(with_serving(run, max_num_batched_tokens=size) for size in (4096, 2048, 1024) if size < known)


def no_graphs(run: Run, around: Around) -> tuple[Run, ...]:
    """A serving engine without captured CUDA graphs."""
    known = run.serving.cuda_graphs if run.serving else None
    return (with_serving(run, cuda_graphs=False),) if run.engine == "vllm" and known is not False else ()


def kv_8bit(run: Run, around: Around) -> tuple[Run, ...]:
    """Keys and values in 8 bit: blocks of llama.cpp, or fp8 where the card computes in it."""
    known = run.kv_cache.dtype if run.kv_cache else None
    if known not in FULL_TYPES:
        return ()
    if run.engine in FILES:
        return (_cached(run, "q8_0"),)
    return (_cached(run, "fp8"),) if run.engine in SERVERS and around.gpu.fp8 else ()


def kv_4bit(run: Run, around: Around) -> tuple[Run, ...]:
    """Keys and values in 4 bit (llama.cpp)."""
    known = run.kv_cache.dtype if run.kv_cache else None
    return (_cached(run, "q4_0"),) if run.engine in FILES and known in (*FULL_TYPES, *EIGHT_BITS) else ()


def users(run: Run, around: Around) -> tuple[Run, ...]:
    """Fewer requests at once, halved down to one."""
    return tuple(changed(run, concurrency=size) for size in _halves(run.concurrency or 1))


def batch(run: Run, around: Around) -> tuple[Run, ...]:
    """Fewer sequences in a batch, halved down to one, where there is one request at once."""
    if (run.concurrency or 1) > 1:
        return ()
    return tuple(changed(run, micro_batch=size) for size in _halves(run.micro_batch or 1))


def _halves(known: int) -> list[int]:
    return [known >> shift for shift in range(1, known.bit_length())]


def int8(run: Run, around: Around) -> tuple[Run, ...]:
    """Weights in 8 bit by bitsandbytes."""
    return _quantised(run, around, "int8") if run.engine == "hf" and around.gpu.vendor in CUDA else ()


def fp8(run: Run, around: Around) -> tuple[Run, ...]:
    """Weights in fp8, where the card computes in it."""
    return _quantised(run, around, "fp8") if run.engine in SERVERS and around.gpu.fp8 else ()


def four_bit(run: Run, around: Around) -> tuple[Run, ...]:
    """Weights in 4 bit: bitsandbytes' NF4, or an AWQ upload for a serving engine."""
    if run.engine not in ("hf", *SERVERS) or around.gpu.vendor not in CUDA:
        return ()
    return _quantised(run, around, "nf4" if run.engine == "hf" else "awq-4bit-g128")


def _quantised(run: Run, around: Around, name: str) -> tuple[Run, ...]:
    known = weight_format(run.weight_format).bits if run.weight_format else 16.0
    return (around.refill(changed(run, weight_format=name)),) if weight_format(name).bits < known - 1 else ()


def gguf(run: Run, around: Around) -> tuple[Run, ...]:
    """Smaller GGUF types, down to 4 bit."""
    return _files(run, around, GGUF)


def low_bits(run: Run, around: Around) -> tuple[Run, ...]:
    """GGUF types of 3 and 2 bit."""
    return _files(run, around, GGUF_LOW)


def _files(run: Run, around: Around, names: tuple[str, ...]) -> tuple[Run, ...]:
    moved: dict[str, object] = {}
    if run.engine == "hf" and around.gpu.vendor == "Apple" and run.task == "infer":
        moved = {"engine": "llama.cpp", "parallel": None, "attention": None, "logits": None, "precision": None}
    elif run.engine not in FILES:
        return ()
    known = weight_format(run.weight_format).bits if run.weight_format else 16.0
    smaller = [name for name in names if weight_format(name).bits < known]
    return tuple(around.refill(changed(run, weight_format=name, **moved)) for name in smaller)


def context(run: Run, around: Around) -> tuple[Run, ...]:
    """Shorter prompts, down to a quarter."""
    known = int(run.context_len or 0)
    sizes = [known * part // 16 // STEP * STEP for part in range(15, 3, -1)]
    return tuple(changed(run, context_len=size) for size in dict.fromkeys(sizes) if LEAST_CONTEXT <= size < known)


def experts_on_cpu(run: Run, around: Around) -> tuple[Run, ...]:
    """llama.cpp computes the experts on the CPU."""
    known = run.serving.moe_on_cpu if run.serving else None
    if run.engine not in FILES or around.arch.experts is None or known or around.gpu.kind == UNIFIED:
        return ()
    return (with_serving(run, moe_on_cpu=True),)


def layers_on_cpu(run: Run, around: Around) -> Sequence[Run]:
    """llama.cpp keeps fewer layers on the card, down to one."""
    if run.engine not in FILES or around.gpu.kind == UNIFIED:
        return ()
    known = run.serving.n_gpu_layers if run.serving else None
    most = known if known is not None and 0 <= known <= around.arch.layers else around.arch.layers
    return Lazily(range(most - 1, 0, -1), lambda count: with_serving(run, n_gpu_layers=count))


def with_serving(run: Run, **fields: object) -> Run:
    """The run with these of its ``serving`` fields."""
    return changed(run, serving=(run.serving or Serving()).model_copy(update=fields))


def _cached(run: Run, dtype: str) -> Run:
    return changed(run, kv_cache=(run.kv_cache or KVCache()).model_copy(update={"dtype": dtype}))
