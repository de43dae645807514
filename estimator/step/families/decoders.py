"""Dense decoders with rotary positions: which module (by name) composes which model type."""

ROTARY: dict[str, str] = {
    "llama": "llama",
    "qwen2": "llama",
    "mistral": "llama",
    "ministral": "llama",
    "bitnet": "bitnet",
    "minicpm3": "minicpm3",
    "youtu": "youtu",
    "exaone": "llama",
    "internlm3": "llama",
    "iquestcoder": "llama",
    "gemma3_text": "gemma3",
    "hunyuan_v1_dense": "hunyuan",
    "qwen3": "qwen3",
    "phi3": "phi3",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "olmo": "olmo",
    "olmo2": "olmo2",
    "olmo3": "olmo3",
    "granite": "granite",
    "cohere": "cohere",
    "cohere2": "cohere2",
    "glm": "glm",
    "glm4": "glm4",
    "smollm3": "smollm3",
    "starcoder2": "starcoder2",
    "exaone4": "exaone4",
    "arcee": "arcee",
    "jais2": "jais2",
    "nemotron": "nemotron",
    "stablelm": "stablelm",
    "seed_oss": "seed_oss",
    "helium": "helium",
    "ernie4_5": "ernie4_5",
    "ministral3": "ministral3",
    "apertus": "apertus",
}

NEAREST = {
    "baichuan": "a Llama with one fused projection of queries, keys and values (alibi biases left out)",
    "chatglm": "a GLM with one fused projection of queries, keys and values",
    "chatglm1": "a decoder with layer norms and a plain feed-forward block",
    "internlm": "a Llama",
    "internlm2": "a Llama with one fused projection of queries, keys and values",
    "mimo": "a Qwen 2 without its extra prediction layers",
    "minicpm": "a Llama (its multipliers left out)",
    "minimind": "a Llama",
    "minimind3": "a Qwen 3",
    "phi3small": "a Phi-3 with dense attention in place of its block-sparse one",
    "qwen": "a Llama with one fused projection of queries, keys and values",
}
"""Model types whose modelling code is not part of transformers, and what their timeline is composed as."""

KIN = {
    "apertus1p5_text": "the language model of Apertus 1",
    "gemma3n": "a Llama, without its per-layer inputs and its shared keys and values",
    "gemma4_text": "a decoder with four norms a layer, without per-layer inputs, shared keys and values, and experts",
    "glm4v_text": "a GLM-4-0414 with positions of one kind",
    "granite_swa": "a Llama, without its attention sinks and multipliers",
    "mllama": "a Llama, without its cross-attention layers",
    "muse_glimmer": "a Llama",
    "nemotron-nas": "a Llama of equal layers",
}
"""Model types with code in transformers that is not written out here, and what their timeline is composed as."""

APPROXIMATE: dict[str, str] = {
    **{
        name: f"the code of {name} is not part of transformers; it is counted as {kin}" for name, kin in NEAREST.items()
    },
    **{name: f"{name} is counted as {kin}" for name, kin in KIN.items()},
}
"""Model type to why its timeline is near the real one and not equal to it, in one sentence."""

ROTARY.update(dict.fromkeys((*NEAREST, *KIN), "nearest"))
ROTARY.update(apertus1p5_text="apertus", glm4v_text="glm4")
