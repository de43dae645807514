"""Names of training and serving frameworks: one spelling each, and which ones are known here."""

import re

KNOWN = (
    *("transformers", "trl", "peft", "accelerate", "unsloth", "llama-factory", "axolotl", "ms-swift", "torchtune"),
    *("torchtitan", "litgpt", "fsdp_qlora", "minimind", "deepspeed", "megatron", "openrlhf", "verl", "autoawq"),
    *("vllm", "sglang", "tgi", "llama.cpp", "ollama", "exllama"),
)
OTHER_SPELLINGS = {
    "huggingface": "transformers",
    "hf": "transformers",
    "trainer": "transformers",
    "hiyougallamafactory": "llama-factory",
    "swift": "ms-swift",
    "megatronlm": "megatron",
    "megatroncore": "megatron",
    "fsdpqlora": "fsdp_qlora",
    "textgenerationinference": "tgi",
}


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


CANONICAL = {_squeezed(name): name for name in KNOWN} | OTHER_SPELLINGS


def canonical(name: str) -> str:
    """The framework's usual spelling; an unknown name in letters, digits and simple signs, cut short."""
    return CANONICAL.get(_squeezed(name)) or re.sub(r"[^\w.+ -]", "", name)[:40].strip() or "?"


def is_known(name: str) -> bool:
    """Whether anything is known of the framework's defaults."""
    return _squeezed(name) in CANONICAL


def unknown_note(name: str) -> tuple[str, str]:
    """What to say about a framework that is not known, in both languages."""
    return (
        f"framework {name} is not known here: transformers' defaults are taken",
        f"未收录框架 {name}：按 transformers 的默认值计算",
    )
