"""From a filled run to the regime of its step."""

from estimator.adapter_targets import moved
from estimator.architecture import Architecture
from estimator.compiled import fused_parts, loss_of
from estimator.errors import EstimatorError
from estimator.habits import cached_rotary, old_habits, old_loss
from estimator.in_backward import update_of
from estimator.inexact import inexact_modes
from estimator.schema import Lengths, Run
from estimator.stack import before_5, linear_experts, loading_of, versions_stated
from estimator.stages.rows import drops, own_step, reference_of, rows_per_item
from estimator.step.families import SINGLE
from estimator.step.quantised import BITSANDBYTES
from estimator.step.regime import AdapterRegime, Regime
from estimator.targets_check import targets_of
from estimator.vision.held import MASKED, near, tower_mode

ITEMSIZES = {"fp32": 4, "amp-bf16": 4, "amp-fp16": 4, "bf16": 2, "fp16": 2}
SHARDED = {"fsdp-mixed-bf16": 2, "deepspeed-bf16": 2, "deepspeed-fp16": 2}
"""Precisions of engines for many cards: bytes per element of what is computed with."""
ADAPTER_SIZES = {"fp32": 4, "bf16": 2, "fp16": 2}


def tokens_per_row(run: Run) -> int:
    """Length of the longest row: it sets the peak."""
    length = run.seq_len
    if isinstance(length, Lengths):
        return length.max
    return int(length or 0)


def target_length(run: Run) -> int:
    """Tokens that the decoder behind an encoder is given: ``details.target_len``, else as many as the source has."""
    stated = (run.details or {}).get("target_len")
    return stated if isinstance(stated, int) and stated > 0 else tokens_per_row(run)


def training_regime(run: Run, arch: Architecture) -> Regime:
    """How the training step of ``run`` computes."""
    batch, length = (run.micro_batch or 1) * rows_per_item(run), tokens_per_row(run)
    details = run.details or {}
    kind, every = checkpointing(run.gradient_checkpointing)
    autocast = bool(run.autocast) and not in_half(run)
    return Regime(
        itemsize=itemsize(run.precision),
        autocast=autocast,
        trainable=trainable(run),
        trainable_layers=trainable_layers(run),
        adapter=_adapter(run, arch) if adapted(run) else None,
        quantised=run.weight_format if adapted(run) else None,
        kbit=bool(run.kbit_prepare) and casts_to_full(run.weight_format or "") and not sharded(run),
        attention=run.attention or "sdpa",
        checkpointing=kind,
        every=every,
        loss=loss_of(run),
        outputs_kept=bool(run.outputs_kept),
        outputs_to_full=autocast and not run.outputs_kept,
        mask=_masked_by_images(run, arch) or mask_kind(run, batch),
        accumulates=(run.grad_accum or 1) > 1 or run.zero_grad_to_none is False,
        update=update_of(run),
        load_itemsize=load_itemsize(run),
        single=batch == 1,
        scaler=run.precision == "amp-fp16" or bool(details.get("grad_scaler")),
        reentrant=reentrant(run) and arch.kind != "encoder-decoder",
        offload_saved=run.offload is not None and run.offload.activations == "cpu",
        quirks=quirks(run, arch),
        fp16=str(run.precision).endswith("fp16"),
        windowed=arch.sliding_window is not None and length >= arch.sliding_window,
        fused=fused_parts(run),
        linear_experts=linear_experts(run, arch),
        dropout=drops(run),
        stage=own_step(run),
        reference=reference_of(run),
        tower=tower_mode(run, arch),
    )


def inference_regime(run: Run, arch: Architecture) -> Regime:
    """How ``run`` generates."""
    length = int(run.context_len or 1)
    return Regime(
        training=False,
        itemsize=itemsize(run.precision),
        trainable="none",
        quantised=run.weight_format,
        attention=run.attention or "sdpa",
        loss="none",
        logits=run.logits or "last",
        generates=(run.new_tokens or 0) > 1,
        outputs_to_full=(run.new_tokens or 0) > 1,
        cache=cache_kind(run),
        mask="4d" if run.attention_mask_4d else "none",
        load_itemsize=load_itemsize(run),
        single=(run.micro_batch or 1) * (run.concurrency or 1) == 1,
        windowed=arch.sliding_window is not None and length >= arch.sliding_window,
        dropout=False,
        fp16=arch.kind == "encoder-decoder" and run.precision == "fp16",
        quirks=cached_rotary(run, arch.model_type) + loading_of(run),
        linear_experts=linear_experts(run, arch),
    )


HALF_CACHES = ("auto", "bf16", "fp16", "f16", "bfloat16", "float16")


def cache_kind(run: Run) -> str | None:
    """How the cache is kept: preallocated ("static") or grown by transformers."""
    cache = run.kv_cache
    if cache is None:
        return None
    if cache.dtype not in (None, *HALF_CACHES):
        raise EstimatorError(
            f"transformers keeps its cache in the compute type; kv_cache.dtype {cache.dtype[:20]} needs llama.cpp",
            f"transformers 的缓存与计算精度相同；kv_cache.dtype {cache.dtype[:20]} 需使用 engine llama.cpp",
            "kv_cache.dtype",
        )
    return "static" if cache.preallocated else None


def load_itemsize(run: Run) -> int:
    """``details.load_dtype: fp32``: the weights are loaded in fp32 and cast on the card."""
    return 4 if (run.details or {}).get("load_dtype") in ("fp32", "float32") else 0


def itemsize(precision: str | None) -> int:
    """Bytes per weight element."""
    try:
        return (ITEMSIZES | SHARDED)[str(precision)]
    except KeyError:
        raise EstimatorError(
            f"precision {precision} is not estimated on one card yet; use one of {', '.join(ITEMSIZES)}",
            f"单卡暂不支持精度 {precision}；可用：{'、'.join(ITEMSIZES)}",
            "precision",
        ) from None


def in_half(run: Run) -> bool:
    """Whether DeepSpeed has cast the whole model, adapters too, to its half type; nothing runs under autocast then."""
    return run.parallel is not None and run.parallel.engine == "deepspeed" and "fp32" not in str(run.precision)


def adapted(run: Run) -> bool:
    """Whether only adapters train."""
    return run.method in ("lora", "dora", "qlora")


def _adapter(run: Run, arch: Architecture) -> AdapterRegime:
    adapter = run.adapter
    assert adapter is not None
    targets = targets_of(run)
    return AdapterRegime(
        rank=adapter.rank or 16,
        targets=targets,
        itemsize=2 if in_half(run) else ADAPTER_SIZES[adapter.dtype or "fp32"],
        dropout=adapter.dropout or 0.0 if drops(run) else 0.0,
        dora=run.method == "dora",
        moved=() if linear_experts(run, arch) else moved(arch, targets, run.framework),
    )


def _masked_by_images(run: Run, arch: Architecture) -> str:
    masked = arch.vision is not None and arch.vision.family in MASKED and bool(tower_mode(run, arch))
    return "padded" if masked else ""


POSITIONS_WITH_PACKING = ("trl", "axolotl", "ms-swift", "torchtune")
"""Frameworks whose packed rows carry position ids that start again with each document."""


def mask_kind(run: Run, batch: int) -> str:
    """What attention must be told about the rows: 4d (a mask is handed in), packed, padded, or none.

    Stages of their own hand in a mask by row and position, and the model makes the dense one in every forward.
    """
    if own_step(run):
        return "padded" if run.attention_mask_4d else "none"
    if run.attention_mask_4d:
        return "4d"
    documents = bool((run.details or {}).get("document_lengths"))
    if documents or (run.packing and run.framework in POSITIONS_WITH_PACKING and run.stage != "pretrain"):
        return "packed"
    return "padded" if uneven(run) and batch > 1 else "none"


def uneven(run: Run) -> bool:
    """Whether rows differ in length, so that a batch of several is padded and masked."""
    return isinstance(run.seq_len, Lengths) and run.seq_len.mean < run.seq_len.max and not run.packing


def casts_to_full(weight_format: str) -> bool:
    """Whether peft's k-bit preparation turns what is not packed to fp32: not over GPTQ (peft 0.21, utils/other.py)."""
    return weight_format in BITSANDBYTES or weight_format.startswith("awq")


def sharded(run: Run) -> bool:
    """Whether parameters are cut over the cards: then nobody calls peft's k-bit preparation.

    trl 0.11 to 1.16 looks whether the packed weights wait on the CPU (``is_sharded_qlora``), axolotl sets
    ``skip_prepare_model_for_kbit_training``; one type is what a flat parameter can have.
    """
    parallel = run.parallel
    if parallel is None:
        return False
    return parallel.engine in ("fsdp1", "fsdp2") or (parallel.engine == "deepspeed" and parallel.zero == 3)


def trainable(run: Run) -> str:
    """Which own parameters train: all, none (adapters do), those of the last or of the first layers."""
    if adapted(run):
        return "none"
    if run.method == "badam":
        return "first"
    if run.method == "freeze":
        return "first" if _frozen_layers(run) < 0 else "last"
    return "all"


def trainable_layers(run: Run) -> int:
    """Layers whose parameters train. BAdam trains one block at a time; the first keeps most activations alive."""
    if run.method == "badam":
        return 1
    return abs(_frozen_layers(run)) if run.method == "freeze" else 0


def _frozen_layers(run: Run) -> int:
    """LLaMA-Factory's ``freeze_trainable_layers``: the last ones, negative: the first; two if nothing is said."""
    details = run.details or {}
    value = details.get("freeze_trainable_layers", details.get("trainable_layers", 2))
    return value if isinstance(value, int) and value else 2


def reentrant(run: Run) -> bool:
    """Whether checkpoints are PyTorch's older, reentrant kind: LLaMA-Factory, unsloth, transformers before 5."""
    given = (run.details or {}).get("use_reentrant")
    if given is not None:
        return bool(given)
    return run.framework in ("llama-factory", "unsloth") or before_5(run)


def taken_as_non_reentrant(run: Run, arch: Architecture) -> bool:
    """Whether reentrant checkpoints are counted as the other kind: layers of two stacks share what the graph makes."""
    checkpoints = run.task == "train" and run.gradient_checkpointing not in (None, "none")
    return checkpoints and arch.kind == "encoder-decoder" and reentrant(run)


STAGE_QUIRKS = {"logsoftmax": "log-softmax", "old_logps": "old-logps", "temperature": "temperature"}
"""Details of a stage's loss and what the step calls them: trl's older gather over a log-softmax, …"""


def quirks(run: Run, arch: Architecture) -> tuple[str, ...]:
    """Habits of one framework, "near" for modes that are not described operation by operation, "stated" versions.

    LLaMA-Factory asks for input gradients only where a layer trains; unsloth's loss works on half-precision logits.
    """
    unsure = any(inexact_modes(run)) or near(run, arch) or taken_as_non_reentrant(run, arch)
    found: tuple[str, ...] = ("near",) if unsure else ("stated",) if stated_well(run, arch) else ()
    found += tuple(name for key, name in STAGE_QUIRKS.items() if own_step(run) and (run.details or {}).get(key))
    found += loading_of(run) + old_loss(run, arch.model_type) + old_habits(run, arch.model_type)
    if runs_in_litgpt(run, arch):
        found += ("litgpt",)
    if run.framework == "trl" and "lora" in (run.fused_kernels or ()):
        found += ("weights-remade",)
    if run.framework == "llama-factory" and not adapted(run):
        return (*found, "frozen-input")
    return (*found, "half-logits") if run.framework == "unsloth" else found


def stated_well(run: Run, arch: Architecture) -> bool:
    """Whether versions are named, and nothing hangs on the data: experts of their own get uneven shares of tokens."""
    return versions_stated(run) and not linear_experts(run, arch)


def runs_in_litgpt(run: Run, arch: Architecture) -> bool:
    """Whether the step is that of litgpt's own model code: LoRA over a plain decoder."""
    plain = arch.experts is None and arch.latent is None and arch.model_type in SINGLE and arch.vision is None
    plain = plain and arch.kind == "decoder"
    return run.framework == "litgpt" and run.method in ("lora", "qlora") and plain and not own_step(run)


KINDS = ("none", "full", "selective-op", "selective-attention", "every-N", "offload")


def checkpointing(value: str | bool | None) -> tuple[str, int]:
    """Kind and interval of gradient checkpointing; ``every-N`` checkpoints one layer of N."""
    if value in (None, False, "none"):
        return "none", 1
    if value in (True, "full"):
        return "full", 1
    text = str(value)
    if text.startswith("every-") and text[6:].isdigit() and int(text[6:]) > 0:
        return "every", int(text[6:])
    if text in ("offload", "selective-op", "selective-attention"):
        return text, 1
    raise EstimatorError(
        f"gradient_checkpointing {text[:40]!r} is not known; use {', '.join(KINDS)}",
        f"未知的 gradient_checkpointing {text[:40]!r}；可用：{'、'.join(KINDS)}",
        "gradient_checkpointing",
    )
