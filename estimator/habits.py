"""What older packages do otherwise than those that are modelled: each habit under the name the step engine knows."""

from estimator.schema import Run
from estimator.stack import release_of
from estimator.step.quantised import BITSANDBYTES_4BIT

HALF_LOSS = {
    "gpt_bigcode", "gpt2", "gpt_neox", "bloom", "opt", "falcon", "mpt", "stablelm", "persimmon", "xglm", "dbrx",
}  # fmt: skip
"""Types whose own loss, before transformers 4.49, shifts and copies the logits as they are, without fp32."""

FULL_LOGITS_UNTIL = {
    **dict.fromkeys(("gptj", "gpt_neo", "codegen", "granitemoe"), (5, 0)),
    **dict.fromkeys(("mistral", "granite"), (4, 48)),
    "jetmoe": (4, 55),
    "starcoder2": (4, 47),
}
"""The release from which a type no longer puts fp32 logits in the place of the half ones; 4.46 where none is named."""

SHIFTED_UNTIL = (4, 49)
"""Before it logits are shifted and copied; since then the labels are shifted."""

REPEATED_KEYS = {
    **dict.fromkeys(("mistral", "mixtral", "qwen2", "phi3", "starcoder2"), (4, 48)),
    "qwen2_vl": (4, 52),
    **dict.fromkeys(("qwen2_moe", "jamba"), (5, 0)),
}
"""Types whose flash attention repeats keys and values for all query heads, and before which transformers.

Read in modeling_*.py of 4.45.2, 4.48.1, 4.49.0, 4.51.3, 4.53.3 and 4.56.2: the first five no longer do in 4.48.1,
qwen2_vl does in 4.51.3 and not in 4.53.3, the last two do in 4.56.2. Types that are not named were not found to.
"""

CACHE_WHEN_CHECKPOINTED = {"gpt_bigcode": (4, 53)}
"""Types that do not turn the cache off under gradient checkpointing, and before which transformers.

Every other type of 4.40 to 4.57 sets ``use_cache`` to False there (read in modeling_*.py of 13 releases).
"""

CACHE_TURNED_OFF = ("llama-factory", "axolotl", "ms-swift", "unsloth")
"""Frameworks that set ``use_cache`` to False themselves."""

CACHED_ROTARY = {
    "mixtral": (4, 48),
    **dict.fromkeys(
        ("falcon", "gpt_neox", "persimmon", "phi", "qwen2", "qwen2_moe", "stablelm", "starcoder2"), (4, 45)
    ),
    "mistral": (4, 42),
    **dict.fromkeys(("llama", "olmo"), (4, 41)),
}
"""Types whose every layer has cosines and sines of all positions as buffers, and before which transformers."""

OWN_MODELS = ("litgpt", "torchtitan", "torchtune", "megatron", "minimind")
"""Frameworks with model code of their own."""


def old_loss(run: Run, model_type: str) -> tuple[str, ...]:
    """How the loss of an older transformers treats its logits.

    Read in the ``ForCausalLM`` classes and loss/loss_utils.py of 4.40, 4.44 to 4.53, 4.55, 4.57 and 5.24.
    "shifted-logits": they are shifted and copied where newer ones shift the labels; "rebound-logits": fp32 logits take
    the place of the half ones; "half-loss": no fp32 is asked for; "logits-back": they are cast back before the return.
    """
    if (run.details or {}).get("loss") == "hf448":
        return ("shifted-logits",)
    release = release_of((run.stack or {}).get("transformers") or "")
    if release < SHIFTED_UNTIL and model_type in HALF_LOSS:
        return ("shifted-logits", "half-loss")
    found: tuple[str, ...] = ("shifted-logits",) if release < SHIFTED_UNTIL else ()
    if release < FULL_LOGITS_UNTIL.get(model_type, (4, 46)):
        found += ("rebound-logits", "logits-back") if model_type == "gpt_neo" else ("rebound-logits",)
    return found


def old_habits(run: Run, model_type: str) -> tuple[str, ...]:
    """What else older packages do.

    "repeated-keys": see ``REPEATED_KEYS``. "one-cast": before transformers 4.49 GPTQ is auto-gptq's, whose Triton
    kernels make the fp16 weight at once, for every use again (read in the copy that fms-acceleration carries).
    "half-ends": trl before 1 turns embeddings and head back to bf16 after peft's k-bit preparation of a 4-bit model
    (``peft_module_casting_to_bf16``; trl 0.13, trainer/sft_trainer.py). "inputs-kept": before bitsandbytes 0.43
    ``MatMul4Bit`` keeps its input for the backward (autograd/_functions.py, ``ctx.tensors``). "cache-returned": see
    ``CACHE_WHEN_CHECKPOINTED``; what holds the keys and values goes with the model's outputs.
    """
    stack = run.stack or {}
    release = release_of(stack.get("transformers") or "")
    flash = str(run.attention).startswith("flash")
    found: tuple[str, ...] = ("repeated-keys",) if flash and release < REPEATED_KEYS.get(model_type, (0, 0)) else ()
    if str(run.weight_format).startswith("gptq") and release < (4, 49):
        found += ("one-cast",)
    if str(run.weight_format) in BITSANDBYTES_4BIT and release_of(stack.get("bitsandbytes") or "") < (0, 43):
        found += ("inputs-kept",)
    if _ends_in_half(run) and release_of(stack.get("trl") or "") < (1, 0):
        found += ("half-ends",)
    found += cached_rotary(run, model_type)
    return (*found, "cache-returned") if _returns_cache(run, model_type, release) else found


def cached_rotary(run: Run, model_type: str) -> tuple[str, ...]:
    """See ``CACHED_ROTARY``."""
    release = release_of((run.stack or {}).get("transformers") or "")
    cached = run.framework not in OWN_MODELS and release < CACHED_ROTARY.get(model_type, (0, 0))
    return ("cached-rotary",) if cached else ()


def _ends_in_half(run: Run) -> bool:
    four_bit = str(run.weight_format) in BITSANDBYTES_4BIT
    return run.framework == "trl" and run.precision == "bf16" and four_bit and bool(run.kbit_prepare)


def _returns_cache(run: Run, model_type: str, release: tuple[int, int]) -> bool:
    checkpointed = run.gradient_checkpointing not in (None, "none", False)
    if not checkpointed or release >= CACHE_WHEN_CHECKPOINTED.get(model_type, (0, 0)):
        return False
    return run.framework not in CACHE_TURNED_OFF and (run.details or {}).get("use_cache") is not False
