"""What is trained: everything or adapters, over which base, with which linears."""

import re
from typing import Any

from bot.reading.draft import Draft
from bot.reading.facts import DEFAULT, Fact
from bot.reading.scalars import words_of
from bot.reading.tables import words

ADAPTERS = frozenset(
    ("lora", "qlora", "dora", "longlora", "adalora", "rslora", "loha", "lokr", "vera", "oft", "boft", "llamapro",
     "lora_llm", "custom_lora", "custom_qlora", "hqq_lora", "hqq_dora", "bnb_dora")
)  # fmt: skip
FULL = frozenset(("full", "none", "false", ""))
SEVEN = frozenset(("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"))
MLP = ("gate_proj", "up_proj", "down_proj")
NAMED_SETS = {
    SEVEN: "all-linear",
    frozenset(("q_proj", "k_proj", "v_proj", "o_proj")): "attention",
    frozenset(("q_proj", "v_proj")): "qv",
    frozenset(("q_proj", "k_proj", "v_proj")): "qkv",
}
ALL = frozenset(("all", "all-linear", "all_linear", "all-linear-layers", "linear"))
LOW_RANK = ("galore", "apollo")


def settle_method(draft: Draft) -> None:
    """``method``, ``weight_format`` and ``adapter``."""
    method = _own_method(draft)
    adapted, origin = _adapted(draft)
    base, base_origin = _base(draft)
    if method:
        _check(draft, False, base)
        draft.put("method", method.value, method)
        return
    if adapted:
        draft.has("adapter")
        _adapter(draft)
    _check(draft, adapted, base)
    if base and (adapted or draft.tool.task != "train"):
        draft.put("weight_format", base, *base_origin)
    if adapted:
        four = base is not None and base.startswith(("nf4", "fp4", "gptq", "awq", "int4"))
        kind = "qlora" if four else "dora" if draft.on("use_dora") or _tuning(draft) == "dora" else "lora"
        draft.put("method", kind, origin, *(base_origin if four else ()))
    elif (base is None and (origin or not draft.unseen)) or (isinstance(origin, Fact) and origin.rank > DEFAULT):
        word = _tuning(draft)
        draft.put("method", "freeze" if word == "freeze" else "full", origin or draft.default("no adapter"))


def _tuning(draft: Draft) -> str:
    found = draft.facts.best("tuning")
    return str(found.value).strip().lower() if found else ""


def _own_method(draft: Draft) -> Fact | None:
    """Methods that are an optimizer: GaLore, APOLLO, BAdam, LOMO."""
    stated = draft.facts.stated("method")
    if stated:
        return stated
    optimizer = draft.facts.stated("optimizer")
    name = str(optimizer.value).lower() if optimizer else ""
    low = next((one for one in LOW_RANK if name.startswith(one)), "lomo" if name in ("lomo", "adalomo") else None)
    return Fact(low, optimizer.key, optimizer.line, optimizer.rank, optimizer.source) if optimizer and low else None


def _adapted(draft: Draft) -> tuple[bool, Fact | str | None]:
    """Whether adapters are trained, and what says so."""
    if draft.on("full_finetuning"):
        return False, draft.facts.best("full_finetuning")
    tuning = draft.facts.best("tuning")
    if tuning and _tuning(draft) in ADAPTERS:
        return True, tuning
    if tuning and (_tuning(draft) in FULL or _tuning(draft) == "freeze"):
        return False, tuning
    component = draft.facts.best("component")
    if component:
        return bool(re.search(r"\bq?lora_", str(component.value))), component
    use = draft.facts.best("use_peft")
    if use:
        return bool(use.value), use
    switches = draft.facts.stated("rank", *(f"lora_{letter}" for letter in "qkvo"), "targets_mlp", "dropout")
    if draft.tool.name == "litgpt" and switches:
        return True, switches
    rank = draft.facts.best("rank")
    by_rank = draft.tool.name in ("openrlhf", "verl", "DeepSpeed-Chat")
    if rank and by_rank:
        return rank.value > 0, rank
    return False, None


def _base(draft: Draft) -> tuple[str | None, tuple[Fact | str, ...]]:
    """The format of a quantised frozen base, and what says so."""
    four, eight, bits = (draft.facts.best(name) for name in ("load_4bit", "load_8bit", "bits"))
    component = draft.facts.best("component")
    method = draft.facts.stated("quant_method")
    if component and re.search(r"\bqlora_", str(component.value)):
        return "nf4-dq", (component,)
    if draft.on("gptq"):
        return "gptq-4bit-g128", (draft.facts.best("gptq") or "gptq",)
    named = draft.facts.stated("quantize")
    if named:
        return words("weight_format").get(str(named.value).lower()), (named,)
    if (four and four.value is True) or (bits and bits.value == 4):
        return _four_bit(draft, four if four and four.value is True else bits, method)
    tuning = draft.facts.best("tuning")
    if tuning and _tuning(draft) in ("qlora", "custom_qlora") and draft.tool.framework != "axolotl" and not eight:
        return _four_bit(draft, tuning, method)
    if (eight and eight.value is True) or (bits and bits.value == 8):
        return "int8", tuple(one for one in (eight, bits) if one and one.value in (True, 8))[:1]
    if four and four.rank and four.value is False:
        return None, ()
    upload = draft.facts.best("upload_format")
    return (str(upload.value), (upload,)) if upload else (None, ())


def _four_bit(draft: Draft, stated: Fact | None, method: Fact | None) -> tuple[str, tuple[Fact | str, ...]]:
    kind = str(method.value).lower() if method else "bnb"
    if kind in ("gptq", "awq", "hqq", "eetq") and method and stated:
        return {"gptq": "gptq-4bit-g128", "awq": "awq-4bit-g128"}.get(kind, "int4"), (stated, method)
    draft.has("quantised")
    quant, double = draft.facts.best("quant_type"), draft.facts.best("double_quant")
    name = str(quant.value).lower() if quant else "nf4"
    told = tuple(one for one in (stated, quant, double) if one)
    return (f"{name}-dq" if double and double.value is True and name == "nf4" else name), told


def _check(draft: Draft, adapted: bool, base: str | None) -> None:
    """Tools refuse a quantised base that nothing is trained on, and QLoRA without one."""
    if draft.tool.task != "train":
        return
    load = draft.facts.stated("load_4bit", "bits", "load_8bit")
    if base and not adapted and load:
        key = next((key for key, fact in draft.tool.keys.items() if fact == "tuning"), None)
        key = key or next((key for key, fact in draft.tool.keys.items() if fact in ("use_peft", "rank")), "adapter")
        draft.clash("no_adapter", load.key, key)
    if _tuning(draft) == "qlora" and base is None and draft.tool.framework == "axolotl":
        tuning = draft.facts.best("tuning")
        key = load.key if load else "load_in_4bit"
        draft.clash("needs_4bit", tuning.key if tuning else "adapter", key)


def _adapter(draft: Draft) -> None:
    rank = draft.facts.best("rank")
    if rank and rank.value > 0:
        draft.put("adapter.rank", rank.value, rank)
    elif rank:
        draft.facts.invalid.append(("rank", rank))
    draft.copy("adapter.dropout", "dropout")
    draft.copy("adapter.dtype", "adapter_dtype")
    found = _targets(draft)
    if found:
        draft.put("adapter.targets", found[0], *found[1:])


def _targets(draft: Draft) -> tuple[Any, ...] | None:
    """The adapted linears as a Run names them, and where that is said."""
    linear = draft.facts.best("targets_linear")
    if linear and linear.value is True:
        return "all-linear", linear
    if draft.named("attn_modules") or draft.tool.name in ("litgpt", "torchtune"):
        return _by_parts(draft)
    stated = draft.facts.best("targets")
    if stated is None:
        return None
    if isinstance(stated.value, str) and stated.value == "default":
        return _named(_usual(draft)), stated
    names = words_of(stated.value)
    if len(names) == 1 and names[0].lower() in ALL:
        return "all-linear", stated
    return (_named(names), stated) if names else None


def _by_parts(draft: Draft) -> tuple[Any, ...] | None:
    """Torchtune's and litgpt's switches: attention modules and the MLP apart."""
    listed, mlp = draft.facts.best("attn_modules"), draft.facts.best("targets_mlp")
    letters = [draft.facts.best(f"lora_{letter}") for letter in "qkvo"]
    names = (
        words_of(listed.value)
        if listed
        else [f"{letter}_proj" for letter, one in zip("qkvo", letters, strict=True) if one and one.value]
    )
    if mlp and mlp.value is True:
        names = [*names, *MLP]
    told = [one for one in (listed, mlp, *letters) if one and one.value]
    stated = [one for one in told if one.rank] or told
    return (_named(names), *stated) if names else None


def _named(names: list[str]) -> Any:
    table = words("targets")
    plain = list(dict.fromkeys(str(table.get(name, name)) for name in names))
    return NAMED_SETS.get(frozenset(plain), plain)


def _usual(draft: Draft) -> list[str]:
    """Peft's default for the model's family."""
    table = words("default_targets")
    model = str(draft.facts.get("model") or "").lower()
    found: list[str] = next((names for family, names in table["names"] if family in model), table["usual"])
    return found
