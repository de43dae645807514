"""How a run lies on its cards: everything that decides what one rank holds."""

from functools import lru_cache
from typing import NamedTuple


class Layout(NamedTuple):
    """The layout of a training run. Item sizes in bytes, 0 where nothing is said.

    ``shards``: cards that share one set of parameters, gradients or states; ``replicas`` of such sets. ``zero`` as
    in ZeRO: 1 states, 2 and gradients, 3 and parameters. ``stored`` (``stored_adapter``): bytes per element of the
    base's (the adapter's) parameters between steps where that is not the type they compute in. ``gather``: the
    element type in which mixed precision gathers; ``reduce``: that of the gradients' reduction.
    ``wrap``: which modules are units: layers (and the root), titan (embedding, layers, norm with head), accelerate
    (the same), root (one unit). ``reshard``: a unit is let go after its forward. ``prefetch``: the next unit of the
    backward is gathered ahead (pre | post | none). ``whole_gradients``: micro-steps without reduction keep whole
    gradients. ``leaf_units``: trainable leaves are units of their own (peft's wrapping policy). ``original_params``:
    FSDP1's ``use_orig_params``. ``outside``: checkpoints lie around the units (transformers before 5).
    ``bucket``: elements of a reduction bucket; ``bucket_view``: gradients live in it. ZeRO-3, in elements:
    ``prefetch_bucket`` gathered ahead, ``persistence``: smaller parameters stay whole, ``max_live``: gathered at most,
    ``reuse``: what is used again within so many is kept. ``states_on``, ``weights_on``: where states and parameters
    wait (none | cpu | nvme). ``tensor``: ranks that share
    every layer; ``sequence``: the residual stream is dealt out to them too, ``loss_parallel``: the logits,
    ``whole_ends``: embedding and head are not (transformers' own plan). ``context``: ranks that share
    each sequence; ``expert``: ranks that share the experts. ``pipeline``: stages of layers; ``stage``: the one looked
    at (first | last), with ``in_flight`` micro-batches whose activations it keeps, ``in_flight_last`` in the last.
    """

    engine: str = "none"
    shards: int = 1
    replicas: int = 1
    zero: int = 0
    stored: int = 0
    stored_adapter: int = 0
    gather: int = 0
    reduce: int = 0
    output: int = 0
    wrap: str = "layers"
    reshard: bool = True
    prefetch: str = "pre"
    whole_gradients: bool = False
    leaf_units: bool = False
    whole_adapters: bool = False
    """Adapters are left to hooks that average their gradients: fms-acceleration's fused LoRA under FSDP1."""
    original_params: bool = True
    outside: bool = False
    bucket: int = 0
    bucket_view: bool = False
    prefetch_bucket: int = 0
    persistence: int = 0
    max_live: int = 0
    reuse: int = 0
    states_on: str = "none"
    weights_on: str = "none"
    tensor: int = 1
    sequence: bool = False
    loss_parallel: bool = False
    whole_ends: bool = False
    context: int = 1
    expert: int = 1
    pipeline: int = 1
    in_flight: int = 1
    in_flight_last: int = 1
    stage: str = ""

    @property
    def sharded(self) -> bool:
        """Whether the parameters themselves are shared out, over data- or tensor-parallel cards."""
        groups = self.tensor > 1 or self.expert > 1 or self.pipeline > 1
        return self.cut or groups or self.engine in ("deepspeed", "megatron")

    @property
    def cut(self) -> bool:
        """Whether parameters are cut over the data-parallel cards (FSDP, ZeRO-3)."""
        return self.engine in ("fsdp1", "fsdp2") or (self.engine == "deepspeed" and self.zero == 3)

    @property
    def traced(self) -> "Layout":
        """What decides the traced step: the same for layouts that step alike."""
        return _traced(self)

    @property
    def counts_waiting(self) -> bool:
        """Whether the step's own timeline holds the gradients of earlier micro-steps."""
        return self.whole_gradients or self.engine in ("deepspeed", "megatron") or self._views

    @property
    def _views(self) -> bool:
        return self.engine == "ddp" and self.bucket_view

    @property
    def keeps_gradients(self) -> bool:
        """FSDP1 with usable original parameters lets the flat gradients go only in the next forward."""
        return self.engine == "fsdp1" and self.original_params and not self.whole_adapters


ONE_CARD = Layout()


@lru_cache(maxsize=1024)
def _traced(layout: Layout) -> Layout:
    """Copies whose gradients are reduced elsewhere step like one card; ZeRO-3 gathers the same from any number."""
    if layout.engine == "deepspeed" and layout.zero == 3:
        return layout._replace(shards=1, replicas=1, states_on="none", weights_on="none")
    return ONE_CARD if layout == Layout("ddp") else layout
