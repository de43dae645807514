"""What the words of a run imply of it: the task, the method that a format means, the cards that share the work."""

from typing import Any

from bot.intake.names import has_experts
from estimator.serving.engines import FILES, SERVERS
from estimator.step.quantised import BITSANDBYTES_4BIT

Fields = dict[str, Any]

GGUF_OF = {"nf4": "Q4_K_M", "fp4": "Q4_K_M", "nf4-dq": "Q4_K_M", "int8": "Q8_0"}
"""What "4bit" and "8bit" mean to an engine that reads GGUF files."""
BITS = "4bit"
"""Four bits without a type: bitsandbytes' own, but for experts that only run, which it leaves in 16 bit."""
SHORT = {"q4": ("Q4_K_M", "nf4"), "q8": ("Q8_0", "int8")}
"""Bits as llama.cpp's users write them: its usual file, and what of so many bits trains or is served."""
ENGINE_OF_CACHE = {"fp8": "vllm", "q8_0": "llama.cpp", "q4_0": "llama.cpp"}
"""Whose cache has such a type; transformers keeps its own in the compute type."""
OF_TRAINING = ("method", "stage", "optimizer", "gradient_checkpointing", "grad_accum", "micro_batch", "epochs")


def settled(fields: Fields, running: bool) -> Fields:
    """The run with what its own words imply; ``running`` says that the message speaks of running the model."""
    run = dict(fields)
    if "adapter" in run:
        run.setdefault("method", "lora")
    _settle_short_format(run)
    _settle_task(run, running)
    if run.get("task") == "infer" and not run.get("engine") and (run.get("parallel") or {}).get("tensor", 1) > 1:
        run["task"] = "serve"  # the layers of a model are split by engines that serve
    _settle_adapters(run)
    _settle_method(run)
    _settle_cards(run)
    if run.get("engine") in FILES and run.get("weight_format") in GGUF_OF:
        run["weight_format"] = GGUF_OF[run["weight_format"]]
    if run.get("task") in ("infer", "serve") and "seq_len" in run:
        run["context_len"] = run.pop("seq_len")
    if run.get("task") == "train" and "context_len" in run:
        run["seq_len"] = run.pop("context_len")
    return run


def _settle_short_format(run: Fields) -> None:
    short = run.get("weight_format")
    trains = run.get("task") == "train" or any(run.get(name) for name in OF_TRAINING) or _is_sharded(run)
    served = run.get("task") == "serve" or run.get("engine") not in (None, *FILES)
    if short in SHORT:
        file, other = SHORT[short]
        run["weight_format"] = other if trains or served else file
    elif short == BITS and (trains or run.get("task") or run.get("engine")):
        apart = trains or run.get("engine") in FILES or not has_experts(str(run.get("model")))
        run["weight_format"] = "nf4" if apart else "gptq-4bit-g128"


def _settle_adapters(run: Fields) -> None:
    """A server keeps slots for the adapters that it is handed (one where no number is said); training has no slots."""
    told = dict(run.get("serving") or {})
    if run.get("task") == "serve" and run.get("method") == "lora":
        told.setdefault("lora_slots", 1)
    elif run.get("task") != "serve" and told.pop("lora_slots", None):
        run.setdefault("method", "lora")
    if told or "serving" in run:
        run["serving"] = told
    if not told:
        run.pop("serving", None)


def _settle_task(run: Fields, running: bool) -> None:
    _settle_cache(run)
    if "task" in run:
        return
    if run.get("engine") in SERVERS:
        run["task"] = "serve"
    elif any(run.get(name) for name in OF_TRAINING) or _is_sharded(run):
        run["task"] = "train"
    elif run.get("concurrency"):
        run["task"] = "serve"  # users and requests are those of a server
    elif (
        run.get("engine")
        or run.get("new_tokens")
        or run.get("serving")
        or run.get("kv_cache")
        or _is_file_format(run)
        or (running and _is_chat_model(run))
    ):
        run["task"] = "infer"


def _settle_cache(run: Fields) -> None:
    """The engine that keeps such a cache, where none is named."""
    engine = ENGINE_OF_CACHE.get(str((run.get("kv_cache") or {}).get("dtype")))
    if engine and not run.get("engine") and run.get("task") in (None, "infer"):
        run["engine"] = engine
        if engine in SERVERS:
            run["task"] = "serve"


def _is_sharded(run: Fields) -> bool:
    """Whether the run is spread as only training is: ZeRO, FSDP, DDP."""
    return (run.get("parallel") or {}).get("engine") in ("deepspeed", "fsdp1", "fsdp2", "ddp")


def _is_file_format(run: Fields) -> bool:
    return str(run.get("weight_format", "")).startswith(("Q", "IQ"))


def _is_chat_model(run: Fields) -> bool:
    return any(word in str(run.get("model", "")).lower() for word in ("instruct", "chat"))


def _settle_method(run: Fields) -> None:
    training = run.get("task") in (None, "train")
    if training and run.get("method") == "lora" and run.get("weight_format") in BITSANDBYTES_4BIT:
        run["method"] = "qlora"
    elif run.get("method") == "qlora":
        run.setdefault("weight_format", "nf4")


def _settle_cards(run: Fields) -> None:
    """Sharding spreads over all the cards; a server splits its model over them unless told otherwise."""
    count, parallel = run.get("gpu_count", 1), dict(run.get("parallel") or {})
    if run.get("task") == "serve" and count > 1 and not parallel:
        parallel = {"tensor": count}
    elif parallel and run.get("task") in (None, "train"):
        spread = parallel.get("tensor", 1) * parallel.get("pipeline", 1) * parallel.get("context", 1)
        if count % spread == 0 and count > spread:
            parallel["data"] = count // spread
    if parallel:
        run["parallel"] = parallel
