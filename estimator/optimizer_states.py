"""What each optimizer keeps of a tensor between steps, block by block.

Read in torch 2.13 (torch/optim), bitsandbytes 0.50.2 (optim/optimizer.py), torchao 0.18 (optim/subclass_*.py),
transformers 5.24 (optimization.py), galore-torch 1.0, apollo-torch 1.0.3, adam-mini 1.1.1, lion-pytorch 0.2.5,
lomo-optim 0.1.1.
"""

from typing import NamedTuple

from estimator.step.adapters import targeted
from estimator.trainables import Trainable

SCALAR = 4
SMALL = 4096
"""bitsandbytes and torchao keep full states for tensors with fewer elements (min_8bit_size)."""


class Choice(NamedTuple):
    """An optimizer as this run uses it.

    ``rank`` and ``targets`` are GaLore's and APOLLO's, ``per_tensor`` is APOLLO-Mini's scale; ``hidden`` and ``heads``
    are the model's (Adam-mini). ``embeddings_32bit`` is transformers' override for 8-bit optimizers.
    """

    name: str = "adamw"
    implementation: str | None = None
    clipping: bool = True
    rank: int = 128
    targets: str | tuple[str, ...] = "all-linear"
    per_tensor: bool = False
    embeddings_32bit: bool = False
    hidden: int = 0
    heads: int = 1


def ceil(value: int, by: int) -> int:
    """``value / by`` rounded up."""
    return -(-value // by)


def copies(tensor: Trainable, times: int) -> list[int]:
    """Moments in the parameter's type."""
    return [tensor.bytes] * times


def full_copies(tensor: Trainable, times: int) -> list[int]:
    """Moments in fp32."""
    return [4 * tensor.numel] * times


def quantised(tensor: Trainable, choice: Choice) -> bool:
    """Whether bitsandbytes keeps this tensor's moments in 8 bit."""
    return tensor.numel >= SMALL and not (choice.embeddings_32bit and "embed" in tensor.name)


def moments_8bit(tensor: Trainable, choice: Choice, times: int) -> list[int]:
    """Bitsandbytes' 8-bit moments (fp32 for small tensors)."""
    return [tensor.numel if quantised(tensor, choice) else 4 * tensor.numel] * times


def scales_8bit(tensor: Trainable, choice: Choice, times: int) -> list[int]:
    """Their fp32 scales, one per 256 elements."""
    return [4 * ceil(tensor.numel, 256)] * times if quantised(tensor, choice) else []


def torchao(tensor: Trainable, bits: int, block: int) -> list[int]:
    """Torchao's moments: codes, fp32 scale per block, an own table; the parameter's type where blocks do not fit."""
    n = tensor.numel
    if n < SMALL or n % block:
        return copies(tensor, 2)
    return [n * bits // 8, 4 * (n // block), 4 * (1 << bits)] * 2


def factored(tensor: Trainable) -> list[int]:
    """Adafactor's fp32 row and column sums."""
    if len(tensor.shape) < 2:
        return [4 * tensor.numel]
    return [4 * (tensor.numel // tensor.shape[-1]), 4 * (tensor.numel // tensor.shape[-2])]


def projected(tensor: Trainable, choice: Choice) -> bool:
    """Whether GaLore or APOLLO project this tensor: the targeted linears of the layers."""
    return tensor.hidden and len(tensor.shape) == 2 and targeted(choice.targets, tensor.name.removesuffix(".weight"))


def low_rank(tensor: Trainable, choice: Choice) -> Trainable:
    """The gradient after projection: the smaller side becomes the rank."""
    rows, columns = tensor.shape
    rank = rank_of(tensor, choice)
    return tensor._replace(shape=(rows, rank) if rows >= columns else (rank, columns))


def rank_of(tensor: Trainable, choice: Choice) -> int:
    """The rank of the projection; singular vectors (GaLore) are no more than the smaller side."""
    return min(choice.rank, *tensor.shape) if choice.name.startswith("galore") else choice.rank


def projector(tensor: Trainable, choice: Choice, itemsize: int = 0) -> int:
    """Bytes of the projection matrix; an fp32 one from GaLore is a view that keeps all singular vectors."""
    small, itemsize = min(tensor.shape), itemsize or tensor.itemsize
    return small * (small if itemsize == 4 and choice.name.startswith("galore") else rank_of(tensor, choice)) * itemsize


def galore(tensor: Trainable, choice: Choice) -> list[int]:
    """Two moments of the projected gradient and the projector."""
    if not projected(tensor, choice):
        return copies(tensor, 2)
    return [*copies(low_rank(tensor, choice), 2), projector(tensor, choice)]


def galore_8bit(tensor: Trainable, choice: Choice) -> list[int]:
    """The same with bitsandbytes' 8-bit moments, and a scalar each: galore-torch 1.0 switches update norms on."""
    small = low_rank(tensor, choice) if projected(tensor, choice) else tensor
    own = [projector(tensor, choice)] if projected(tensor, choice) else []
    return [*moments_8bit(small, choice, 2), *scales_8bit(small, choice, 2), *own, SCALAR]


def galore_adafactor(tensor: Trainable, choice: Choice) -> list[int]:
    """Row and column sums of the projected fp32 gradient, the fp32 projector, and the parameter's RMS."""
    if not projected(tensor, choice):
        return [*factored(tensor), SCALAR]
    return [*factored(low_rank(tensor, choice)), projector(tensor, choice, 4), SCALAR]


def apollo(tensor: Trainable, choice: Choice) -> list[int]:
    """As GaLore, and the norm of the last scaled gradient."""
    own = [SCALAR] if projected(tensor, choice) else []
    return galore(tensor, choice) + own


def muon(tensor: Trainable) -> list[int]:
    """One momentum for hidden matrices; fused AdamW (with its step counter on the card) for the rest."""
    return copies(tensor, 1) if tensor.hidden and len(tensor.shape) == 2 else [*copies(tensor, 2), SCALAR]


def blocks_of_adam_mini(tensor: Trainable, choice: Choice) -> int:
    """How many second moments Adam-mini keeps: per element, head, row or tensor, by the parameter's name."""
    name = tensor.name.lower()
    if "bias" in name:
        return tensor.numel
    if any(word in name for word in ("k_proj", "q_proj", "wq", "wk", "query", "key")):
        return max(tensor.numel * choice.heads // choice.hidden**2, 1)
    per_row = (
        "embed",
        "embd",
        "wte",
        "lm_head",
        "output",
        "v_proj",
        "value",
        "mlp",
        "linear",
        "feed_forward",
        "o_proj",
        "attn.proj",
    )
    return tensor.shape[0] if any(word in name for word in per_row) else 1


def adam_mini(tensor: Trainable, choice: Choice) -> list[int]:
    """One momentum and a second moment per block."""
    return [tensor.bytes, blocks_of_adam_mini(tensor, choice) * tensor.itemsize]
