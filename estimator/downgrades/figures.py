"""The figures of a run that titles and flags are filled with."""

from typing import Any

from estimator.catalogue import find_gpu
from estimator.regimes import tokens_per_row
from estimator.schema import Parallel, Run

A_NODE = 8
"""Cards of one machine."""
FAMILIES = {"lion": "Lion"}
VISIBLE = {
    "NVIDIA": "CUDA_VISIBLE_DEVICES", "AMD": "HIP_VISIBLE_DEVICES", "Intel": "ZE_AFFINITY_MASK",
    "Huawei": "ASCEND_RT_VISIBLE_DEVICES",
}  # fmt: skip
SHARDING = {
    "fsdp1": ("FSDP", "FSDP"), "fsdp2": ("FSDP", "FSDP"), "deepspeed": ("ZeRO-3", "ZeRO-3"),
    "device_map": ("layers dealt out", "按层分摊"), "tensor": ("tensor parallel", "张量并行"),
    "expert": ("tensor and expert parallel", "张量并行加专家并行"),
}  # fmt: skip


def figures(run: Run) -> dict[str, Any]:
    """Figures by the name that stands in braces; ``rows`` is the micro-batch as trl counts it: in completions."""
    micro, accumulated, cards = run.micro_batch or 1, run.grad_accum or 1, run.gpu_count or 1
    users = run.concurrency if (run.concurrency or 1) > 1 else micro
    total = int(run.context_len or 0) + int(run.new_tokens or 0)
    return {
        "micro_batch": micro,
        "rows": micro * (run.rl.num_generations or 1 if run.rl and run.stage == "grpo" else 1),
        "share": f"{run.rl.colocated_share or 0:g}" if run.rl else "",
        "completion_len": run.rl.max_completion_len if run.rl else None,
        "percent": f"{100 * (run.rl.colocated_share or 0):g}" if run.rl else "",
        "grad_accum": accumulated,
        "effective": effective_batch(run),
        "rank": (run.adapter.rank if run.adapter else None) or 16,
        "seq_len": tokens_per_row(run),
        "weight_format": run.weight_format,
        "ollama_tag": _ollama_tag(run.weight_format),
        "precision": run.precision,
        "torch_dtype": "float16" if str(run.precision).endswith("fp16") else "bfloat16",
        "family": next((name for key, name in FAMILIES.items() if key in str(run.optimizer)), "AdamW"),
        "concurrency": run.concurrency or 1,
        "users": users,
        "context_len": run.context_len,
        "total_len": total,
        "cache_tokens": total * micro * (run.concurrency or 1),
        "gpu_count": cards,
        **_nodes(cards),
        "devices": ",".join(map(str, range(cards))),
        "visible": _visible(run),
        **_groups(run),
    }


def _nodes(cards: int) -> dict[str, str]:
    """How many processes a launcher starts on each machine: of more than eight cards, eight on each."""
    machines = cards // A_NODE if cards > A_NODE and cards % A_NODE == 0 else 1
    several, each = machines > 1, cards // machines
    return {
        "per_node": (f"--nnodes {machines} " if several else "") + f"--nproc_per_node {each}",
        "per_node_env": (f"NNODES={machines} " if several else "") + f"NPROC_PER_NODE={each}",
        "processes": f"--num_processes {cards}" + (f" --num_machines {machines}" if several else ""),
    }


def _ollama_tag(weight_format: str | None) -> str:
    """A GGUF type as the tags of ollama's library spell it: q4_K_M."""
    return (weight_format or "").replace("IQ", "iq").replace("Q", "q", 1)


def _visible(run: Run) -> str:
    """The variable that chooses among the cards of a vendor."""
    first = run.gpu if isinstance(run.gpu, str) or not run.gpu else run.gpu[0]
    vendor = find_gpu(str(first)).vendor if first else "NVIDIA"
    return VISIBLE.get(vendor, VISIBLE["NVIDIA"])


def _groups(run: Run) -> dict[str, Any]:
    parallel, serving = run.parallel, run.serving
    sharding = SHARDING.get(_shared_by(parallel) if parallel else "", ("", ""))
    pool = (serving.gpu_memory_utilization if serving else None) or 0
    return {
        "pool_share": f"{pool:g}",
        "pool_percent": f"{100 * pool:g}",
        "sharding": sharding[0],
        "sharding_zh": sharding[1],
        "zero": parallel.zero if parallel else 0,
        "axolotl_offload": "zero3_bf16_cpuoffload_all" if parallel and parallel.zero == 3 else "zero2",
        "tensor": parallel.tensor if parallel else 1,
        "expert": parallel.expert if parallel else 1,
        "kv": run.kv_cache.dtype if run.kv_cache else None,
        "ubatch": serving.ubatch if serving else None,
        "batched_tokens": serving.max_num_batched_tokens if serving else None,
        "max_num_seqs": serving.max_num_seqs if serving else None,
        "gpu_layers": serving.n_gpu_layers if serving else None,
        "layers": "layer" if serving and serving.n_gpu_layers == 1 else "layers",
    }


def _shared_by(parallel: Parallel) -> str:
    """How the cards share the model, as SHARDING names it."""
    if parallel.expert > 1:
        return "expert"
    return "tensor" if parallel.tensor > 1 else parallel.engine


def effective_batch(run: Run) -> int:
    """Sequences per update of the weights: micro-batch x accumulation x data-parallel ranks."""
    parallel = run.parallel
    ranks = parallel.data * parallel.replicate if parallel else 1
    return (run.micro_batch or 1) * (run.grad_accum or 1) * ranks
