"""Random runs of every kind, for properties."""

from typing import Any

from hypothesis import strategies as st

MODELS = (
    "qwen2.5-0.5b", "gpt2", "gemma-2-2b", "olmoe", "llama-3.1-8b", "qwen2.5-32b", "deepseek-v2-lite",
    "bert-base-uncased", "qwen3-30b-a3b", "falcon-7b", "phi-3-mini-4k-instruct", "mistral-7b-v0.1",
)  # fmt: skip
CARDS = (
    "6GB", "8GB", "12GB", "16GB", "24GB", "48GB", "80GB", "T4", "RTX 3090", "V100 16GB", "H100", "RX 7900 XTX",
    "Apple M3 Max 36GB", "RTX 4090 Laptop", "B200",
)  # fmt: skip
FRAMEWORKS = (
    None, "transformers", "trl", "llama-factory", "axolotl", "unsloth", "torchtune", "ms-swift", "minimind", "litgpt",
    "megatron", "torchtitan", "verl", "openrlhf", "deepspeed", "fsdp_qlora", "somebody's own",
)  # fmt: skip
METHODS = ("full", "lora", "qlora", "dora", "freeze", "galore", "apollo", "lomo", "badam")
OPTIMIZERS = (
    "adamw", "adamw-8bit", "adamw-4bit", "paged-adamw-32bit", "paged-adamw-8bit", "lion", "lion-8bit", "sgd",
    "sgd-momentum", "adafactor", "muon", "adam-mini",
)  # fmt: skip
STAGES = ("pretrain", "sft", "reward", "dpo", "orpo", "kto", "simpo", "grpo")


def _sometimes(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def training(draw: st.DrawFn) -> dict[str, Any]:
    """A training run; what is not drawn is left to the defaults."""
    method = draw(st.sampled_from(METHODS))
    cards = draw(_sometimes(st.sampled_from((1, 2, 4, 8))))
    kept = draw(_sometimes(st.sampled_from(("none", "full", "selective-op", "every-2", "offload"))))
    fields = {
        "framework": draw(st.sampled_from(FRAMEWORKS)),
        "stage": draw(_sometimes(st.sampled_from(STAGES))),
        "micro_batch": draw(st.integers(1, 12)),
        "grad_accum": draw(_sometimes(st.integers(1, 8))),
        "seq_len": draw(st.integers(64, 1024)),
        "packing": draw(_sometimes(st.booleans())),
        "precision": draw(_sometimes(st.sampled_from(("bf16", "amp-bf16", "fp32")))),
        "gradient_checkpointing": kept,
        "attention": draw(_sometimes(st.sampled_from(("eager", "sdpa", "flash2")))),
        "loss": draw(_sometimes(st.sampled_from(("standard", "chunked", "fused", "fused-ce-logits")))),
        "optimizer": draw(_sometimes(st.sampled_from(OPTIMIZERS))),
        "optimizer_impl": draw(_sometimes(st.sampled_from(("foreach", "fused")))),
        "adapter": {"rank": draw(st.sampled_from((8, 16, 64)))} if method in ("lora", "dora", "qlora") else None,
        "gpu_count": cards,
        "parallel": draw(_sometimes(layouts(cards))) if cards and cards > 1 else None,
        "offload": draw(_sometimes(st.sampled_from(({"optimizer": "cpu"}, {"activations": "cpu"})))),
        "host_ram_gib": draw(_sometimes(st.sampled_from((16, 128, 2048)))),
    }
    return _given({"task": "train", "method": method, **fields})


@st.composite
def layouts(draw: st.DrawFn, cards: int) -> dict[str, Any]:
    """How a training run is laid over its cards."""
    engine = draw(st.sampled_from(("ddp", "fsdp1", "fsdp2", "deepspeed", "megatron")))
    tensor = draw(st.sampled_from((1, 2))) if engine in ("fsdp2", "megatron") else 1
    zero = draw(st.sampled_from((1, 2, 3))) if engine == "deepspeed" else 3 if engine.startswith("fsdp") else 0
    return {"engine": engine, "data": cards // tensor, "tensor": tensor, "zero": zero}


@st.composite
def inference(draw: st.DrawFn) -> dict[str, Any]:
    """A generation with transformers or llama.cpp."""
    fields = {
        "weight_format": draw(_sometimes(st.sampled_from(("nf4", "int8", "Q8_0", "Q4_K_M", "gptq-4bit-g128")))),
        "precision": draw(_sometimes(st.sampled_from(("fp32", "bf16")))),
        "context_len": draw(st.integers(16, 700)),
        "new_tokens": draw(st.integers(0, 300)),
        "concurrency": draw(_sometimes(st.integers(1, 16))),
        "logits": draw(_sometimes(st.sampled_from(("last", "all")))),
        "attention": draw(_sometimes(st.sampled_from(("eager", "sdpa")))),
    }
    return _given({"task": "infer", **fields})


@st.composite
def serving(draw: st.DrawFn) -> dict[str, Any]:
    """A serving engine's run."""
    engine = draw(st.sampled_from(("vllm", "sglang", "tgi", "llama.cpp", "ollama")))
    files = engine in ("llama.cpp", "ollama")
    formats = ("Q8_0", "Q4_K_M", "Q2_K") if files else ("fp8", "awq-4bit-g128", "gptq-4bit-g128")
    fields = {
        "engine": engine,
        "weight_format": draw(_sometimes(st.sampled_from(formats))),
        "context_len": draw(_sometimes(st.integers(256, 40_000))),
        "new_tokens": draw(_sometimes(st.integers(1, 1000))),
        "concurrency": draw(_sometimes(st.integers(1, 64))),
        "gpu_count": draw(_sometimes(st.sampled_from((1, 2, 4)))),
        "kv_cache": draw(_sometimes(st.sampled_from(({"dtype": "q8_0"},) if files else ({"dtype": "fp8"},)))),
    }
    return _given({"task": "serve", **fields})


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """A run of any kind on any card."""
    kind = draw(training() | inference() | serving())
    return {"model": draw(st.sampled_from(MODELS)), "gpu": draw(st.sampled_from(CARDS)), **kind}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


LARGE_MODELS = ("deepseek-v3", "mixtral-8x7b", "llama-3.1-70b", "qwen2.5-72b", "qwen3-235b-a22b")
OTHER_CARDS = (
    "RTX 3090", "8GB", "H100", "MI300X", "Ascend 910B", "Ascend 910B4", "Apple M2 Ultra 64GB", "DGX Spark",
    "H100 MIG 1g.10gb", "RTX 4090 Laptop", "L40S",
)  # fmt: skip


@st.composite
def large(draw: st.DrawFn) -> dict[str, Any]:
    """A run of a model that few cards hold, on cards of every maker: what other hardware is planned for."""
    kind = draw(_large_training() | inference() | serving())
    kind.pop("host_ram_gib", None)
    return {**kind, "model": draw(st.sampled_from(LARGE_MODELS)), "gpu": draw(st.sampled_from(OTHER_CARDS))}


@st.composite
def _large_training(draw: st.DrawFn) -> dict[str, Any]:
    """Training of large models: pipelines and experts under Megatron, online stages beside vLLM."""
    fields = draw(training())
    if fields.get("framework") == "megatron":
        pipeline = draw(st.sampled_from((1, 2, 4)))
        layout = {"engine": "megatron", "pipeline": pipeline, "data": 8 // pipeline}
        return {**fields, "method": "full", "gpu_count": 8, "parallel": layout, "adapter": None}
    if fields.get("stage") == "grpo":
        online = {"num_generations": draw(st.sampled_from((4, 8))), "max_completion_len": 512}
        shared = {"engine": "vllm", "colocated_share": draw(st.sampled_from((0.3, 0.5)))}
        return {**fields, "seq_len": 1024, "rl": {**online, **draw(st.sampled_from(({}, shared)))}}
    return fields
