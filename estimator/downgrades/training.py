"""Moves of a training run: each a pure function from a filled run to the runs after it, the mildest first."""

from estimator.downgrades.around import Around
from estimator.regimes import ITEMSIZES, adapted, tokens_per_row, training_regime
from estimator.schema import Adapter, Lengths, Offload, Preference, Run
from estimator.stages.rows import rows_per_item
from estimator.step.tape import HALF

LIGER = frozenset({
    "deepseek_v2", "deepseek_v3", "gemma", "gemma2", "gemma3", "gemma3_text", "glm4", "gpt_oss", "granite", "llama",
    "llama4", "llama4_text", "ministral", "mistral", "mixtral", "nemotron", "olmo2", "olmo3", "phi3", "qwen2",
    "qwen3", "qwen3_moe", "qwen3_next", "smollm3", "falcon_h1", "exaone4", "hunyuan_v1_dense", "hunyuan_v1_moe",
})  # fmt: skip
"""Types that Liger patches (liger-kernel 0.8.5, monkey_patch.py)."""
WITH_KERNELS = ("transformers", "peft", "accelerate", "trl", "llama-factory", "ms-swift")
"""Frameworks whose switch for Liger brings the kernels for norms, rotation and MLP too."""
BEHIND_CHECKPOINTS = ("axolotl", "torchtune")
"""Frameworks that move activations to the host only together with checkpointing."""
EIGHT_BIT = {"adamw": "adamw-8bit", "paged-adamw-32bit": "paged-adamw-8bit", "lion": "lion-8bit"}
FROM_NOTHING = "pretrain"
"""The stage in which there is no trained base for adapters to stand on."""
ADAPTERS = ("lora", "dora")
LEAST_RANK, LEAST_LENGTH, STEP = 8, 128, 64
MOST_LISTED = 256
CUDA = ("NVIDIA", "AMD")


def sdpa(run: Run, around: Around) -> tuple[Run, ...]:
    """Attention without stored scores."""
    return (changed(run, attention="sdpa"),) if run.attention == "eager" else ()


def flash2(run: Run, around: Around) -> tuple[Run, ...]:
    """FlashAttention-2, where the card has it, the activations are in 16 bit and SDPA would have a mask to store."""
    half = bool(run.autocast) or ITEMSIZES.get(str(run.precision)) == HALF
    able = run.attention == "sdpa" and half and around.gpu.flash_attn2
    return (changed(run, attention="flash2"),) if able and _stores_mask(run, around) else ()


def _stores_mask(run: Run, around: Around) -> bool:
    """Whether SDPA is handed a mask: without one it takes the same kernel."""
    if run.task != "train" or run.stage not in (None, "pretrain", "sft"):
        return True
    regime = training_regime(run, around.arch)
    return regime.mask != "none" or regime.windowed


def fused_loss(run: Run, around: Around) -> tuple[Run, ...]:
    """Liger's loss, with the kernels that come with it."""
    able = around.arch.model_type in LIGER and around.gpu.vendor in CUDA
    if run.loss not in ("standard", "fused-ce-logits") or not able or _tiles(run):
        return ()
    kernels = ["norm", "rope", "mlp"] if run.framework in WITH_KERNELS else run.fused_kernels
    return (changed(run, loss="fused", fused_kernels=kernels),)


def chunked_loss(run: Run, around: Around) -> tuple[Run, ...]:
    """The loss in tiles: what trl's SFT and torchtune do by themselves, and axolotl where Liger does not reach."""
    if run.loss != "standard" or not (_tiles(run) or fused_loss(run, around) == ()):
        return ()
    return (changed(run, loss="chunked"),) if run.framework in ("trl", "torchtune", "axolotl") else ()


def _tiles(run: Run) -> bool:
    return run.framework == "torchtune" or (run.framework == "trl" and run.stage == "sft")


def fused_optimizer(run: Run, around: Around) -> tuple[Run, ...]:
    """One kernel for the whole update."""
    slow = run.optimizer_impl in ("foreach", "for-loop") and run.optimizer == "adamw"
    return (changed(run, optimizer_impl="fused"),) if slow and around.gpu.vendor in CUDA else ()


def precomputed_reference(run: Run, around: Around) -> tuple[Run, ...]:
    """Reference log-probabilities from a pass before training."""
    known = run.preference
    if run.stage not in ("dpo", "kto") or known is None or known.reference != "model" or known.precomputed_logps:
        return ()
    return (changed(run, preference=known.model_copy(update={"precomputed_logps": True})),)


def sleep(run: Run, around: Around) -> tuple[Run, ...]:
    """The engine beside an online stage lets go of its memory while the step runs."""
    return (_online(run, sleep=True),) if _shares_card(run) and run.rl and not run.rl.sleep else ()


def share(run: Run, around: Around) -> tuple[Run, ...]:
    """A smaller part of the card for the engine beside an online stage, in steps of 0.05."""
    known = (run.rl.colocated_share if run.rl else None) or 0.0
    steps = [part / 20 for part in range(19, 1, -1) if part / 20 < known - 0.001]
    return tuple(_online(run, colocated_share=part) for part in steps) if _shares_card(run) else ()


def _shares_card(run: Run) -> bool:
    return run.stage == "grpo" and run.rl is not None and run.rl.engine == "vllm" and bool(run.rl.colocated_share)


def _online(run: Run, **fields: object) -> Run:
    return changed(run, rl=run.rl.model_copy(update=fields) if run.rl else None)


def micro_batch(run: Run, around: Around) -> tuple[Run, ...]:
    """A smaller micro-batch with as many more accumulation steps: the effective batch stays to the row."""
    micro = run.micro_batch or 1
    rows = micro * (run.grad_accum or 1)
    if fused_update(run):
        return ()
    halves = {micro >> shift for shift in range(1, micro.bit_length())}
    sizes = {size for size in (*range(1, min(micro, MOST_LISTED)), *halves) if rows % size == 0}
    smaller = sorted(sizes, reverse=True)
    return tuple(changed(run, micro_batch=size, grad_accum=rows // size, **_alone(run, size)) for size in smaller)


def _alone(run: Run, size: int) -> dict[str, object]:
    """A row that is alone has no padding, so no mask is made for it."""
    return {"attention_mask_4d": False} if run.attention_mask_4d and size * rows_per_item(run) == 1 else {}


def fused_update(run: Run) -> bool:
    """Whether the update runs inside the backward, so that nothing can be accumulated."""
    return run.method == "lomo"


def optimizer_8bit(run: Run, around: Around) -> tuple[Run, ...]:
    """The same optimizer with states in 8 bit (bitsandbytes)."""
    small = EIGHT_BIT.get(str(run.optimizer))
    able = around.gpu.vendor in CUDA and _takes_8bit(run)
    return (changed(run, optimizer=small),) if small and able else ()


def _takes_8bit(run: Run) -> bool:
    """Whether bitsandbytes can keep the states: of a method with its choice of optimizer, and of whole tensors."""
    sharded = run.parallel is not None and run.parallel.engine in ("fsdp1", "fsdp2")
    return run.method in ("full", "freeze", "lora", "dora", "qlora") and not sharded


def paged(run: Run, around: Around) -> tuple[Run, ...]:
    """8-bit states that wait in host memory."""
    able = around.gpu.vendor == "NVIDIA" and _takes_8bit(run)
    if run.optimizer not in ("adamw", "adamw-8bit", "paged-adamw-32bit") or not able:
        return ()
    return (changed(run, optimizer="paged-adamw-8bit"),)


def bf16(run: Run, around: Around) -> tuple[Run, ...]:
    """16-bit weights in place of fp32 ones; training needs bf16 for that, frozen weights take fp16 too."""
    if run.precision not in ("fp32", "amp-bf16", "amp-fp16"):
        return ()
    precision = half_type(around)
    return (in_half(run, around, precision),) if adapted(run) or precision == "bf16" else ()


def in_half(run: Run, around: Around, precision: str) -> Run:
    """The run with 16-bit weights, autocast as its framework has it."""
    return around.refill(changed(run, precision=precision, autocast=None))


def half_type(around: Around) -> str:
    """The 16-bit type that the card computes in."""
    return "bf16" if around.gpu.bf16 else "fp16"


def lora(run: Run, around: Around) -> tuple[Run, ...]:
    """Adapters on a frozen 16-bit base instead of whole weights; the framework's own habits come with it."""
    if run.stage == FROM_NOTHING or run.method not in ("full", "freeze", "dora", "galore", "apollo", "badam", "lomo"):
        return ()
    adapter = Adapter() if run.adapter is None else run.adapter.model_copy(update={"dtype": None})
    return (around.refill(_adapting(run, around, "lora").model_copy(update={"adapter": adapter})),)


def qlora(run: Run, around: Around) -> tuple[Run, ...]:
    """Adapters on a frozen 4-bit base."""
    whole = run.stage == FROM_NOTHING and run.method not in ADAPTERS
    if run.method == "qlora" or whole or around.gpu.vendor not in CUDA:
        return ()
    adapter = Adapter() if run.adapter is None else run.adapter.model_copy(update={"dtype": None})
    update = {"adapter": adapter, "weight_format": None, "kbit_prepare": None}
    return (around.refill(_adapting(run, around, "qlora").model_copy(update=update)),)


def _adapting(run: Run, around: Around, method: str) -> Run:
    kept = run.precision if run.precision in ("bf16", "fp16") else half_type(around)
    own = run.method in ("galore", "apollo", "badam", "lomo")
    reference = run.preference.model_copy(update={"reference": None}) if run.preference else None
    return changed(
        run,
        method=method,
        precision=kept,
        autocast=None,
        optimizer=None if own else run.optimizer,
        optimizer_impl=None if own else run.optimizer_impl,
        preference=reference if reference != Preference() else None,
    )


def checkpointing(run: Run, around: Around) -> tuple[Run, ...]:
    """Every layer's activations are made anew in the backward."""
    known = run.gradient_checkpointing
    return () if known in (True, "full", "offload") else (changed(run, gradient_checkpointing="full"),)


def offload_inputs(run: Run, around: Around) -> tuple[Run, ...]:
    """Checkpoints that wait in host memory."""
    known = run.gradient_checkpointing
    return () if known == "offload" else (changed(run, gradient_checkpointing="offload"),)


def offload_activations(run: Run, around: Around) -> tuple[Run, ...]:
    """What the backward needs waits in host memory."""
    places, known = run.offload or Offload(), run.gradient_checkpointing
    if places.activations != "none" or known == "offload":
        return ()
    kept = "full" if run.framework in BEHIND_CHECKPOINTS and known in (None, False, "none") else known
    return (changed(run, offload=places.model_copy(update={"activations": "cpu"}), gradient_checkpointing=kept),)


def galore(run: Run, around: Around) -> tuple[Run, ...]:
    """All weights, with states of projected gradients."""
    if run.method != "full" or run.optimizer != "adamw":
        return ()
    return (around.refill(changed(run, method="galore", optimizer=None, optimizer_impl=None)),)


def lomo(run: Run, around: Around) -> tuple[Run, ...]:
    """All weights, updated as soon as their gradient is there: on one card, without accumulation and clipping."""
    if run.method != "full" or (run.grad_accum or 1) > 1 or (run.gpu_count or 1) > 1:
        return ()
    update = changed(run, method="lomo", optimizer=None, optimizer_impl=None, gradient_clipping=False)
    return (around.refill(update),)


def rank(run: Run, around: Around) -> tuple[Run, ...]:
    """Halved ranks down to 8."""
    if not adapted(run) or run.adapter is None:
        return ()
    known = run.adapter.rank or 16
    ranks = [known >> shift for shift in range(1, known.bit_length()) if known >> shift >= LEAST_RANK]
    return tuple(changed(run, adapter=run.adapter.model_copy(update={"rank": one})) for one in ranks)


def length(run: Run, around: Around) -> tuple[Run, ...]:
    """Shorter rows, down to a quarter; packed ones with as many more rows, so that an update sees as many tokens."""
    known = tokens_per_row(run)
    if (run.details or {}).get("document_lengths") or completion_of(run):
        return ()
    if run.packing:
        shares = ((2, 2), (4, 4)) if not fused_update(run) else ()
        return tuple(
            changed(run, seq_len=known // part, grad_accum=(run.grad_accum or 1) * more)
            for part, more in shares
            if known % part == 0 and known // part >= LEAST_LENGTH
        )
    sizes = [known * part // 16 // STEP * STEP for part in range(15, 3, -1)]
    return tuple(_cut(run, size) for size in dict.fromkeys(sizes) if LEAST_LENGTH <= size < known)


def completion_of(run: Run) -> int:
    """Tokens of a completion that is generated in the step; 0 where none is."""
    return (run.rl.max_completion_len if run.stage == "grpo" and run.rl else None) or 0


def completions(run: Run, around: Around) -> tuple[Run, ...]:
    """Shorter completions, down to a quarter: trl has no length of a prompt, so the rows of GRPO are cut there."""
    known, rows = completion_of(run), run.seq_len
    sizes = [known * part // 16 // STEP * STEP for part in range(15, 3, -1)]
    if not isinstance(rows, int):
        return ()
    return tuple(
        _online(changed(run, seq_len=rows - known + size), max_completion_len=size)
        for size in dict.fromkeys(sizes)
        if STEP <= size < known
    )


def _cut(run: Run, size: int) -> Run:
    rows = run.seq_len
    return changed(run, seq_len=Lengths(mean=min(rows.mean, size), max=size) if isinstance(rows, Lengths) else size)


def changed(run: Run, **fields: object) -> Run:
    """The run with other values."""
    return run.model_copy(update=fields)
