"""Bytes that CUDA kernels allocate and free by themselves, which no dispatch shows.

Read in the sources of PyTorch 2.13: flash_attn/flash_api.cpp (fp32 accumulator of dq, softmax_d, expanded dk and dv),
attention_backward.cu (delta; the fp32 accumulator for 16 bit is approximate), the composite safe softmax.
"""

from typing import Any

import torch

aten = torch.ops.aten
HALF = (torch.bfloat16, torch.float16)


def _block(size: int) -> int:
    return -(-size // 512) * 512


def scratch_of(func: Any, args: Any) -> int:
    """Bytes alive only inside the kernel of an operation; 0 for nearly all."""
    rule = RULES.get(func)
    return rule(args) if rule else 0


def _flash(args: Any) -> int:
    _, query, key = args[:3]
    rows, heads, length, width = query.shape
    padded, wide = -(-length // 128) * 128, 32 if width <= 128 else 64
    found = _block(rows * heads * padded * 4) + _block(rows * padded * heads * -(-width // wide) * wide * 4)
    if key.shape[1] != heads:
        found += 2 * _block(rows * key.shape[2] * heads * width * query.element_size())
    return found


def _efficient(args: Any) -> int:
    gradient, query = args[:2]
    rows, heads, length, width = query.shape
    found = _block(rows * heads * length * 4)
    if not gradient.transpose(1, 2).is_contiguous():
        found += _block(gradient.numel() * gradient.element_size())
    return found + (_block(rows * heads * length * width * 4) if query.dtype in HALF else 0)


def _softmax(args: Any) -> int:
    scores = args[0]
    return _block(_block(scores.numel() * scores.element_size()) + _block(scores.numel()))


RULES = {
    aten._scaled_dot_product_flash_attention_backward.default: _flash,
    aten._scaled_dot_product_efficient_attention_backward.default: _efficient,
    aten._safe_softmax.default: _softmax,
}
