"""Moves to other hardware: more of the same cards, or the smallest card that holds the run."""

from collections.abc import Callable, Sequence
from functools import cache
from math import gcd
from typing import overload

from estimator.catalogue import GpuMatch, find_gpu
from estimator.catalogue.sizes import of_maker, sizes_gb
from estimator.downgrades.around import Around
from estimator.downgrades.figures import A_NODE, effective_batch
from estimator.downgrades.mildest import least
from estimator.downgrades.training import CUDA, changed, half_type
from estimator.schema import Offload, Parallel, Run
from estimator.serving.engines import SERVERS

GIB = 1 << 30
FSDP = ("fsdp1", "fsdp2")
MOST_CARDS = {"datacenter": 512, "npu": 512, "class": 512, "consumer": 8, "workstation": 8}
"""Cards of one kind that are worked with together; laptops, unified memory and slices of a card have no second."""
DATACENTER_GB = 40
"""From this size on a card of which only the size is known counts as a datacenter's."""
WHOLE = 3
"""ZeRO's stage that shares out weights, gradients and states."""
SERVER_GB = (80, 141)
"""Cards that servers of eight are built with (A100 and H100, H200): what a run is spread over that no card holds."""
TENSOR_COUNTS = (2, 4, 8, 16)
OWN_SOFTWARE = ("Apple", "Huawei")
"""Makers whose users look for a larger one of theirs first: what they run (Metal, CANN) runs there alone."""
MEGATRON = "megatron"


def most_cards(gpu: GpuMatch) -> int:
    """How many cards of a kind are offered at most; 1 where there is no second."""
    small = gpu.kind == "class" and gpu.nominal_gb < DATACENTER_GB
    return MOST_CARDS["consumer"] if small else MOST_CARDS.get(gpu.kind, 1)


def shard(run: Run, around: Around) -> tuple[Run, ...]:
    """Shared-out weights instead of a copy on each of several cards."""
    cards, known = run.gpu_count or 1, run.parallel or Parallel()
    if run.task != "train" or cards == 1 or "8bit" in str(run.optimizer):
        return ()
    if known.engine == "deepspeed" and known.zero < WHOLE:
        return (changed(run, parallel=known.model_copy(update={"zero": WHOLE})),)
    return (changed(run, parallel=_sharded(run, cards)),) if known.engine in ("none", "ddp") else ()


def _sharded(run: Run, cards: int) -> Parallel:
    """Everything shared out over all cards, by the engine that the run has or FSDP."""
    deepspeed = run.parallel is not None and run.parallel.engine == "deepspeed"
    return Parallel(engine="deepspeed" if deepspeed else "fsdp2", data=cards, zero=WHOLE)


def offload_optimizer(run: Run, around: Around) -> tuple[Run, ...]:
    """States and update on the CPU: DeepSpeed's, on one card with ZeRO-2."""
    return _offloaded(run, around, 2, {"optimizer": "cpu"}) if run.method in ("full", "freeze") else ()


def offload_parameters(run: Run, around: Around) -> tuple[Run, ...]:
    """Weights wait in host memory too: FSDP where the run has it, else ZeRO-3, which does not take 4-bit weights."""
    if run.parallel is not None and run.parallel.engine in FSDP:
        return _offloaded_by_fsdp(run, around)
    return _offloaded(run, around, WHOLE, {"optimizer": "cpu", "parameters": "cpu"}) if run.method != "qlora" else ()


def _offloaded_by_fsdp(run: Run, around: Around) -> tuple[Run, ...]:
    """FSDP keeps pieces of weights, gradients and states on the host together; bitsandbytes has no such states."""
    known = run.offload or Offload()
    able = around.gpu.vendor in CUDA and "8bit" not in str(run.optimizer) and "paged" not in str(run.optimizer)
    if known.parameters != "none" or not able:
        return ()
    return (changed(run, offload=known.model_copy(update={"optimizer": "cpu", "parameters": "cpu"})),)


def _offloaded(run: Run, around: Around, zero: int, places: dict[str, str]) -> tuple[Run, ...]:
    known, offload = run.parallel or Parallel(), run.offload or Offload()
    able = known.engine in ("deepspeed", "none", "ddp")
    if not able or run.optimizer != "adamw" or around.gpu.vendor != "NVIDIA":
        return ()
    if all(getattr(offload, name) == place for name, place in places.items()):
        return ()
    data = known.data if known.engine == "deepspeed" else run.gpu_count or 1
    parallel = known.model_copy(update={"engine": "deepspeed", "data": data, "zero": max(known.zero, zero)})
    precision = f"deepspeed-{half_type(around)}"
    update = changed(
        run, parallel=parallel, offload=offload.model_copy(update=places), precision=precision, autocast=None
    )
    return (around.refill(update),)


class Lazily(Sequence[Run]):
    """The runs for counts of cards, each made when it is looked at: of many, the search looks at few."""

    def __init__(self, counts: Sequence[int], make: Callable[[int], Run]) -> None:
        self._counts, self._make = counts, cache(make)

    def __len__(self) -> int:
        return len(self._counts)

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Run]: ...
    def __getitem__(self, place: int | slice) -> Run | Sequence[Run]:
        """The same object each time, as outcomes are kept by it."""
        return self._make(self._counts[place]) if isinstance(place, int) else Lazily(self._counts[place], self._make)


def cards(run: Run, around: Around) -> Sequence[Run]:
    """More of the same cards: layers dealt out in inference, weights and states sharded in training."""
    known = run.gpu_count or 1
    if isinstance(run.gpu, list) or run.engine in SERVERS:
        return ()
    counts = range(known + 1, most_cards(around.gpu) + 1)
    if run.task == "train":
        if around.arch.experts is not None and around.gpu.vendor != "NVIDIA":  # there ``cards_by_zero`` needs fewer
            counts = counts[: max(around.arch.experts.experts - known, 0)]  # FSDP cuts between whole experts
        able = "8bit" not in str(run.optimizer) and run.method in ("full", "lora", "dora", "qlora")
        able = able and (run.parallel is None or run.parallel.engine != MEGATRON)
        return Lazily(counts, lambda count: _trained_on(run, count)) if able else ()
    dealt = Parallel(engine="device_map")
    return Lazily(counts, lambda count: changed(run, gpu_count=count, parallel=dealt))


def tensor_parallel(run: Run, around: Around) -> tuple[Run, ...]:
    """More of the same cards for a serving engine: every layer shared out among them."""
    known = run.gpu_count or 1
    if run.engine not in SERVERS or isinstance(run.gpu, list):
        return ()
    parallel = run.parallel or Parallel()
    return tuple(
        changed(run, gpu_count=count, parallel=parallel.model_copy(update={"engine": "none", "tensor": count}))
        for count in TENSOR_COUNTS
        if known < count <= most_cards(around.gpu) and around.arch.heads % count == 0
    )


def tensor_shared(run: Run, around: Around) -> tuple[Run, ...]:
    """Megatron's layers shared out among cards that are there, instead of a copy of the model on each of them."""
    known, cards = run.parallel, run.gpu_count or 1
    if run.task != "train" or known is None or known.engine != MEGATRON:
        return ()
    groups, own = known.pipeline * known.context, (known.tensor, known.expert)
    counts = [count for count in (1, *TENSOR_COUNTS) if count >= known.tensor and cards % (count * groups) == 0]
    spread = (_by_tensor(run, around, cards, count) for count in counts if around.arch.heads % count == 0)
    return tuple(one for one in spread if one.parallel and (one.parallel.tensor, one.parallel.expert) != own)


def cards_of_megatron(run: Run, around: Around) -> Sequence[Run]:
    """Twice as many cards and more, as many of them at each layer as a machine usually has."""
    known, cards = run.parallel, run.gpu_count or 1
    if run.task != "train" or known is None or known.engine != MEGATRON or isinstance(run.gpu, list):
        return ()
    counts = [cards << shift for shift in range(1, 10) if cards << shift <= most_cards(around.gpu)]
    return Lazily(counts, lambda count: _by_tensor(run, around, count, _most_at_a_layer(run, around, count)))


def _most_at_a_layer(run: Run, around: Around, cards: int) -> int:
    """As many cards as share a layer in one machine, but experts, most of the weights, are dealt out first."""
    known = run.parallel or Parallel()
    groups = known.pipeline * known.context
    able = [one for one in (1, *TENSOR_COUNTS) if known.tensor <= one <= 8 and cards % (one * groups) == 0]
    able = [one for one in able if around.arch.heads % one == 0]
    dealt = {one: _expert_groups(run, around, cards // (one * groups)) for one in able}
    return max(able, key=lambda one: (dealt[one], one), default=known.tensor)


def _by_tensor(run: Run, around: Around, cards: int, tensor: int) -> Run:
    """The run on so many cards, so many of them at each layer; the effective batch stays where its rows divide."""
    known = run.parallel or Parallel()
    data = cards // (tensor * known.pipeline * known.context)
    rows, micro = effective_batch(run), run.micro_batch or 1
    micro = max(size for size in range(1, micro + 1) if rows % (data * size) == 0 or size == 1)
    parallel = known.model_copy(update={"tensor": tensor, "data": data, "expert": _expert_groups(run, around, data)})
    return changed(run, gpu_count=cards, parallel=parallel, micro_batch=micro, grad_accum=-(-rows // (data * micro)))


def _expert_groups(run: Run, around: Around, data: int) -> int:
    """Among how many data-parallel ranks the experts are dealt out: as many as divide both."""
    known, experts = run.parallel.expert if run.parallel else 1, around.arch.experts
    return max(known, gcd(data, experts.experts)) if experts is not None else known


def _trained_on(run: Run, count: int) -> Run:
    """The run sharded over ``count`` cards with its effective batch; a larger one where its rows do not divide.

    bitsandbytes' 8-bit states and updates inside the backward do not go with FSDP's sharded tensors.
    """
    rows = effective_batch(run)
    micro = max(size for size in range(1, (run.micro_batch or 1) + 1) if rows % (count * size) == 0 or size == 1)
    accumulated = -(-rows // (count * micro))
    parallel = _sharded(run, count)
    return changed(run, gpu_count=count, parallel=parallel, micro_batch=micro, grad_accum=accumulated)


def cards_by_zero(run: Run, around: Around) -> Sequence[Run]:
    """More of the same cards with ZeRO-3, which gathers what it needs where FSDP gathers whole layers of experts."""
    able = run.task == "train" and run.method in ("full", "lora") and not run.weight_format and run.optimizer == "adamw"
    if not able or around.gpu.vendor != "NVIDIA" or _by_megatron(run) or isinstance(run.gpu, list):
        return ()
    counts = range((run.gpu_count or 1) + 1, most_cards(around.gpu) + 1)
    return Lazily(counts, lambda count: _by_zero(run, around, count))


def _by_zero(run: Run, around: Around, count: int) -> Run:
    parallel, precision = Parallel(engine="deepspeed", data=count, zero=WHOLE), f"deepspeed-{half_type(around)}"
    spread = changed(_trained_on(run, count), parallel=parallel, precision=precision, autocast=None)
    return around.refill(spread)


def on_larger(rule: Callable[[Run, Around], Sequence[Run]], run: Run, around: Around) -> tuple[Run, ...]:
    """The fewest cards of a server's size that hold the run together, spread by ``rule``.

    Of the smaller size where one machine's do, else of the size with less memory in all.
    """
    able: list[tuple[int, Run]] = []
    for size in SERVER_GB:
        gpu = find_gpu(f"{size}GB")
        if gpu.usable_low <= around.gpu.usable_low or isinstance(run.gpu, list):
            continue
        first = changed(run, gpu=f"{size}GB", gpu_count=(run.gpu_count if _by_megatron(run) else 1))
        found = least(rule(first, around._replace(gpu=gpu)), around.measure)
        if found is not None and (found.gpu_count or 1) <= A_NODE:
            return (found,)
        able += [(size * (found.gpu_count or 1), found)] if found is not None else []
    return (min(able, key=lambda one: one[0])[1],) if able else ()


def _by_megatron(run: Run) -> bool:
    return run.parallel is not None and run.parallel.engine == MEGATRON


def card(run: Run, around: Around) -> tuple[Run, ...]:
    """The smallest size of card that surely holds the run; what it needs may grow with the card (a share for vLLM).

    Of a maker whose software runs on nothing else, one of its own where there is one.
    """
    found = around.measure(run)
    needed = found.shown[2] + int((run.reserved_by_others_gib or 0) * GIB) if found is not None else None
    names = _larger(around.gpu.vendor, needed) if needed is not None else []
    larger = (changed(run, gpu=name) for name in names)
    return next(((one,) for one in larger if (on_it := around.measure(one)) is not None and on_it.fits), ())


def _larger(vendor: str, needed: int) -> list[str]:
    """Cards that have so many bytes, the smallest first."""
    own = of_maker(vendor, needed) if vendor in OWN_SOFTWARE else []
    return [*own, *(f"{size}GB" for size in sizes_gb(needed))]
