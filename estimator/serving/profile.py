"""What vLLM's profiling run finds beside the weights: sampling or the forward, whichever is higher, and what stays.

Rule V3 of the published records: sampling takes ``bytes x sequences x vocabulary`` (not divided by the ranks), the
forward a few rows of the widest layer for every batched token. Expert kernels keep workspaces, multimodal models keep
the profiled images' hidden states.
"""

from typing import NamedTuple

from estimator.serving.facts import GIB, at_version, by_ranks, facts, gib, version_of
from estimator.serving.plan import Plan
from estimator.serving.rank_weights import encoder_of
from estimator.weights import LABELS, Weights

HALF = 2
GATED_ROWS = 3
WIDE_ROWS = 4
FIRST_ENGINE = (0, 8)
PATCHES = 4
MERGED_TOKENS = 16384
VISION_ROWS = 11


class Limits(NamedTuple):
    """Sequences and tokens of one step."""

    seqs: int
    tokens: int


class Profile(NamedTuple):
    """Bytes: ``sampler`` and ``forward`` with what is held beside them, or the image tower's ``vision`` before."""

    limits: Limits
    sampler: int
    forward: int
    workspaces: int
    encoder: int
    vision: int

    @property
    def peak(self) -> int:
        """The activation peak."""
        return max(max(self.sampler, self.forward) + self.workspaces + self.encoder, self.vision)


def limits_of(plan: Plan) -> Limits:
    """What the engine takes where it is not told."""
    stated, table = plan.serving, facts()["vllm"]
    own = table["limits"]["large" if is_large(plan) else "small"]
    seqs, tokens = own["seqs"], own["tokens"]
    if profiles_length(plan):
        first = table["first_engine"]
        seqs = first["seqs"]
        tokens = first["chunked_tokens"] if plan.length > first["chunked_from"] else max(plan.length, tokens)
    seqs = stated.max_num_seqs or seqs
    return Limits(seqs, max(stated.max_num_batched_tokens or tokens, seqs if stated.max_num_seqs else 0))


def profiles_length(plan: Plan) -> bool:
    """Whether the profile grows with the longest request: the first engine's does."""
    return bool(plan.version) and plan.version < FIRST_ENGINE


def is_large(plan: Plan) -> bool:
    """Whether the card counts as large: 70 GiB or more, and no A100."""
    table = facts()["vllm"]["limits"]
    small = any(name in plan.card for name in table["small_cards"])
    return plan.total is not None and plan.total >= table["large_from_gib"] * GIB and not small


def profile_of(plan: Plan) -> Profile:
    """The profile of one rank."""
    arch, limits = plan.arch, limits_of(plan)
    each = at_version(facts()["vllm"]["sampler_amd" if plan.amd else "sampler"], plan.version)["value"]
    sampler = int(each * min(limits.seqs, limits.tokens) * arch.vocab) + limits.tokens * arch.hidden * HALF
    wide = GATED_ROWS * arch.intermediate // plan.tensor + WIDE_ROWS * arch.hidden
    encoder = encoder_of(arch)
    images = (encoder["tokens"] + limits.tokens * (encoder["states"] > 1)) * encoder["states"] * arch.hidden * HALF
    forward = limits.tokens * wide * HALF
    return Profile(limits, sampler, forward, workspaces(plan, limits), images, vision_forward(plan))


def vision_forward(plan: Plan) -> int:
    """One layer of the image tower at work on the profiled images, where patches are merged by four. Fitted once."""
    tower, tokens = plan.arch.vision, encoder_of(plan.arch)["tokens"]
    if tower is None or tokens < MERGED_TOKENS:
        return 0
    rows = 2 * tower.intermediate + VISION_ROWS * tower.hidden
    return int(tokens * PATCHES * rows * HALF) // plan.tensor


def workspaces(plan: Plan, limits: Limits) -> int:
    """What the expert kernels keep between calls."""
    moe = plan.arch.experts
    if moe is None or not plan.arch.gated_mlp:
        return 0
    kind = "plain" if plan.fmt is None else f"{'amd' if plan.amd else plan.generation.lower()}_{plan.fmt}"
    copies = at_version(facts()["vllm"]["workspaces"], plan.version).get(kind, 0)
    return int(copies * limits.tokens * moe.per_token * plan.arch.hidden * HALF)


def non_torch(plan: Plan) -> int:
    """Memory outside PyTorch: NCCL's buffers and loaded kernels."""
    if plan.vendor == "NVIDIA" and not is_server_card(plan):
        return gib(by_ranks(facts()["vllm"]["non_torch_pcie"]["gib"], plan.tensor))
    row = at_version(facts()["vllm"]["non_torch"], plan.version)
    return gib(by_ranks(row["amd" if plan.amd else "nvidia"], plan.tensor)) + fused_reduce(plan)


def fused_reduce(plan: Plan) -> int:
    """The workspace of the all-reduce that newer versions fuse with the norm after it."""
    table = facts()["vllm"]["fused_reduce"]
    parallel = plan.run.parallel
    several = plan.stages > 1 or (parallel is not None and parallel.data > 1)
    if plan.version < version_of(table["since" if not several else "several_since"]) or not plan.graphs:
        return 0
    bridged = any(name in plan.card for name in table["bridged"])
    if plan.generation not in table["generations"] or bridged:
        return 0
    if plan.arch.model_type in at_version(table["uncompiled"], plan.version)["models"]:
        return 0
    return gib(table["gib"].get(str(plan.tensor), 0))


def is_server_card(plan: Plan) -> bool:
    """Whether the card is one of the large ones that the fit was made on."""
    return plan.total is None or plan.total >= facts()["vllm"]["limits"]["large_from_gib"] * GIB


def graphs_of(plan: Plan) -> int:
    """CUDA graphs, captured after the cache was sized."""
    if not plan.graphs:
        return 0
    table = facts()["vllm"]
    if not is_server_card(plan):
        return gib(table["graphs_small"]["gib"])
    row = at_version(table["graphs"], plan.version)["amd" if plan.amd else "nvidia"]
    kind = kind_of(plan) if kind_of(plan) in row else "moe"
    return gib(row[kind] + (0 if kind == "latent" else row["rank"] * (plan.tensor - 1)))


def kind_of(plan: Plan) -> str:
    """What the graphs' size goes by."""
    return "latent" if plan.arch.latent is not None else "moe" if plan.arch.experts else "dense"


def graphs_counted(plan: Plan) -> int:
    """The estimate of the graphs that newer versions take off before they size the cache."""
    table = facts()["vllm"]["graphs_counted"]
    share = table[kind_of(plan)]
    return int(share * graphs_of(plan)) if plan.version >= version_of(table["since"]) else 0


def load_extra(plan: Plan, weights: Weights) -> int:
    """What a load on AMD shows beyond its tensors."""
    if not plan.amd:
        return 0
    mixture = plan.arch.experts is not None
    kind = ("fp8_mixture" if mixture else "fp8") if plan.fmt else "mixture" if mixture else "plain"
    row = at_version(facts()["vllm"]["amd_load"], plan.version)[kind]
    experts = sum(part.bytes for part in weights.parts if part.label_en == LABELS["experts"][0])
    shares = row.get("share", 0) * weights.bytes + row.get("experts", 0) * experts
    return int(shares) + gib(row.get("gib", 0))
