"""Which type weights and computation have, as each tool understands its flags."""

import re
from collections.abc import Callable
from typing import Any

from bot.reading.draft import Draft
from bot.reading.facts import Fact
from bot.reading.scalars import switch
from bot.reading.tables import words

HALVES = ("bf16", "fp16")
TRAINER = re.compile(r"^(?:SFT|DPO|GRPO|KTO|ORPO|CPO|Reward|RLOO)Trainer\.model$")


def settle_precision(draft: Draft) -> None:
    """``precision`` and ``autocast`` by the tool's own rule."""
    _accelerated(draft)
    _check(draft)
    RULES[draft.tool.precision or "autocast"](draft)


def _accelerated(draft: Draft) -> None:
    """Accelerate's mixed_precision is the flag of the same name, unless the tool has its own."""
    mixed = draft.facts.stated("mixed_precision")
    if mixed and str(mixed.value).lower() in HALVES and not draft.named("bf16", "fp16"):
        name = str(mixed.value).lower()
        draft.facts.put(name, Fact(True, mixed.key, mixed.line, mixed.rank, mixed.source))


def _check(draft: Draft) -> None:
    bf16, fp16 = draft.facts.stated("bf16"), draft.facts.stated("fp16")
    if bf16 and fp16 and switch(bf16.value) is True and fp16.value is True:
        draft.clash("one_half", bf16.key, fp16.key)
    one, other = draft.facts.stated("ds_bf16"), draft.facts.stated("ds_fp16")
    if one and other and one.value is True and other.value is True:
        draft.clash("one_half", "bf16", "fp16")


def _flag(draft: Draft) -> Fact | None:
    """The half type that autocast runs in, with what says so; stated flags come before the tool's default."""
    for least in (1, 0):
        for name in HALVES:
            found = draft.facts.best(name)
            on = (
                found is not None
                and found.rank >= least
                and switch(found.value) is not False
                and found.value is not None
            )
            if found and on and (least or not draft.named("fp16", "bf16")):
                return Fact(name, found.key, found.line, found.rank, found.source)
    one = draft.facts.best("bf16")
    return (
        Fact("bf16", one.key, one.line, 0, one.source)
        if one and not one.rank and not draft.named("bf16", "fp16")
        else None
    )


def _type(draft: Draft, *names: str) -> Fact | None:
    """A stated type of weights: bf16, fp16 or fp32; "auto" and unknown names give none."""
    found = draft.facts.best(*(names or ("dtype",)))
    name = words("dtype").get(str(found.value).lower().removeprefix("torch.")) if found else None
    return Fact(name, found.key, found.line, found.rank, found.source) if found and name else None


def _sharded(draft: Draft, half: Fact) -> str | None:
    """What half precision means under DeepSpeed and FSDP; None where neither is used."""
    engine = draft.run.get("parallel.engine")
    if engine == "deepspeed":
        return f"deepspeed-{half.value}"
    full = draft.run.get("method") in (None, "full", "freeze")
    return "fsdp-mixed-bf16" if engine in ("fsdp1", "fsdp2") and full and half.value == "bf16" else None


def _trainer(draft: Draft, weights: Fact | None, half: Fact | None) -> None:
    """Weights of one type under autocast in another."""
    sharded = _sharded(draft, half) if half else None
    if half and sharded:
        draft.put("precision", sharded, half)
    elif half and weights is None:
        _stored(draft, half)
    elif half and weights:
        kept = weights.value if weights.value in HALVES else f"amp-{half.value}"
        draft.put("precision", kept, half, weights)
        draft.put("autocast", True, half)
    elif weights:
        draft.put("precision", weights.value, weights)


def _stored(draft: Draft, half: Fact) -> None:
    """No type is given: transformers 5 keeps the type that the model is stored in."""
    given = draft.facts.stated("model")
    if given and TRAINER.search(given.key):
        draft.put("precision", f"amp-{half.value}", half, "trl loads a model that it is given by name in float32")
        draft.put("autocast", True, half)
        return
    stored = draft.facts.get("stored")
    if stored in HALVES:
        draft.put("precision", stored, half, "transformers 5 keeps the stored type")
    elif stored == "fp32":
        draft.put("precision", f"amp-{half.value}", half)
    draft.put("autocast", True, half)


def _autocast(draft: Draft) -> None:
    if (
        not draft.tool.framework
        and draft.run.get("parallel.engine") in (None, "none", "ddp")
        and (half := _flag(draft))
    ):
        draft.put("precision", f"amp-{half.value}", half)
        return
    if not draft.tool.framework and (half := _flag(draft)):
        draft.put("precision", _sharded(draft, half) or f"amp-{half.value}", half)
        return
    _trainer(draft, _type(draft), _flag(draft))


def _by_dtype(draft: Draft) -> None:
    _trainer(draft, _type(draft), _flag(draft))


def _half(draft: Draft) -> None:
    """Weights in the type of the flag, run under autocast; ``bfloat16``/``float16`` and ``bf16: full`` without it."""
    pure = draft.facts.stated("pure_bf16", "pure_fp16")
    if pure and pure.value is True and not draft.named("bf16", "fp16"):
        draft.put("precision", "bf16" if draft.facts.stated("pure_bf16") else "fp16", pure)
        draft.put("autocast", False, pure)
        return
    half = _flag(draft)
    if half is None:
        off = draft.facts.stated("bf16", "fp16")
        draft.put("precision", "fp32", off) if off else None
        return
    if draft.on("fp8"):
        draft.put("precision", "fp8", draft.facts.best("fp8"))
        return
    draft.put("precision", _sharded(draft, half) or half.value, half)
    if not _sharded(draft, half):
        found = draft.facts.best(str(half.value))
        draft.put("autocast", str(found.value if found else "").lower() != "full", half)


def _trainables_fp32(draft: Draft) -> None:
    """LLaMA-Factory: the base in the compute type, what is trained in fp32 unless pure_bf16."""
    pure = draft.facts.stated("pure_bf16")
    if pure and pure.value is True:
        draft.put(
            "precision", _sharded(draft, Fact("bf16", pure.key, pure.line, pure.rank, pure.source)) or "bf16", pure
        )
        draft.put("autocast", False, pure)
        return
    half = _flag(draft)
    if half is None:
        return
    half_base = draft.run.get("method") in ("lora", "qlora", "dora", "freeze", "badam")
    sharded = _sharded(draft, half)
    draft.put("precision", sharded or (half.value if half_base else f"amp-{half.value}"), half)
    if not sharded:
        draft.put("autocast", True, half)


def _dtype_and_autocast(draft: Draft) -> None:
    """ms-swift: autocast follows the weights' type; fp16 for float16 and float32."""
    weights, flag = _type(draft), _flag(draft)
    half = weights if weights and weights.value in HALVES else flag
    if half is None and weights is None:
        return
    if half is None or (weights and weights.value == "fp32"):
        draft.put("precision", f"amp-{flag.value if flag else 'fp16'}", weights)
        return
    sharded = _sharded(draft, half)
    draft.put("precision", sharded or (weights or half).value, half)
    if not sharded:
        draft.put("autocast", True, half)


def _weights(draft: Draft) -> None:
    found = _type(draft)
    if found:
        draft.put("precision", found.value, found)
        draft.put("autocast", False, draft.default("weights, gradients and states in dtype"))


def _named(draft: Draft) -> None:
    found = draft.facts.best("precision_name")
    name = words("precision").get(str(found.value).lower()) if found else None
    if found and name:
        draft.put("precision", name, found)
        draft.put("autocast", name.startswith("amp"), found)


def _fsdp_mixed(draft: Draft) -> None:
    """fp32 shards gathered and computed in bf16; float8 converters and a stated type change that."""
    converters = [str(one) for one in draft.facts.get("converters") or []]
    if any("float8" in one or "mx" in one for one in converters):
        draft.put("precision", "fp8", draft.facts.best("converters"))
        return
    weights, parameters = _type(draft, "titan_dtype"), _type(draft, "param_dtype")
    if weights and weights.value in HALVES:
        draft.put("precision", weights.value, weights)
    elif parameters and parameters.value == "fp32":
        draft.put("precision", "fp32", parameters)
    else:
        draft.put("precision", "fsdp-mixed-bf16", parameters or draft.default("bf16 compute over fp32 shards"))


def _megatron(draft: Draft) -> None:
    half = _flag(draft) or _type(draft)
    if draft.facts.stated("fp8"):
        draft.put("precision", "fp8", draft.facts.stated("fp8"))
    elif half and half.value in HALVES:
        draft.put("precision", f"deepspeed-{half.value}", half)
    elif draft.tool.framework == "megatron":
        draft.put("precision", "fp32", draft.default("neither --bf16 nor --fp16"))


def _deepspeed(draft: Draft) -> None:
    """A DeepSpeed file by itself."""
    for name in HALVES:
        found = draft.facts.stated(f"ds_{name}")
        if found and found.value is True:
            draft.put("precision", f"deepspeed-{name}", found)


def _deepspeed_word(draft: Draft) -> None:
    found = _type(draft)
    if found:
        draft.put("precision", f"deepspeed-{found.value}" if found.value in HALVES else "fp32", found)


def _minimind(draft: Draft) -> None:
    found = _type(draft)
    if found:
        draft.put("precision", f"amp-{found.value}" if found.value in HALVES else "fp32", found)


RULES: dict[str, Callable[[Draft], Any]] = {
    "autocast": _autocast,
    "by-dtype": _by_dtype,
    "script": _by_dtype,
    "half": _half,
    "trainables-fp32": _trainables_fp32,
    "dtype-and-autocast": _dtype_and_autocast,
    "weights": _weights,
    "named": _named,
    "fsdp-mixed": _fsdp_mixed,
    "megatron": _megatron,
    "deepspeed": _deepspeed,
    "deepspeed-word": _deepspeed_word,
    "minimind": _minimind,
}
