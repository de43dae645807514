"""Which model: a name, the size in a component's or flavour's name, or a shape given by flags."""

import re
from math import ceil, pi
from typing import Any

from bot.reading.draft import Draft
from bot.reading.facts import Fact
from bot.reading.folders import model_of_folder
from estimator.catalogue import rows

COMPONENTS = {
    "llama2": "Llama-2-{}", "llama3": "Meta-Llama-3-{}", "llama3_1": "Llama-3.1-{}", "llama3_2": "Llama-3.2-{}",
    "llama3_2_vision": "Llama-3.2-{}-Vision", "llama3_3": "Llama-3.3-{}", "code_llama2": "CodeLlama-{}",
    "gemma": "gemma-{}", "gemma2": "gemma-2-{}", "mistral": "Mistral-{}-v0.1", "phi3": "Phi-3-{}", "phi4": "phi-4",
    "qwen2": "Qwen2-{}", "qwen2_5": "Qwen2.5-{}", "qwen3": "Qwen3-{}", "llama4": "Llama-4-{}",
}  # fmt: skip
"""Model names by torchtune's family packages (0.7.0 torchtune/models)."""
TITAN = {
    "llama3": "Llama-3.1-{}", "llama4": "Llama-4-{}", "qwen3": "Qwen3-{}", "deepseek_v3": "DeepSeek-{}",
    "gpt_oss": "gpt-oss-{}",
}  # fmt: skip
HF = {
    "shape_layers": "num_hidden_layers", "shape_hidden": "hidden_size", "shape_ffn": "intermediate_size",
    "shape_heads": "num_attention_heads", "shape_kv": "num_key_value_heads", "shape_head_dim": "head_dim",
    "shape_vocab": "vocab_size", "shape_experts": "num_experts", "shape_topk": "num_experts_per_tok",
    "shape_moe_ffn": "moe_intermediate_size",
}  # fmt: skip


def settle_model(draft: Draft) -> None:
    """``model``."""
    component = draft.facts.best("component")
    if component and (name := name_of_component(str(component.value))):
        draft.put("model", name, component)
    elif draft.tool.framework == "torchtitan":
        _titan(draft)
    elif draft.named("model"):
        _by_name(draft)
    elif draft.named("shape_layers") or draft.tool.framework == "minimind":
        _by_shape(draft)


def _by_name(draft: Draft) -> None:
    found = draft.facts.stated("model")
    if found is None or not isinstance(found.value, str) or not found.value.strip():
        return
    name = found.value.strip().rstrip("/")
    if draft.tool.name == "litgpt":
        name = re.sub(r"^(?:\./)?checkpoints/", "", name)
    draft.put("model", model_of_folder(name[:200]), found)


def name_of_component(component: str) -> str | None:
    """``torchtune.models.llama3_1.lora_llama3_1_8b`` as ``Llama-3.1-8B``; None for what is no model of torchtune."""
    found = re.search(r"torchtune\.models\.(\w+)\.(?:q?lora_)?(\w+)$", component)
    if found is None or found[1] not in COMPONENTS:
        return None
    rest = found[2].removeprefix(found[1]).strip("_")
    size, _, suffix = rest.partition("b")
    if not rest or not size.replace("_", "").isdigit():
        return COMPONENTS[found[1]].format(rest or "mini").rstrip("-")
    return COMPONENTS[found[1]].format(size.replace("_", ".") + "B") + ("-Instruct" if "instruct" in suffix else "")


def _titan(draft: Draft) -> None:
    """torchtitan: the folder of the tokenizer or weights names the model; else family and flavour."""
    family, flavor, assets = (draft.facts.stated(name) for name in ("titan_name", "titan_flavor", "assets"))
    folder = str(assets.value).rstrip("/").rsplit("/", 1)[-1] if assets else ""
    size = str(flavor.value) if flavor else ""
    if (
        folder
        and re.search(r"\d", folder)
        and "tokenizer" not in folder
        and (not size or size.lower() in folder.lower())
    ):
        draft.put("model", folder, assets, flavor)
    elif by_name := _titan_file(draft.facts.stated("titan_config")):
        draft.put("model", by_name, f"{draft.facts.stated('titan_config').origin}, read by its name")  # type: ignore[union-attr]
    elif family and flavor and str(family.value) in TITAN and re.match(r"\d", size):
        draft.put("model", TITAN[str(family.value)].format(size), family, flavor)


def _titan_file(found: Fact | None) -> str | None:
    """The model in the name of a config such as ``llama3_8b.toml``; debug configs have none."""
    match = (
        re.search(r"(llama3|llama4|qwen3|deepseek_v3|gpt_oss)_(\d+b)\b", str(found.value).lower()) if found else None
    )
    return TITAN[match[1]].format(match[2].upper()) if match else None


def _by_shape(draft: Draft) -> None:
    """Flags of a shape as keys of a config.json."""
    shape: dict[str, Any] = {}
    told: list[Fact] = []
    for fact, key in HF.items():
        found = draft.facts.best(fact)
        if found and found.value:
            shape[key] = found.value
            told += [found] if found.rank else []
    if draft.tool.framework == "minimind":
        shape = _minimind(draft, shape)
    elif draft.tool.framework == "megatron":
        _megatron(draft, shape)
    if "num_hidden_layers" in shape and "hidden_size" in shape:
        draft.put("model", shape, *told, None if told else draft.default("the shape of MiniMind"))


def _minimind(draft: Draft, shape: dict[str, Any]) -> dict[str, Any]:
    """MiniMind 3 at another width and depth: 8 heads, 4 for keys and values, an MLP of pi times the width."""
    known = rows.model_row("jingyaogong/minimind-3-moe" if draft.on("shape_moe") else "jingyaogong/minimind-3").config
    hidden = int(shape.get("hidden_size", 768))
    mlp = 64 * ceil(hidden * pi / 64)
    own = {"intermediate_size": mlp, "head_dim": hidden // int(known.get("num_attention_heads", 8))}
    moe = {"moe_intermediate_size": mlp} if "moe_intermediate_size" in known else {}
    return {**known, **own, **moe, **shape}


def _megatron(draft: Draft, shape: dict[str, Any]) -> None:
    """Megatron ties by default, groups queries only when told, and pads the vocabulary."""
    shape["model_type"] = "llama" if draft.on("shape_swiglu") else "gpt2"
    shape["tie_word_embeddings"] = not draft.on("shape_untied")
    if not draft.on("shape_gqa"):
        shape.pop("num_key_value_heads", None)
    if "intermediate_size" not in shape and "hidden_size" in shape:
        shape["intermediate_size"] = 4 * shape["hidden_size"]
