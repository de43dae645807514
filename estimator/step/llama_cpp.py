"""llama.cpp on one card: what it reserves at start, in closed form.

Rules L2 and L3 of the serving notes: the cache of every token of every sequence, and one compute buffer for a
micro-batch of ``ubatch`` tokens with flash attention, ``4 u (V + k E)`` bytes. Checked there on 39 cache and 40 buffer
lines printed by llama.cpp (cache within print resolution, buffer 35 of 40 within 1.1 %).
"""

from estimator.architecture import Architecture, Inventory
from estimator.kv_cache import cache_size
from estimator.step.assembly import Builder
from estimator.step.program import Program
from estimator.step.regime import Regime
from estimator.step.tape import FULL, Tape, Tensor

WIDE = ("qwen3_moe", "qwen3_5", "qwen3_5_moe", "qwen3_next")
"""Architectures whose buffer holds two rows of the hidden size per token."""


def trace_llama_cpp(arch: Architecture, inventory: Inventory, regime: Regime) -> Program:
    """Cache and compute buffer, both held from the start."""
    tape = Tape()
    tape.grad_enabled = False
    tape.mark("decode")
    held = _cache(tape, arch, regime.cache or "f16")
    rows = 2 if arch.model_type in WIDE else 1
    held.append(tape.new("1", regime.ubatch * (arch.vocab + rows * arch.hidden), FULL, "activations"))
    tape.mark("end")
    del held
    builder = Builder(tape)
    builder.one("decode", 0)
    return builder.program()


def _cache(tape: Tape, arch: Architecture, dtype: str) -> list[Tensor]:
    size = cache_size(arch, dtype)
    parts = [("K", size.per_token), ("W", size.windowed), ("b", size.states)]
    return [tape.new(rows, width, 1, "kv_cache") for rows, width in parts if width]
