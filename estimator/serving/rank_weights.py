"""Weights of one rank of a tensor- and pipeline-parallel engine, tensor by tensor.

Matrices are split; norms, routers and the down-projections of latent attention are whole on every rank, key and value
heads where there are fewer than ranks (vLLM and SGLang model classes). Against 101 published loads in bf16 and fp8:
docs/accuracy.md.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from estimator.architecture import Architecture, Inventory, Weight
from estimator.catalogue.formats import WeightFormat, weight_format
from estimator.inventory import inventory
from estimator.serving.facts import facts
from estimator.step.program import rounded
from estimator.weights import GROUP_OF, LABELS, Part, Weights, stored_as, stored_as_zh

WHOLE = ("router", "shared_gate", "q_a_proj", "kv_a_proj", "latent_in", "latent_out", "wk", "wq_b", "weights_proj")
"""Matrices that every rank has."""

KEYS = ("k_proj", "v_proj")
VOCABULARY_PAD = 64
HALF = 2
DEEP_ROWS = 8192
"""Tokens that DeepStack's buffers are made for: the batched tokens of a large card."""

NO_ENCODER = {"tokens": 0, "states": 1, "rotary": 1}

PLACED = {**LABELS, "tower": ("image tower", "图像塔"), "rotary": ("rotary table", "旋转位置表")}


@lru_cache(maxsize=512)
def rank_weights(
    arch: Architecture,
    fmt: str | None,
    itemsize: int,
    tensor: int = 1,
    stages: int = 1,
    absorbs: bool = True,
    packs_experts: bool = False,
) -> Weights:
    """Bytes of the fullest rank.

    ``fmt`` None for plain weights of ``itemsize``. ``absorbs``: latent attention keeps two more matrices made of its
    up-projection (vLLM, SGLang). ``packs_experts``: stacked experts are packed whatever the format's own library does
    (vLLM's BitsAndBytesMoEMethod; transformers 5 leaves them in 16 bit).
    """
    return _Rank(arch, fmt, itemsize, tensor, stages, absorbs, packs_experts).weights()


class _Rank:
    def __init__(
        self, arch: Architecture, fmt: str | None, itemsize: int, tensor: int, stages: int, absorbs: bool, experts: bool
    ) -> None:
        self.arch, self.itemsize, self.tensor, self.stages = arch, itemsize, tensor, stages
        found = weight_format(fmt) if fmt else None
        self.format: WeightFormat | None = None if found is None or found.scheme == "plain" else found
        self.absorbs, self.packs_experts = absorbs, experts
        self.size: Counter[str] = Counter()
        self.elements: Counter[tuple[str, str]] = Counter()

    def weights(self) -> Weights:
        """All parts added up."""
        found = inventory(self.arch)
        for weight, times in self._held(found):
            self._add(weight, times)
        self._around()
        parts = tuple(self._part(group) for group in PLACED if self.size[group])
        return Weights(sum(part.bytes for part in parts), found.numel, parts, ())

    def _held(self, found: Inventory) -> Iterator[tuple[Weight, int]]:
        """The tensors of the fullest stage: the last one where the head outweighs the embedding."""
        ends = found.stem + found.top if self.stages == 1 else max(found.stem, found.top, key=_numel)
        yield from ((weight, 1) for weight in ends)
        share = found.layers[: -(-len(found.layers) // self.stages)]
        for index, times in Counter(share).items():
            yield from ((weight, times) for weight in found.kinds[index].weights)

    def _add(self, weight: Weight, times: int) -> None:
        group = "embeddings" if weight.part in ("head", "embedding") else GROUP_OF.get(weight.role, "norms")
        group = "experts" if weight.part.startswith("experts.") else group
        numel = self._numel(weight)
        if self._packed(weight):
            assert self.format is not None
            whole = sum(map(rounded, self._blocks(weight)))
            size, kind = whole * numel // weight.numel, self.format.name
        else:
            itemsize = 4 if weight.full or weight.role == "buffer" else self.itemsize
            size, kind = rounded(numel * itemsize), f"{itemsize} B"
        self.size[group] += size * times
        self.elements[group, kind] += numel * times

    def _packed(self, weight: Weight) -> bool:
        mixture = self.arch.experts is not None
        if self.format is None:
            return False
        if self.packs_experts and self.format.scheme.startswith("bitsandbytes") and weight.role == "expert":
            return len(weight.shape) > 1
        if not self.format.covers(weight, mixture):
            return False
        family = facts()["kept_by_family"].get(self.format.name, {}).get(self.arch.model_type, ())
        return weight.part not in family and not (mixture and weight.part in facts()["kept"].get(self.format.name, ()))

    def _blocks(self, weight: Weight) -> tuple[int, ...]:
        assert self.format is not None
        shape, multiple = weight.shape, facts()["padded"].get(self.format.name)
        if multiple and weight.role == "expert":
            at = -2 if weight.part == "experts.down_proj" else -1
            shape = tuple(_up(size, multiple) if n == len(shape) + at else size for n, size in enumerate(shape))
        return self.format.blocks(shape, weight.part == "head")

    def _numel(self, weight: Weight) -> int:
        """Elements on this rank."""
        if weight.part in ("head", "embedding") and len(weight.shape) == 2:
            rows = -(-weight.shape[0] // VOCABULARY_PAD) * VOCABULARY_PAD
            return rows * weight.shape[1] // self.tensor
        if len(weight.shape) == 1 or weight.part in WHOLE or weight.role in ("norm", "other", "buffer"):
            return weight.numel
        if weight.part in KEYS:
            return weight.numel // min(self.tensor, max(self.arch.kv_heads, 1))
        return weight.numel // self.tensor

    def _around(self) -> None:
        """What is no parameter of the language model: image tower, rotary table, absorbed projections."""
        arch, half = self.arch, min(self.itemsize, HALF)
        tower, whole = tower_parameters(arch)
        self._plain("tower", tower if whole else tower // self.tensor, half)
        self._plain("rotary", rotary_elements(arch), half)
        self._plain("tower", arch.hidden * (encoder_of(arch)["states"] - 1) * DEEP_ROWS, half)
        if arch.latent is not None and self.absorbs:
            mla = arch.latent
            copies = arch.heads // self.tensor * mla.kv_rank * (mla.nope_dim + mla.value_dim)
            self._plain("linears", copies * -(-arch.layers // self.stages), half)

    def _plain(self, group: str, numel: int, itemsize: int) -> None:
        if numel:
            self.size[group] += numel * itemsize
            self.elements[group, f"{itemsize} B"] += numel

    def _part(self, group: str) -> Part:
        english, chinese = PLACED[group]
        counted = tuple((kind, count) for (name, kind), count in self.elements.items() if name == group and count)
        why = " + ".join(stored_as(kind, count) for kind, count in counted)
        why_zh = " + ".join(stored_as_zh(kind, count) for kind, count in counted)
        return Part(english, chinese, self.size[group], why, why_zh, counted)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _numel(weights: tuple[Weight, ...]) -> int:
    return sum(weight.numel for weight in weights)


def rotary_elements(arch: Architecture) -> int:
    """Cosines and sines of every position, of a second base where windowed layers have one."""
    if arch.positions != "rope":
        return 0
    width = arch.latent.rope_dim if arch.latent is not None else int(arch.head_dim * arch.rotary_fraction)
    if facts()["rotary_tables"].get(arch.model_type):
        width += arch.sliding_head_dim or arch.head_dim
    return arch.max_positions * width * encoder_of(arch)["rotary"]


def encoder_of(arch: Architecture) -> dict[str, int]:
    """What the image tower's type adds: profiled tokens, hidden states of each, copies of the rotary table."""
    tower = arch.vision.model_type if arch.vision else "pixtral" if arch.model_type in facts()["towers"] else ""
    found: dict[str, int] = facts()["encoders"].get(tower, NO_ENCODER)
    return found


def tower_parameters(arch: Architecture) -> tuple[int, bool]:
    """Parameters of the image tower and projector, and whether every rank has them whole."""
    known = facts()["towers"].get(arch.model_type)
    if known is not None:
        return int(known["params"]), bool(known["whole"])
    if arch.vision is None:
        return 0, False
    return arch.vision.params + arch.vision.projector_params, arch.vision.model_type == "pixtral"
