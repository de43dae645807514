"""What to say about a mixture of experts under adapters or a quantised base: what peft and bitsandbytes really do."""

from estimator.adapter_targets import MIXTRAL, QWEN, REFUSED
from estimator.catalogue import weight_format
from estimator.schema import Run
from estimator.setting import Setting
from estimator.step.quantised import BITSANDBYTES

Text = tuple[str, object, str, str]

MOVED = (
    "peft 0.21 puts the adapters of {names} on the experts' stacked tensors (rank r x {count} for the fused gate and up"
    " tensor) and leaves dense and shared blocks without; each use makes the whole stack again",
    "peft 0.21 会把 {names} 的适配器移到专家的合并张量上（gate 与 up 合并张量的秩为 r × {count}），"
    "稠密层与共享专家则没有适配器；每次使用都会重新生成整个合并张量",
)
DROPOUT = (
    "peft refuses adapter.dropout above 0 on the experts' stacked tensors; the figures are those without it",
    "专家的合并张量不支持大于 0 的 adapter.dropout（peft 会报错）；数字按 0 计算",
)
LINEARS_ONLY = (
    "the experts carry no adapter: transformers 5 stacks them into tensors that are not linear layers",
    "专家没有适配器：transformers 5 把专家合并为张量，不再是线性层",
)
LITERAL = (
    '; the literal target_modules="all-linear" would adapt them too',
    '；若直接写 target_modules="all-linear"，则专家也会加上适配器',
)
MAMBA_TEXT = (
    "peft refuses out_proj of Mamba layers, so that all-linear fails; the figures are those of the other linear layers",
    "peft 拒绝适配 Mamba 层的 out_proj，直接使用 all-linear 会报错；数字按其余线性层计算",
)
BROKEN = (
    "peft wraps the router of {type} as a linear layer and the model then fails; list the target modules without it",
    "peft 会把 {type} 的路由器当作线性层包装，导致模型报错；请列出不含路由器的目标模块",
)
LINEAR_EXPERTS = (
    "before transformers 5 every expert is a set of linear layers, packed and adapted like any other, and they run "
    "one after the other, tokens taken as dealt out evenly",
    "transformers 5 之前每个专家由独立的线性层组成：与其他线性层一样量化和适配，逐个执行；按 token 均匀分配估算",
)
UNPACKED = (
    "bitsandbytes packs linear layers only; in transformers 5 the experts are stacked tensors and stay in {size} bytes"
    " per parameter",
    "bitsandbytes 只量化线性层；transformers 5 的专家是合并张量，仍为每个参数 {size} 字节",
)


def expert_notes(run: Run, setting: Setting) -> list[Text]:
    """Field, value and the sentence in both languages."""
    arch, regime = setting.arch, setting.regime
    notes: list[Text] = []
    moved = regime.adapter.moved if regime.adapter is not None else ()
    if REFUSED in moved:
        notes.append(("adapter.targets", run.adapter.targets if run.adapter else None, *MAMBA_TEXT))
        moved = ()
    if arch.experts is None:
        return notes
    if regime.linear_experts:
        return [*notes, ("stack", (run.stack or {}).get("transformers"), *LINEAR_EXPERTS)]
    if regime.adapter is not None:
        notes += _adapters(run, arch.model_type, moved, regime.adapter.dropout)
    name = regime.quantised
    if name in BITSANDBYTES and weight_format(name).experts == "no":
        size = 4 if regime.kbit else regime.itemsize
        notes.append(("weight_format", name, *(text.format(size=size) for text in UNPACKED)))  # type: ignore[arg-type]
    return notes


def _adapters(run: Run, model_type: str, moved: tuple[str, ...], dropout: float) -> list[Text]:
    targets = run.adapter.targets if run.adapter else None
    if targets == "all-linear" and model_type in ("llama4_text", "phimoe"):
        return [("adapter.targets", targets, *(text.format(type=model_type) for text in BROKEN))]  # type: ignore[list-item]
    if not moved:
        literal = LITERAL if targets == "all-linear" and model_type in MIXTRAL | QWEN else ("", "")
        return [("adapter.targets", targets, LINEARS_ONLY[0] + literal[0], LINEARS_ONLY[1] + literal[1])]
    count = sum(name in ("gate_proj", "up_proj", "w1", "w3") for name in moved)
    english = MOVED[0].format(names=", ".join(moved), count=count)
    notes: list[Text] = [("adapter.targets", targets, english, MOVED[1].format(names="、".join(moved), count=count))]
    return notes + ([("adapter.dropout", dropout, *DROPOUT)] if dropout else [])
