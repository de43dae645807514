"""How a model is run: everything but its dimensions, the batch and the length that decides what is allocated."""

from typing import NamedTuple

from estimator.step.tape import FULL, HALF


class AdapterRegime(NamedTuple):
    """Low-rank adapters. ``targets`` is all-linear | attention | qv | qkv or module names; sizes in bytes.

    ``moved``: names of linears whose adapters peft puts on the experts' stacked tensors instead.
    """

    rank: int
    targets: str | tuple[str, ...] = "all-linear"
    itemsize: int = FULL
    dropout: float = 0.0
    dora: bool = False
    moved: tuple[str, ...] = ()


class Regime(NamedTuple):
    """The mode of one step. Item sizes in bytes.

    ``single`` (batch is 1) and ``windowed`` (the length reaches the sliding window) select layouts and kernels.
    ``accumulates``: gradients of an earlier micro-step are alive during the backward.
    ``kbit``: norms, embeddings and head are fp32 (peft's k-bit preparation).
    ``reentrant``: checkpoints run without a graph and again with one (PyTorch's older kind). ``offload_saved``: what
    the backward keeps waits in host memory. ``scaler``: the loss is scaled (GradScaler).
    ``fp16``: half precision is fp16 (bf16 otherwise); only some quantised kernels care.
    ``load_itemsize``: bytes per element in which the weights are loaded before they are cast; 0: the final type.
    ``generates``: inference goes on after the prompt, token by token.
    ``update``: lomo | adalomo | at-once-N (any other, each step with N copies of a parameter), an optimizer that runs
    inside the backward.
    ``linear_experts``: each expert is a set of linear modules (transformers 4), weights and adapters are counted so.
    ``trainable``: all | none (adapters only) | last | first (the whole of ``trainable_layers`` layers, nothing else).
    ``stage``: "" (one forward with the model's own loss) or the stage whose step differs: dpo | kto | reward | orpo |
    simpo | grpo | ppo | embed. ``reference``: none | model | adapter-off, who gives the reference log-probabilities.
    ``tower``: rows carry images, and the tower that sees them is frozen | trained; "" without images.
    """

    training: bool = True
    itemsize: int = HALF
    autocast: bool = False
    trainable: str = "all"
    trainable_layers: int = 0
    adapter: AdapterRegime | None = None
    quantised: str | None = None
    kbit: bool = False
    attention: str = "sdpa"
    checkpointing: str = "none"
    every: int = 1
    loss: str = "standard"
    outputs_kept: bool = False
    outputs_to_full: bool = False
    mask: str = "none"
    accumulates: bool = False
    single: bool = True
    windowed: bool = False
    fused: tuple[str, ...] = ()
    logits: str = "last"
    generates: bool = True
    load_itemsize: int = 0
    cache: str | None = None
    dropout: bool = True
    merge_in_place: bool = False
    quirks: tuple[str, ...] = ()
    update: str | None = None
    fp16: bool = False
    scaler: bool = False
    reentrant: bool = False
    offload_saved: bool = False
    linear_experts: bool = False
    stage: str = ""
    reference: str = "none"
    tower: str = ""

    def __hash__(self) -> int:
        """Few fields tell regimes apart; equality still compares all."""
        return hash((self.itemsize, self.autocast, self.checkpointing, self.loss, self.quantised, self.single))

    def trains(self, index: int, layers: int) -> bool:
        """Whether the own parameters of layer ``index`` of ``layers`` train (not its adapters)."""
        if self.trainable == "last":
            return index >= layers - self.trainable_layers
        if self.trainable == "first":
            return index < self.trainable_layers
        return self.trainable == "all"
