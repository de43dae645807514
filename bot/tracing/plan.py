"""What of a run is traced, and what cannot be."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from estimator.errors import EstimatorError
from estimator.schema import Run
from estimator.stack import MODELLED, loading_of
from estimator.step.quantised import BITSANDBYTES_4BIT
from estimator.step.regime import Regime

OPTIMIZERS = ("adamw", "adamw-8bit", "adamw-32bit", "sgd", "sgd-momentum", "adafactor", "lion", "lion-8bit", "ademamix",
              "ademamix-8bit", "muon")  # fmt: skip
METHODS = ("full", "freeze", "lora", "dora", "qlora")
HALVES = {True: "float16", False: "bfloat16"}


@dataclass(frozen=True, slots=True)
class Plan:
    """One step to trace: everything the code that runs it asks for. Types are torch's names, ``autocast`` "" is off.

    ``trainable_layers`` counts from the end, 0 trains all; ``documents`` are the lengths packed into the one row.
    ``target`` is the length of what the decoder of an encoder-decoder is given, ``length`` that of its source.
    """

    config: dict[str, Any]
    training: bool
    masked_lm: bool
    seq2seq: bool
    dtype: str
    autocast: str
    scaler: bool
    attention: str
    dropout: bool
    batch: int
    length: int
    target: int
    new_tokens: int
    logits: str
    micro_steps: int
    documents: tuple[int, ...]
    mask_4d: bool
    checkpointing: bool
    every: int
    reentrant: bool
    loss: str
    outputs_kept: bool
    optimizer: str
    implementation: str
    clipping: bool
    zero_to_none: bool
    trainable_layers: int
    rank: int
    targets: str | tuple[str, ...]
    adapter_dtype: str
    adapter_dropout: float
    dora: bool
    weight_format: str
    kbit: bool


def plan_of(run: Run, regime: Regime, config: dict[str, Any], target: int = 0) -> Plan:
    """The plan for a run with every default filled in. Raises EstimatorError for what cannot be traced.

    ``target``: tokens that the decoder of an encoder-decoder is given; 0 for models of one stack.
    """
    for field, what, what_zh in _beyond(run, regime, config):
        raise EstimatorError(f"the tracer {what}", f"跟踪器{what_zh}", field)
    details, adapter = run.details or {}, regime.adapter
    half = HALVES[regime.fp16]
    return Plan(
        config=config,
        training=regime.training,
        masked_lm=details.get("objective") == "mlm",
        seq2seq=target > 0,
        dtype="float32" if regime.itemsize == 4 else half,
        autocast=half if run.autocast and regime.training else "",
        scaler=regime.scaler and regime.training,
        attention=regime.attention,
        dropout=regime.dropout,
        batch=(run.micro_batch or 1) * (1 if regime.training else run.concurrency or 1),
        length=_length(run, regime),
        target=target,
        new_tokens=max(int(run.new_tokens or 0), 1),
        logits=regime.logits,
        micro_steps=run.grad_accum or 1,
        documents=tuple(details.get("document_lengths") or ()),
        mask_4d=regime.mask == "4d",
        checkpointing=regime.checkpointing != "none",
        every=regime.every,
        reentrant=regime.reentrant,
        loss=regime.loss,
        outputs_kept=regime.outputs_kept,
        optimizer=run.optimizer or "",
        implementation=run.optimizer_impl or "foreach",
        clipping=bool(run.gradient_clipping),
        zero_to_none=run.zero_grad_to_none is not False,
        trainable_layers=regime.trainable_layers,
        rank=adapter.rank if adapter else 0,
        targets=adapter.targets if adapter else "",
        adapter_dtype="float32" if adapter is None or adapter.itemsize == 4 else half,
        adapter_dropout=adapter.dropout if adapter else 0.0,
        dora=adapter is not None and adapter.dora,
        weight_format=regime.quantised or "",
        kbit=regime.kbit,
    )


def _length(run: Run, regime: Regime) -> int:
    if not regime.training:
        return int(run.context_len or 1)
    return run.seq_len if isinstance(run.seq_len, int) else run.seq_len.max if run.seq_len else 1


def _beyond(run: Run, regime: Regime, config: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The first thing that cannot be traced: its field and the rest of the sentence in both languages."""
    if (run.gpu_count or 1) > 1 or (run.parallel and run.parallel.engine not in ("none", "device_map")):
        yield "gpu_count", "follows one card: ask for gpu_count 1", "只跟踪单卡：请设 gpu_count 为 1"
    if "vision_config" in config:
        yield "model", "runs language models: give the text_config alone", "只运行语言模型：请只给 text_config"
    if run.task == "serve" or run.engine not in (None, "hf", "transformers"):
        yield "engine", "runs transformers: ask for engine hf", "运行的是 transformers：请设 engine 为 hf"
    if regime.training:
        yield from _of_training(run, regime)
    elif regime.quantised or regime.cache:
        field = "weight_format" if regime.quantised else "kv_cache"
        yield field, f"generates without {field}: leave it out", f"在推理时不支持 {field}：请去掉该项"


def _of_training(run: Run, regime: Regime) -> Iterator[tuple[str, str, str]]:
    if run.compile:  # its loss is one of its own, which nobody asked for by name
        yield "compile", "does not run torch.compile: leave it out", "不支持 torch.compile：请去掉该项"
    choices = [
        ("method", run.method, METHODS),
        ("stage", run.stage, ("pretrain", "sft")),
        ("optimizer", run.optimizer, OPTIMIZERS),
        ("attention", regime.attention, ("sdpa", "eager")),
        ("loss", regime.loss, ("standard", "chunked", "fused")),
        ("gradient_checkpointing", regime.checkpointing, ("none", "full", "every")),
        ("weight_format", regime.quantised, (None, *BITSANDBYTES_4BIT)),
        ("precision", run.precision, ("fp32", "amp-bf16", "amp-fp16", "bf16", "fp16")),
    ]
    for field, value, known in choices:
        if value not in known:
            names = ", ".join(str(name) for name in known if name)
            yield field, f"does not run {field} {value}: use {names}", f"不支持 {field} {value}：可用 {names}"
    if regime.quantised and (regime.adapter is None or regime.adapter.dora or regime.itemsize == 4):
        yield "method", "runs 4-bit weights under LoRA in half precision", "只在半精度 LoRA 下运行 4 位权重"
    unlike = [
        ("seq_len", regime.mask == "padded", "rows of unequal length: give one length", "不等长的行：请给出单一长度"),
        ("packing", regime.mask == "packed" and not (run.details or {}).get("document_lengths"),
         "packed rows without details.document_lengths", "没有 details.document_lengths 的打包行"),
        ("fused_kernels", bool(run.fused_kernels), "fused kernels: leave them out", "融合内核：请去掉该项"),
        ("offload", _offloads(run), "offload: leave it out", "卸载：请去掉该项"),
        ("method", regime.trainable == "first", "training of the first layers", "只训练前几层"),
        ("stack", _of_other_versions(run), "other versions than those installed: leave stack out",
         "与已安装版本不同的软件包：请去掉 stack"),
        ("framework", bool(set(regime.quirks) - {"near"}), f"the habits of {run.framework}: use transformers or trl",
         f"{run.framework} 的特有行为：请用 transformers 或 trl"),
        ("loss", regime.loss == "chunked" and (run.details or {}).get("objective") == "mlm",
         "TRL's chunked loss on masked language models: use standard", "TRL 的分块损失于掩码语言模型：请用 standard"),
    ]  # fmt: skip
    for field, found, what, what_zh in unlike:
        if found:
            yield field, f"does not run {what}", f"不支持{what_zh}"


def _of_other_versions(run: Run) -> bool:
    return (run.stack or {}).get("transformers") not in (None, MODELLED["transformers"]) or bool(loading_of(run))


def _offloads(run: Run) -> bool:
    return run.offload is not None and any(place != "none" for place in run.offload.model_dump().values())
