"""The JSON shapes that go in and out of vram-bot: what is run, and what it needs.

Sizes are bytes unless the name says otherwise; GB means 10^9 bytes and GiB 2^30.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from estimator.economics import CostEstimate, Economics, TimeEstimate
from estimator.strict import MAX_TOKENS, Count, Strict, Tokens
from estimator.strict import NoSwitch as _NoSwitch

__all__ = ["MAX_TOKENS", "Count", "Strict", "Tokens"]

Task = Literal["train", "infer", "serve"]
Stage = Literal["pretrain", "sft", "reward", "dpo", "orpo", "kto", "simpo", "ppo", "grpo", "embed"]
Method = Literal["full", "freeze", "lora", "dora", "qlora", "galore", "apollo", "lomo", "badam"]
Precision = Literal[
    "fp32", "amp-bf16", "amp-fp16", "bf16", "fp16", "fsdp-mixed-bf16", "deepspeed-bf16", "deepspeed-fp16", "fp8"
]
Attention = Literal["eager", "sdpa", "flash2", "flash3", "flex"]
Loss = Literal["standard", "chunked", "fused", "fused-ce-logits"]
Engine = Literal["none", "ddp", "deepspeed", "fsdp1", "fsdp2", "megatron", "device_map"]
Place = Literal["none", "cpu", "nvme"]
Verdict = Literal["fits", "tight", "does_not_fit"]
Phase = Literal["load", "forward", "loss", "backward", "optimizer_step", "prefill", "decode"]
Item = Literal[
    "weights",
    "adapter",
    "gradients",
    "optimizer_states",
    "master_weights",
    "weight_casts",
    "activations",
    "recompute",
    "logits_loss",
    "optimizer_temp",
    "kv_cache",
    "reference_model",
    "reward_model",
    "value_model",
    "vision_tower",
    "communication",
    "workspace",
    "allocator_rounding",
    "other",
]


class Adapter(Strict):
    """LoRA-like adapters: which linears carry one, of what rank and type."""

    rank: Count | None = None
    targets: str | list[str] | None = None
    dtype: Literal["fp32", "bf16", "fp16"] | None = None
    dropout: Annotated[float, Field(ge=0, lt=1), _NoSwitch("float")] | None = None


class Parallel(Strict):
    """How a run is spread over cards; ``cards = data x replicate x tensor x pipeline x context``."""

    engine: Engine = "none"
    data: Count = 1
    zero: Annotated[int, Field(ge=0, le=3), _NoSwitch("int")] = 0
    replicate: Count = 1
    tensor: Count = 1
    sequence: bool = False
    pipeline: Count = 1
    virtual_stages: Count = 1
    schedule: str | None = None
    context: Count = 1
    expert: Count = 1
    bucket_bytes: int | None = None
    wrap: str | None = None
    prefetch: str | bool | int | None = None
    reshard_after_forward: bool | int | None = None


class Offload(Strict):
    """Where optimizer states, parameters and activations wait when they are not used."""

    optimizer: Place = "none"
    parameters: Place = "none"
    activations: Place = "none"


class Preference(Strict):
    """Preference stages: where the reference log-probabilities come from."""

    reference: Literal["model", "adapter-off", "none"] | None = None
    precomputed_logps: bool | None = None


class ReinforcementLearning(Strict):
    """Online stages: completions per prompt, their length, and the engine that makes them."""

    num_generations: Count | None = None
    max_completion_len: Tokens | None = None
    engine: str | None = None
    colocated_share: Annotated[float, Field(ge=0, le=1), _NoSwitch("float")] | None = None
    sleep: bool | None = None


class Vision(Strict):
    """Images a row carries, in pixels, and whether the tower trains."""

    images: Count = 1
    width: Count = 1024
    height: Count = 1024
    tower: Literal["frozen", "trained"] = "frozen"


class KVCache(Strict):
    """The key/value cache: element type, and whether the engine takes it all at the start."""

    dtype: str | None = None
    preallocated: bool | None = None


class Serving(Strict):
    """What a serving engine is told at start."""

    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1), _NoSwitch("float")] | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Tokens | None = None
    cuda_graphs: bool | None = None
    lora_slots: Annotated[int, Field(ge=0), _NoSwitch("int")] = 0
    draft_model: str | None = None
    n_gpu_layers: int | None = None
    ubatch: Count | None = None
    moe_on_cpu: bool | int | None = None


class Lengths(Strict):
    """Unequal rows: the longest sets the peak, the mean the time."""

    mean: Annotated[float, Field(gt=0), _NoSwitch("float")]
    max: Tokens


class Run(Strict):
    """One run to be estimated. Only ``model`` is required; what is absent is filled from the framework's defaults."""

    model_config = ConfigDict(defer_build=False)  # else each shape that holds a Run builds its own

    model: str | dict[str, Any]
    framework: str | None = None
    stack: dict[str, str | None] | None = None
    task: Task | None = None
    stage: Stage | None = None
    method: Method | None = None
    precision: Precision | None = None
    autocast: bool | None = None
    weight_format: str | None = None
    adapter: Adapter | None = None
    kbit_prepare: bool | None = None
    optimizer: str | None = None
    optimizer_impl: Literal["fused", "foreach", "for-loop", "in-backward"] | None = None
    micro_batch: Count | None = None
    grad_accum: Count | None = None
    seq_len: Tokens | Lengths | None = None
    packing: bool | None = None
    gradient_checkpointing: str | bool | None = None
    attention: Attention | None = None
    loss: Loss | None = None
    logits: Literal["last", "all"] | None = None
    fused_kernels: list[Literal["norm", "rope", "mlp", "lora"]] | None = None
    compile: bool | None = None
    outputs_kept: bool | None = None
    attention_mask_4d: bool | None = None
    gradient_clipping: bool | float | None = None
    zero_grad_to_none: bool | None = None
    parallel: Parallel | None = None
    offload: Offload | None = None
    preference: Preference | None = None
    rl: ReinforcementLearning | None = None
    vision: Vision | None = None
    engine: str | None = None
    context_len: Tokens | None = None
    new_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS), _NoSwitch("int")] | None = None
    concurrency: Count | None = None
    kv_cache: KVCache | None = None
    serving: Serving | None = None
    gpu: str | Annotated[list[str], Field(min_length=1)] | None = None
    gpu_count: Count | None = None
    nodes: Count | None = None
    host_ram_gib: Annotated[float, Field(gt=0), _NoSwitch("float")] | None = None
    reserved_by_others_gib: Annotated[float, Field(ge=0), _NoSwitch("float")] | None = None
    details: dict[str, Any] | None = None
    tokens: Annotated[float, Field(gt=0), _NoSwitch("float")] | None = None
    samples: Annotated[float, Field(gt=0), _NoSwitch("float")] | None = None
    epochs: Annotated[float, Field(gt=0), _NoSwitch("float")] | None = None
    price_usd_per_hour: Annotated[float, Field(ge=0), _NoSwitch("float")] | None = None
    economics: Economics | None = None


class Assumption(BaseModel):
    """A value that the run did not give, and where it was taken from."""

    field: str
    value: Any
    why: str
    why_zh: str = ""


class Range(BaseModel):
    """Bytes: a low, an expected and a high value."""

    low: int
    expected: int
    high: int


class Interval(BaseModel):
    """Bytes between which the truth lies in ``coverage`` of the cases."""

    low: int
    high: int
    coverage: float


class PhasePeak(BaseModel):
    """The allocated peak within one phase of the step, in bytes; where it is explained, also what lives there."""

    phase: Phase
    allocated_peak: int
    blocks: "list[Block] | None" = None


class Block(BaseModel):
    """One part of the peak, with its reason in figures."""

    item: Item
    bytes: int
    why: str
    why_zh: str = ""
    parts: list["Block"] | None = None


class PerGpu(BaseModel):
    """What one card holds: the exact claim and the two intervals around the card's own counters."""

    allocated_peak: int
    reserved_peak: Range
    device_peak: Range
    interval: Interval
    peak_phase: Phase
    phases: list[PhasePeak]
    at_peak: list[Block]
    steady: int


class ServingMemory(BaseModel):
    """What an inference engine would print, in bytes per card unless the name says tokens.

    ``kv_bytes_low`` and ``high`` bound the cache in nine of ten cases. ``users_possible``: requests of the asked length
    at once; ``utilization_needed``: the smallest share of the card with which what was asked for starts;
    ``layers_possible``: what ``-ngl`` may be; ``best_format``: the weights with the most bits that fit.
    ``needed_bytes``: weights, work space and the cache of all requests; an engine that fills a share of the card takes
    more. Steps of a serving engine are measured against it: ``needed_bytes`` less ``saves`` is a step's peak.
    """

    weights_bytes: int | None = None
    kv_bytes: int | None = None
    kv_bytes_per_token: float | None = None
    kv_tokens: int | None = None
    concurrency: float | None = None
    max_len_possible: int | None = None
    activation_peak_bytes: int | None = None
    non_torch_bytes: int | None = None
    cuda_graph_bytes: int | None = None
    compute_buffer_bytes: int | None = None
    kv_bytes_low: int | None = None
    kv_bytes_high: int | None = None
    users_possible: int | None = None
    utilization_needed: float | None = None
    layers_on_card: int | None = None
    layers_possible: int | None = None
    best_format: str | None = None
    needed_bytes: int | None = None


class Host(BaseModel):
    """Bytes of host memory and disk that the run needs."""

    ram: int = 0
    nvme: int = 0


class Fit(BaseModel):
    """Whether the run fits the card: usable bytes, what is left, and how sure that is."""

    verdict: Verdict | None = None
    usable: int | None = None
    margin: int | None = None
    confidence: float | None = None


class Step(BaseModel):
    """One move that lowers the peak (``saves`` bytes of allocated memory), what it costs and what to type.

    ``change`` is a partial Run in which null takes a field away: ``estimator.downgrades.applied`` merges it. ``note``
    says what changes for the result, and what the computer's own memory must hold; ``commands`` are flags of the run's
    own framework or engine, empty only for another card, which needs none. ``host_ram``: bytes of the computer's own
    memory with it, 0 where it is no more than before. Of a serving engine, ``allocated_peak`` is
    what all requests need (``serving.needed_bytes`` of the run before), not the share of the card that it fills.
    """

    id: str
    title: str
    title_zh: str = ""
    note: str = ""
    note_zh: str = ""
    change: dict[str, Any]
    allocated_peak: int
    device_peak: Range | None = None
    saves: int
    speed_cost: Literal["none", "small", "medium", "large"]
    quality_cost: Literal["none", "small", "medium"]
    money_cost: Literal["none", "small", "medium", "large"]
    verdict: Verdict | None
    host_ram: int = 0
    commands: list[str]


class Plan(BaseModel):
    """The cheapest chain of steps that fits.

    ``steps`` are ids; ``chain`` holds the steps one after the other, each with the peak after it and what it saves
    there; ``change`` is all of them together, ``run`` the whole run after them, ``commands`` what to type for it,
    ``host_ram`` bytes of the computer's own memory where it is more than before.
    """

    steps: list[str]
    chain: list[Step] = Field(default_factory=list)
    change: dict[str, Any] = Field(default_factory=dict)
    run: Run | None = None
    allocated_peak: int
    device_peak: Range | None = None
    verdict: Verdict
    host_ram: int = 0
    commands: list[str] = Field(default_factory=list)


class Largest(BaseModel):
    """The largest micro-batch and length that fit, the rest as asked."""

    micro_batch: int
    seq_len: int


class Alternative(BaseModel):
    """What the peak would be, had something that was assumed been otherwise."""

    change: dict[str, Any]
    why: str
    why_zh: str
    allocated_peak: int
    device_peak: Range
    verdict: Verdict | None = None


class Problem(BaseModel):
    """What is wrong with the input and how to mend it, in one sentence per language."""

    field: str | None = None
    message: str
    message_zh: str = ""


class Estimate(BaseModel):
    """The answer for one run; ``error`` is set and the rest empty when there is none."""

    id: Any = None
    run: Run | None = None
    assumptions: list[Assumption] = Field(default_factory=list)
    notes: list[Assumption] = Field(default_factory=list)
    alternatives: list[Alternative] = Field(default_factory=list)
    per_gpu: PerGpu | None = None
    serving: ServingMemory | None = None
    host: Host = Field(default_factory=Host)
    fit: Fit = Field(default_factory=Fit)
    downgrades: list[Step] = Field(default_factory=list)
    plan: Plan | None = None
    max: Largest | None = None
    time: TimeEstimate | None = None
    cost: CostEstimate | None = None
    error: Problem | None = None
