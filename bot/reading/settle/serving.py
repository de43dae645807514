"""Serving and inference commands: what each engine's flags mean for its memory."""

import re
from math import prod

from bot.reading.draft import Draft
from bot.reading.facts import Fact
from bot.reading.scalars import switch, words_of
from bot.reading.settle.spread import visible_cards
from bot.reading.tables import words

BNB = ("vllm", "sglang")


def settle_serving(draft: Draft) -> None:
    """Everything of a serving run but the model and the engine."""
    _engine(draft)
    _weights(draft)
    _cards(draft)
    _lengths(draft)
    for field, fact in (
        ("serving.gpu_memory_utilization", "share"),
        ("serving.max_num_seqs", "max_num_seqs"),
        ("serving.max_num_batched_tokens", "max_num_batched_tokens"),
        ("serving.ubatch", "ubatch"),
    ):
        draft.copy(field, fact)
    _graphs(draft)
    _cache(draft)
    _extras(draft)
    _layers(draft)


def _engine(draft: Draft) -> None:
    stated = draft.facts.stated("engine")
    name = str(stated.value).lower() if stated else draft.tool.engine
    engine = {"huggingface": "hf", "transformers": "hf", "pt": "hf"}.get(name, name)
    if engine:
        draft.put("engine", engine, stated or draft.identified)
    elif draft.tool.framework == "litgpt":
        draft.put("engine", "litgpt", draft.identified)
    if engine == "vllm" and draft.tool.framework:
        draft.has("vllm")


def _weights(draft: Draft) -> None:
    """The type of the weights, and their quantised format."""
    kind = draft.facts.stated("dtype")
    name = words("dtype").get(str(kind.value).lower()) if kind else None
    if kind and name in ("bf16", "fp16", "fp32"):
        draft.put("precision", name, kind)
    whole = draft.facts.stated("precision_name")
    if whole and (named := words("precision").get(str(whole.value).lower())) in ("bf16", "fp16", "fp32"):
        draft.put("precision", named, whole)
    stated, upload = draft.facts.stated("quantization", "quantize"), draft.facts.stated("upload_format")
    word = str(stated.value).lower() if stated else ""
    form = words("weight_format").get(word)
    if word == "bitsandbytes" and draft.tool.engine in BNB:
        form = "nf4"
    if upload and (form is None or form.split("-")[0] == str(upload.value).split("-")[0] or word == "bitsandbytes"):
        draft.put("weight_format", upload.value, upload)
    elif stated and form:
        draft.put("weight_format", form, stated)


def _cards(draft: Draft) -> None:
    axes = {axis: draft.facts.stated(axis) for axis in ("tensor", "pipeline", "data", "expert")}
    if draft.tool.framework and (split := draft.facts.stated("rollout_tensor")):
        axes["tensor"] = split
    for axis, found in axes.items():
        if found and found.value > 1:
            draft.put(f"parallel.{axis}", found.value, found)
    _experts(draft)
    shared = draft.on("dp_attention")
    counted = [one for axis, one in axes.items() if one and axis != "expert" and not (shared and axis == "data")]
    visible = visible_cards(draft)
    if counted:
        draft.put("gpu_count", prod(one.value for one in counted), *counted)
    elif visible:
        one_card = draft.tool.engine in ("vllm", "sglang") and draft.facts.stated("docker_gpus") is None
        draft.put("gpu_count", 1 if one_card else visible.value, visible)
        if not one_card and visible.value > 1 and draft.tool.engine == "tgi":
            draft.put("parallel.tensor", visible.value, visible)
    split = draft.facts.stated("tensor_split")
    if split and len(words_of(split.value)) > 1:
        draft.put("gpu_count", len([one for one in words_of(split.value) if one not in ("0", "0.0")]), split)
    draft.copy("nodes", "nodes")


def _experts(draft: Draft) -> None:
    """VLLM's expert group is tensor x data."""
    found = draft.facts.stated("expert_parallel")
    if found and found.value is True and not draft.facts.stated("expert"):
        group = draft.run.get("parallel.tensor", 1) * draft.run.get("parallel.data", 1)
        draft.put("parallel.expert", group, found)


def _lengths(draft: Draft) -> None:
    new = draft.facts.stated("new_tokens")
    longest = draft.facts.best("max_model_len")
    if longest:
        draft.put("context_len", longest.value, longest)
    if new and new.value > 0:
        draft.put("new_tokens", new.value, new)
    given, total = draft.facts.stated("input_len"), draft.facts.stated("total_len")
    if given and total:
        draft.put("context_len", given.value, given)
        draft.put("new_tokens", max(0, total.value - given.value), total, given)
        if total.value <= given.value:
            draft.clash("total_too_small", given.key, total.key)
    elif given or total:
        draft.put("context_len", (given or total).value, given or total)  # type: ignore[union-attr]
    _slots(draft)


def _slots(draft: Draft) -> None:
    """llama.cpp's -c is the whole cache, shared by its slots; Ollama's num_ctx is one request's."""
    total, slots = draft.facts.stated("cache_tokens"), draft.facts.best("slots")
    count = slots.value if slots else 1
    if total and total.value > 0:
        each = total.value // count
        draft.put("context_len", each if count == 1 else max(each, 1), total, slots)
    one = draft.facts.stated("context_len")
    if one and one.value > 0:
        draft.put("context_len", one.value, one)
    if slots and (slots.rank or count > 1):
        draft.put("concurrency", count, slots)


def _graphs(draft: Draft) -> None:
    eager, listed = draft.facts.stated("eager"), draft.facts.stated("cuda_graphs_list")
    if eager:
        draft.put("serving.cuda_graphs", not eager.value, eager)
    elif listed:
        draft.put("serving.cuda_graphs", words_of(listed.value) != ["0"], listed)


def _cache(draft: Draft) -> None:
    found, other = draft.facts.stated("kv_dtype"), draft.facts.stated("kv_dtype_v")
    if found is None:
        found = other
    if found is None:
        return
    draft.put("kv_cache.dtype", str(found.value).lower(), found)
    if other and str(other.value) != str(found.value):
        draft.put("details.kv_cache_dtype_v", str(other.value).lower(), other)


def _extras(draft: Draft) -> None:
    adapters = draft.facts.stated("serve_lora")
    slots = draft.facts.stated("lora_slots")
    if adapters and adapters.value is True:
        draft.has("serve_lora")
        draft.copy("serving.lora_slots", "lora_slots")
    elif slots and adapters is None and slots.value > 0:
        draft.put("serving.lora_slots", slots.value, slots)
    drafted = draft.facts.stated("draft_model")
    if drafted and isinstance(drafted.value, str) and not drafted.value.startswith("["):
        draft.put("serving.draft_model", _file_model(drafted.value), drafted)
    offloaded = draft.facts.stated("cpu_offload_gb")
    if offloaded and offloaded.value > 0:
        draft.put("offload.parameters", "cpu", offloaded)


def _layers(draft: Draft) -> None:
    """llama.cpp and Ollama: layers on the card, experts in host memory."""
    found = draft.facts.stated("gpu_layers")
    if found and not (draft.tool.engine == "ollama" and found.value < 0):
        draft.put("serving.n_gpu_layers", found.value, found)
    whole, some, override = (draft.facts.stated(name) for name in ("moe_cpu", "moe_cpu_layers", "override_tensor"))
    if whole and whole.value is True:
        draft.put("serving.moe_on_cpu", True, whole)
    elif some and some.value > 0:
        draft.put("serving.moe_on_cpu", some.value, some)
    elif override and re.search(r"exps.*=\s*CPU", str(override.value)):
        draft.put("serving.moe_on_cpu", True, override)
    flash = draft.facts.stated("flash")
    if flash and (str(flash.value).lower() == "on" or switch(flash.value) is True):
        draft.put("attention", "flash2", flash)


def _file_model(name: str) -> str:
    """The model in a file's name: folders and the format's ending go."""
    if not name.lower().endswith((".gguf", ".bin")):
        return name
    return re.sub(r"(?:-\d{5}-of-\d{5})?\.(gguf|bin)$", "", name.rstrip("/").rsplit("/", 1)[-1], flags=re.IGNORECASE)


def file_fact(fact: Fact) -> Fact:
    """A model given as a file, by its name."""
    return Fact(_file_model(str(fact.value)), fact.key, fact.line, fact.rank, fact.source)
