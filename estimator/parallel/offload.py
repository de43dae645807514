"""What waits in host memory or on disk instead of on the card.

FSDP (torch 2.13: ``CPUOffloadPolicy``, ``CPUOffload``): pieces of parameters, gradients and states, updated on the
host. DeepSpeed 0.19.8 (``offload_optimizer``, ``offload_param``): fp32 copies, states and fp32 gradients of a rank's
part (the 16 bytes an element of its ``estimate_zero3_model_states_mem_needs``), and 16 bit once more: ZeRO-3's buffer
of gradients (stage3.py, ``grad_partitions_flat_buffer``), the updated parameters of ZeRO-1 and 2 on their way back
(stage_1_and_2.py, ``param_buffer_of_bit16_for_cpu_offload_groups``). With ZeRO-3 the parameters' pieces can go too. On
disk lie copies, states and fp32 gradients; the host keeps the buffers that they pass through.
"""

from estimator.parallel.layout import Layout
from estimator.parallel.states import Stored
from estimator.step.tape import FULL, HALF
from estimator.weights import Weights

PASSING = 5 * 100_000_000
"""Elements of DeepSpeed's pinned buffers for parameters on disk (``buffer_count`` x ``buffer_size``)."""


def moved(stored: Stored, layout: Layout) -> Stored:
    """The same with what is offloaded on the host's account: bytes per rank in memory and on disk."""
    ram = nvme = 0
    if layout.states_on != "none":
        own, elements = stored.optimizer.states + stored.master, sum(one.numel * one.times for one in stored.trained)
        if layout.engine == "deepspeed":
            own, halves = own + FULL * elements, stored.gradients or HALF * elements
            ram, nvme = (own + halves, 0) if layout.states_on == "cpu" else (halves, own)
        else:
            ram = own + gradients_of(stored)
        memory = stored.optimizer._replace(states=0, temporaries=0, refresh=0)
        stored = stored._replace(optimizer=memory, master=0, gradients=0)
    if layout.weights_on != "none":
        pieces = stored.weights.bytes - _buffers(stored.weights)
        ram, nvme = (ram + pieces, nvme) if layout.weights_on == "cpu" else (ram + PASSING * HALF, nvme + pieces)
        stored = stored._replace(weights=_without(stored.weights))
    return stored._replace(ram=ram, nvme=nvme)


def gradients_of(stored: Stored) -> int:
    """Bytes of one copy of the gradients in the parameters' own type."""
    return sum(tensor.bytes * tensor.times for tensor in stored.trained)


def _buffers(held: Weights) -> int:
    return sum(part.bytes for part in held.parts if not part.elements)


def _without(held: Weights) -> Weights:
    kept = tuple(part for part in held.parts if not part.elements)
    return held._replace(bytes=_buffers(held), parts=kept)
