"""The model of a plan as transformers, peft and bitsandbytes build it, on fake tensors."""

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from bot.tracing.fakes import quantiser
from bot.tracing.plan import Plan
from estimator import families
from estimator.errors import EstimatorError
from estimator.step.adapters import targeted

DROPOUTS = ("attn_pdrop", "resid_pdrop", "embd_pdrop", "dropout", "attention_dropout", "hidden_dropout",
            "activation_dropout", "layerdrop", "dropout_rate", "encoder_layerdrop", "decoder_layerdrop")  # fmt: skip
LAYER_DROPS = ("layerdrop", "encoder_layerdrop", "decoder_layerdrop")
"""Layers that are left out by chance: all are run."""
FUSED_OUT = ("mamba", "mamba2")
"""peft refuses these families' ``out_proj``."""


def config_of(plan: Plan) -> Any:
    """The transformers config; keys that its class spells otherwise are renamed."""
    import transformers

    given = {name: value for name, value in plan.config.items() if not name.startswith("_")}
    kind = given.pop("model_type", "")
    if kind not in transformers.CONFIG_MAPPING:
        raise EstimatorError(
            f"transformers {transformers.__version__} has no model_type {str(kind)[:40]!r}; only the estimate knows it",
            f"transformers {transformers.__version__} 没有 model_type {str(kind)[:40]!r}，只能估算",
            "model",
        )
    maker = transformers.CONFIG_MAPPING[kind]
    config = maker(**{_spelled(maker, name): value for name, value in given.items()})
    config.use_cache = not plan.training
    for name in LAYER_DROPS:
        if hasattr(config, name):
            setattr(config, name, 0.0)
    if not plan.dropout and plan.training:
        for name in DROPOUTS:
            if hasattr(config, name):
                setattr(config, name, 0.0)
    return config


def _spelled(maker: Any, name: str) -> str:
    """The class's own spelling of a canonical key, where it has one."""
    known = {
        *inspect.signature(maker.__init__).parameters,
        *maker.attribute_map,
        *getattr(maker, "__annotations__", {}),
    }
    if name in known:
        return name
    return next((one for one in families.spellings().get(name, ()) if one in known), name)


def built(plan: Plan, config: Any, device: str = "cuda") -> Any:
    """The model before adapters, in the type it trains in."""
    import transformers

    transformers.logging.set_verbosity_error()
    maker = transformers.AutoModelForMaskedLM if plan.masked_lm else transformers.AutoModelForCausalLM
    maker = transformers.AutoModelForSeq2SeqLM if plan.seq2seq else maker
    before = torch.get_default_dtype()
    try:
        with torch.device(device):
            model = _made(maker, config, getattr(torch, plan.dtype), plan.attention)
    finally:
        torch.set_default_dtype(before)
    return model.train(plan.training)


def _made(maker: Any, config: Any, dtype: Any, attention: str) -> Any:
    """Eager attention where the class has no other."""
    try:
        return maker.from_config(config, dtype=dtype, attn_implementation=attention)
    except ValueError as error:
        if "does not support an attention implementation" not in str(error):
            raise
        return maker.from_config(config, dtype=dtype, attn_implementation="eager")


def adapted(plan: Plan, model: Any, device: str = "cuda") -> Any:
    """The model as the method wants it: quantised, with adapters, layers frozen, checkpointed."""
    if plan.rank:
        model = _with_adapters(plan, model, device)
    if plan.trainable_layers:
        last = {id(one) for layer in layers_of(model)[-plan.trainable_layers :] for one in layer.parameters()}
        for parameter in model.parameters():
            parameter.requires_grad_(id(parameter) in last)
    if plan.checkpointing:
        _checkpoint(plan, model)
    return model


def _checkpoint(plan: Plan, model: Any) -> None:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": plan.reentrant})
    if plan.rank or plan.trainable_layers or plan.reentrant:
        model.enable_input_require_grads()
    for index, layer in enumerate(layers_of(model)):
        if (index + 1) % plan.every:
            layer.gradient_checkpointing = False


def layers_of(model: Any) -> list[Any]:
    """The layers of the decoder, or of encoder and decoder."""
    lists = (one for one in model.modules() if isinstance(one, nn.ModuleList) and len(one))
    return [layer for one in lists if hasattr(one[0], "gradient_checkpointing") for layer in one]


def _with_adapters(plan: Plan, model: Any, device: str) -> Any:
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    targets = _targets(plan, model)
    if plan.weight_format:
        _pack(plan, model)
        if plan.kbit:
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    config = LoraConfig(r=plan.rank, lora_alpha=2 * plan.rank, lora_dropout=plan.adapter_dropout, use_dora=plan.dora,
                        target_modules=targets, task_type=_task(plan))  # fmt: skip
    with torch.device(device):
        model = get_peft_model(model, config)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.to(getattr(torch, plan.adapter_dtype))
    return model


def _task(plan: Plan) -> str | None:
    if plan.masked_lm:
        return None
    return "SEQ_2_SEQ_LM" if plan.seq2seq else "CAUSAL_LM"


def _targets(plan: Plan, model: Any) -> list[str]:
    if not isinstance(plan.targets, str):
        return list(plan.targets)
    fused = model.config.model_type in FUSED_OUT
    names = [name for name in _linears(model) if not (fused and name.endswith("out_proj"))]
    return [name for name in names if targeted(plan.targets, name)]


def _linears(model: Any) -> Iterator[str]:
    head = model.get_output_embeddings()
    for name, module in model.named_modules():
        linear = isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
        if linear and module is not head:
            yield name


def _pack(plan: Plan, model: Any) -> None:
    """Every linear but the head becomes bitsandbytes' own 4-bit one; as in transformers, subclasses stay (routers)."""
    half = torch.float16 if "float16" in (plan.dtype, plan.autocast) else torch.bfloat16
    for name in list(_linears(model)):
        parent, _, last = name.rpartition(".")
        holder = model.get_submodule(parent) if parent else model
        linear = getattr(holder, last)
        if not isinstance(linear, nn.Linear):
            raise EstimatorError(
                f"bitsandbytes does not pack the {type(linear).__name__} layers of this model",
                f"bitsandbytes 无法量化此模型的 {type(linear).__name__} 层",
                "method",
            )
        if type(linear) is nn.Linear and last not in (model._keep_in_fp32_modules or ()):
            setattr(holder, last, _four_bit(linear, half, plan.weight_format))
    model.is_loaded_in_4bit = True


def _four_bit(linear: Any, compute: Any, stored: str) -> Any:
    """The Linear4bit of bitsandbytes with a plain parameter: its own class cannot hold a fake one."""
    bitsandbytes, functions = quantiser()
    nested, kind = stored.endswith("-dq"), stored.removesuffix("-dq")
    packed = bitsandbytes.nn.Linear4bit.__new__(bitsandbytes.nn.Linear4bit)
    nn.Module.__init__(packed)
    packed.in_features, packed.out_features = linear.in_features, linear.out_features
    data, state = functions.quantize_4bit(
        linear.weight.data.to(torch.bfloat16), blocksize=64, compress_statistics=nested, quant_type=kind
    )
    packed.weight = nn.Parameter(data, requires_grad=False)
    packed.weight.quant_state, packed.weight.compress_statistics, packed.weight.quant_type = state, nested, kind
    packed.bias = linear.bias
    packed.compute_dtype, packed.compute_type_is_set = compute, True
    packed.quant_state, packed.quant_storage, packed.support_avx512bf16_for_cpu = state, torch.uint8, False
    return packed


def tables_of(model: Any) -> Iterator[Any]:
    """The tensors beside the packed weights: scales, their scales, code books."""
    for module in model.modules():
        state = getattr(getattr(module, "weight", None), "quant_state", None)
        for one in (state, getattr(state, "state2", None)):
            if one is not None:
                found = (getattr(one, name, None) for name in ("absmax", "code", "offset"))
                yield from (table for table in found if isinstance(table, torch.Tensor))
