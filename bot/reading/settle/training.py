"""The other fields of a training run: stage, optimizer, checkpointing, attention, loss, kernels."""

import re
from typing import Any

from bot.reading.draft import Draft
from bot.reading.facts import Fact
from bot.reading.scalars import switch, words_of
from bot.reading.tables import words

DPO_LOSSES = frozenset(
    ("sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot", "apo_zero",
     "discopop", "sigmoid_norm", "aot_pair", "apo_down")
)  # fmt: skip
KERNELS = ("norm", "rope", "mlp", "lora")
CUT_PLUGIN, LIGER_PLUGIN = "cutcrossentropy", "liger"


def settle_stage(draft: Draft) -> None:
    """``stage``, from what is stated, the program, or keys that only one stage has."""
    stated = draft.facts.best("stage")
    loss = draft.facts.stated("pref_loss")
    name = words("stage").get(str(stated.value).lower()) if stated else None
    if name == "dpo" and loss and str(loss.value).lower() in ("orpo", "simpo"):
        name, stated = str(loss.value).lower(), loss
    component = draft.facts.stated("loss_component")
    if component and (found := re.search(r"(DPO|PPO|GRPO)\w*Loss", str(component.value))):
        name, stated = found[1].lower(), component
    advantage = draft.facts.stated("advantage")
    if advantage and name in (None, "ppo"):
        name, stated = ("ppo" if str(advantage.value).lower() == "gae" else "grpo"), advantage
    if name is None or (stated and not stated.rank and draft.tool.framework == "trl"):
        name, stated = _by_keys(draft) or (name, stated)
    if name:
        draft.put("stage", name, stated)


def _by_keys(draft: Draft) -> tuple[str, Any] | None:
    """The stage of a Trainer's file that does not say it."""
    hint = draft.facts.stated("stage_hint")
    if hint:
        return str(hint.value), hint
    for fact, stage in (("generations", "grpo"), ("completion_len", "grpo"), ("precomputed", "dpo")):
        if draft.named(fact):
            return stage, draft.facts.stated(fact)
    loss = draft.facts.stated("loss_type")
    names = [word.lower() for word in words_of(loss.value)] if loss else []
    if "simpo" in names:
        return "simpo", loss
    if set(names) & DPO_LOSSES:
        return "dpo", loss
    if draft.tool.name == "litgpt":
        pretrained = draft.facts.stated("tokens", "pretrain_only")
        return ("pretrain", pretrained) if pretrained else ("sft", draft.default("finetune"))
    task = draft.facts.stated("lora_task")
    if task and str(task.value).upper() == "SEQ_CLS":
        return "reward", task
    if draft.tool.framework == "trl":
        beta = draft.facts.stated("beta")
        return ("dpo", beta) if beta else ("sft", draft.default("no key of another stage"))
    return None


def settle_training(draft: Draft) -> None:
    """Fields that stand for themselves."""
    settle_optimizer(draft)
    settle_checkpointing(draft)
    settle_attention(draft)
    _loss(draft)
    _compile(draft)
    _reference(draft)
    _rollouts(draft)
    draft.copy("epochs", "epochs")
    draft.copy("samples", "samples")
    tokens = draft.facts.stated("tokens")
    if tokens and tokens.value > 0:
        draft.put("tokens", tokens.value, tokens)
    clipping = draft.facts.stated("clipping")
    if clipping:
        draft.put("gradient_clipping", clipping.value > 0, clipping)
    vit = draft.facts.stated("vit_frozen")
    if vit:
        draft.put("vision.tower", "frozen" if vit.value else "trained", vit)


def settle_optimizer(draft: Draft) -> None:
    """``optimizer`` and its implementation."""
    found = draft.facts.best("optimizer")
    stated = draft.facts.stated("ds_optimizer")
    if stated and (found is None or not found.rank):
        found = stated
    if found is None:
        return
    name = str(found.value).rsplit(".", 1)[-1].lower()
    for method in ("galore_", "apollo_"):
        name = name.removeprefix(method).removesuffix("_layerwise")
    plain = words("optimizer").get(name) or words("optimizer").get(re.sub(r"[-_]", "", name))
    draft.put("optimizer", plain or name.replace("_", "-"), found)
    implementation, fused = draft.facts.best("optimizer_impl"), draft.facts.best("optimizer_fused")
    if draft.on("in_backward"):
        draft.put("optimizer_impl", "in-backward", draft.facts.best("in_backward"))
    elif name == "adamw_torch_fused":
        draft.put("optimizer_impl", "fused", found)
    elif fused and fused.value is True:
        draft.put("optimizer_impl", "fused", fused)
    elif implementation and str(implementation.value) in ("fused", "foreach", "for-loop"):
        draft.put("optimizer_impl", str(implementation.value), implementation)


def settle_checkpointing(draft: Draft) -> None:
    """``gradient_checkpointing``: none, full, offload, selective-op, every-N or selective-attention."""
    chosen = _selective(draft) or _recomputed(draft) or _litgpt(draft) or _switched(draft)
    if chosen:
        draft.put("gradient_checkpointing", *chosen)


def _selective(draft: Draft) -> tuple[str, Fact] | None:
    """Torchtitan's and torchtune's modes."""
    mode, option = draft.facts.best("ac_mode"), draft.facts.best("ac_option")
    word = str(mode.value).lower() if mode else ""
    if mode is None or word not in ("none", "full", "selective", "memory_budget"):
        return None
    if word != "selective":
        return ("full" if word != "none" else "none"), mode
    by = str(option.value) if option else "op"
    return ("selective-op" if not by.isdigit() else "full" if by == "1" else f"every-{by}"), option or mode


def _recomputed(draft: Draft) -> tuple[str, Fact] | None:
    """Megatron's recomputation: core attention, or whole layers."""
    granularity, switched = draft.facts.stated("recompute_granularity"), draft.facts.stated("recompute")
    if granularity:
        kind = {"full": "full", "selective": "selective-attention"}.get(str(granularity.value).lower())
        return (kind, granularity) if kind else None
    return ("selective-attention", switched) if switched and switched.value is True else None


def _litgpt(draft: Draft) -> tuple[str, str] | None:
    """Litgpt's full fine-tuning checkpoints every block as soon as there are several devices."""
    several = draft.tool.name == "litgpt" and int(draft.run.get("gpu_count", 1)) > 1
    full = draft.run.get("method") == "full" and draft.run.get("stage") != "pretrain"
    return ("full", draft.default("full fine-tuning on several devices")) if several and full else None


def _switched(draft: Draft) -> tuple[str, Fact] | None:
    sharded, found = draft.facts.stated("fsdp_checkpointing"), draft.facts.best("checkpointing")
    unsloth = draft.facts.stated("unsloth_gc")
    if unsloth and unsloth.value is True:
        return "offload", unsloth
    if sharded and sharded.value is True:
        return "full", sharded
    own = _in_script(draft, found)
    if own:
        return own
    if found is None:
        return None
    word = str(found.value).lower()
    if word in ("unsloth", "offload", "offload_disk"):
        return "offload", found
    on = switch(found.value)
    return ("full" if on else "none", found) if on is not None else None


def _in_script(draft: Draft, found: Fact | None) -> tuple[str, Fact] | None:
    """What a script's calls turn on: prepare_model_for_kbit_training does so by default."""
    if found and found.rank:
        return None
    kbit = draft.facts.best("kbit_checkpointing")
    enabled = draft.facts.stated("checkpointing_call")
    if enabled:
        return "full", enabled
    return ("full" if switch(kbit.value) is not False else "none", kbit) if kbit else None


def settle_attention(draft: Draft) -> None:
    """``attention``; "auto" and implementations that a Run has no name for give none."""
    found = draft.facts.stated("attention")
    name = words("attention").get(str(found.value).lower().split("@")[0]) if found else None
    if found and name:
        draft.put("attention", name, found)


def _loss(draft: Draft) -> None:
    """``loss`` and ``fused_kernels``."""
    plugins = " ".join(words_of(draft.facts.get("plugins") or [])).lower().replace("_", "")
    kernels = {name: draft.facts.stated(f"kernel_{name}") for name in KERNELS}
    on = {name: fact for name, fact in kernels.items() if fact and fact.value is True}
    liger = draft.facts.stated("liger")
    if liger and liger.value is True:
        keeps_logits = draft.tool.name == "llama-factory" and draft.run.get("stage") not in ("pretrain", "sft")
        draft.put("loss", "standard" if keeps_logits else "fused", liger)
        on = {**dict.fromkeys(KERNELS[:3], liger), **on}
    stated = draft.facts.stated("loss")
    if stated:
        draft.put("loss", stated.value, stated)
    elif CUT_PLUGIN in plugins:
        draft.put("loss", "fused", draft.facts.stated("plugins"))
    component = draft.facts.best("loss_component")
    if component and re.search(r"Linear|Chunk|CrossEntropy", str(component.value)):
        chunked = re.search(r"Linear|Chunk", str(component.value))
        draft.put("loss", "chunked" if chunked else "standard", component)
    trl_loss = draft.facts.stated("loss_type")
    if trl_loss and str(trl_loss.value) == "chunked_nll":
        draft.put("loss", "chunked", trl_loss)
    if on:
        draft.put("fused_kernels", [name for name in KERNELS if name in on], *on.values())


def _compile(draft: Draft) -> None:
    found = draft.facts.best("compile")
    backend = draft.facts.stated("dynamo")
    if found:
        draft.put("compile", found.value, found)
    elif backend and str(backend.value).lower() not in ("no", "none", "false", "eager"):
        draft.put("compile", True, backend)


def _reference(draft: Draft) -> None:
    """``preference``: where reference log-probabilities come from."""
    stage = draft.run.get("stage")
    precomputed = draft.facts.stated("precomputed")
    if precomputed:
        draft.put("preference.precomputed_logps", precomputed.value, precomputed)
    model = draft.facts.stated("ref_model")
    if stage in ("orpo", "simpo"):
        draft.put("preference.reference", "none", draft.default(f"{stage} has no reference"))
    elif stage in ("dpo", "kto") and model and isinstance(model.value, str):
        draft.put("preference.reference", "model", model)
    elif stage in ("dpo", "kto"):
        adapted = draft.run.get("method") in ("lora", "qlora", "dora")
        reason = "the model without its adapter" if adapted else "a frozen copy"
        draft.put("preference.reference", "adapter-off" if adapted else "model", draft.default(reason))
    elif stage == "grpo":
        _grpo_reference(draft)


def _grpo_reference(draft: Draft) -> None:
    """GRPO without a penalty has no reference."""
    beta, penalty = draft.facts.best("beta"), draft.facts.stated("use_kl")
    adapted = draft.run.get("method") in ("lora", "qlora", "dora")
    weighed = penalty.value if penalty else beta.value > 0 if beta else None
    if weighed is not None:
        kind = "none" if not weighed else "adapter-off" if adapted else "model"
        draft.put("preference.reference", kind, penalty or beta)


def _rollouts(draft: Draft) -> None:
    if draft.run.get("stage") not in ("grpo", "ppo"):
        return
    draft.copy("rl.num_generations", "generations")
    draft.copy("rl.max_completion_len", "completion_len")
    used, engine = draft.facts.best("use_vllm"), draft.facts.best("rollout_engine")
    if engine:
        draft.put("rl.engine", str(engine.value).lower(), engine)
    elif (used and used.value is True) or draft.named("vllm_engines"):
        draft.put("rl.engine", "vllm", used if used and used.value is True else draft.facts.stated("vllm_engines"))
    if "rl.engine" not in draft.run:
        return
    draft.has("use_vllm")
    apart = str(draft.facts.get("vllm_mode") or "colocate").lower() == "server"
    if not apart:
        draft.copy("rl.colocated_share", "rollout_share", "share")
    draft.copy("rl.sleep", "sleep")
    level = draft.facts.stated("sleep_level")
    if level:
        draft.put("rl.sleep", level.value > 0, level)
