"""What an engine takes on one card, before it is told as an estimate."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from estimator.schema import Assumption, Phase
from estimator.weights import Weights


class Why(NamedTuple):
    """A reason in figures, in English and Chinese."""

    english: str
    chinese: str


class Share(NamedTuple):
    """Something beside weights and cache inside the allocator: item of the breakdown, bytes, reason."""

    item: str
    bytes: int
    why: Why


class Cache(NamedTuple):
    """The cache of a card: ``bytes`` that the engine takes and ``needed`` by the requests that were asked for.

    ``tokens`` and ``concurrency`` are what the engine prints, ``longest`` the tokens of the longest single request.
    ``need``: bytes for so many requests of so many tokens where nothing else follows from them.
    """

    bytes: int
    needed: int
    per_token: float
    tokens: int | None
    concurrency: float | None
    longest: int | None
    users: int | None
    why: Why
    need: Callable[[int, int], int] | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of the fullest card.

    ``outside`` are bytes beyond the allocator (NCCL, kernels, graphs, context): low, expected, high. ``uncertain`` is
    how far ``shares`` may really lie below and above. ``left`` is what a preallocating engine has for its cache (below
    0 it does not start), None for the others and without a card. ``filled`` are bytes of its share of the card, what it
    measured outside of the allocator included, ``beyond`` what lies on the card besides, the context apart.
    ``printed_weights`` and ``printed_cache`` are the engine's own figures where they are not this card's.
    """

    weights: Weights
    cache: Cache
    shares: tuple[Share, ...]
    outside: tuple[int, int, int]
    uncertain: tuple[int, int]
    left: int | None = None
    filled: int | None = None
    beyond: tuple[int, int, int] = (0, 0, 0)
    non_torch: int | None = None
    graphs: int | None = None
    compute_buffer: int | None = None
    host: int = 0
    peak_phase: Phase = "prefill"
    printed_weights: int | None = None
    printed_cache: int | None = None
    layers_on_card: int | None = None
    notes: list[Assumption] = field(default_factory=list)

    @property
    def beside(self) -> int:
        """Bytes of the shares."""
        return sum(share.bytes for share in self.shares)

    @property
    def allocated(self) -> int:
        """What the allocator holds at the peak."""
        return self.weights.bytes + self.cache.bytes + self.beside

    @property
    def room(self) -> int:
        """What a preallocating engine has for its cache beyond what the requests need; negative where it lacks."""
        return (self.left or 0) - self.cache.needed

    @property
    def surely_holds(self) -> bool:
        """Whether the cache of a preallocating engine surely holds the requests."""
        return self.left is None or self.room >= self.uncertain[0]

    @property
    def activation(self) -> int:
        """The work of a step."""
        return sum(share.bytes for share in self.shares if share.item == "activations")


def note(field_name: str, value: object, english: str, chinese: str) -> Assumption:
    """Something the reader must be told."""
    return Assumption(field=field_name, value=value, why=english, why_zh=chinese)
