"""Bytes of a key/value cache in closed form, for engines that lay it out before they run (vLLM, llama.cpp, SGLang).

Rules checked on what the engines print: 117 vLLM rows with grouped queries (median error 0.004 %), 33 with a latent
cache (0.006 %), 10 of SGLang, 39 of llama.cpp (within print resolution; vLLM 0.5 to 0.20, llama.cpp 2023 to 2026).
What transformers keeps is traced instead (``estimator.step.cache``).
"""

from dataclasses import dataclass

from estimator.architecture import Architecture
from estimator.errors import EstimatorError

BLOCKS: dict[str, tuple[int, int]] = {
    "fp32": (1, 4),
    "bf16": (1, 2),
    "fp16": (1, 2),
    "f16": (1, 2),
    "fp8": (1, 1),
    "int8": (1, 1),
    "q8_0": (32, 34),
    "q5_1": (32, 24),
    "q5_0": (32, 22),
    "q4_1": (32, 20),
    "q4_0": (32, 18),
    "iq4_nl": (32, 18),
}
"""Elements and bytes of one block of a cache type."""


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Bytes: ``per_token`` of layers that keep every token, ``windowed`` of those that keep a window's tokens.

    ``states`` is per sequence (linear attention and state spaces).
    """

    per_token: int
    windowed: int
    states: int

    def total(self, tokens: int, sequences: int = 1, window: int = 0) -> int:
        """Bytes of ``sequences`` with ``tokens`` each; windowed layers keep at most ``window`` (0: all)."""
        kept = min(tokens, window) if window else tokens
        return sequences * (tokens * self.per_token + kept * self.windowed + self.states)


def cache_size(arch: Architecture, dtype: str = "bf16", tensor: int = 1, state_itemsize: int = 4) -> CacheSize:
    """The cache of one rank of ``tensor``: heads are split, one head at least stays; a latent is kept whole."""
    block = BLOCKS.get("fp8" if dtype.startswith("fp8") else dtype)
    if block is None:
        raise EstimatorError(
            f"kv_cache.dtype {dtype[:30]!r} is not known; known are {', '.join(BLOCKS)}",
            f"未知的 kv_cache.dtype {dtype[:30]!r}；可用：{'、'.join(BLOCKS)}",
            field="kv_cache.dtype",
        )
    layer = _elements(arch, tensor) * block[1] // block[0]
    types = arch.layer_types
    return CacheSize(
        per_token=types.count("full") * layer,
        windowed=sum(map(types.count, ("sliding", "chunked"))) * layer,
        states=types.count("linear") * _linear_state(arch, tensor, state_itemsize)
        + types.count("ssm") * _ssm_state(arch, tensor, state_itemsize),
    )


def _elements(arch: Architecture, tensor: int) -> int:
    """Elements of one token in one attention layer."""
    if arch.latent is not None:
        return arch.latent.kv_rank + arch.latent.rope_dim
    return 2 * max(1, arch.kv_heads // tensor) * arch.head_dim


def _linear_state(arch: Architecture, tensor: int, itemsize: int) -> int:
    """Convolution window in 16 bit and the matrix of every value head."""
    lin = arch.linear
    if lin is None:
        return 0
    width = 2 * lin.key_heads * lin.key_dim + lin.value_heads * lin.value_dim
    convolution = (lin.conv_kernel - 1) * width * 2
    return (convolution + lin.value_heads * lin.key_dim * lin.value_dim * itemsize) // tensor


def _ssm_state(arch: Architecture, tensor: int, itemsize: int) -> int:
    """Convolution window in 16 bit and the state of a state-space layer (Mamba 1 and 2)."""
    ssm = arch.ssm
    if ssm is None:
        return 0
    width = ssm.inner + (2 * ssm.groups * ssm.state if ssm.version == 2 else 0)
    return ((ssm.conv_kernel - 1) * width * 2 + ssm.inner * ssm.state * itemsize) // tensor
