"""Scaled dot-product attention by the kernel that PyTorch chooses on Ampere and Ada cards.

The choice is read in pytorch/pytorch, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp and attention.cpp (2.13):
flash for 16 bit without a mask and equal head widths up to 256, memory-efficient for equal head counts, else plain
operations. Shapes: query (rows, heads, tokens, width), key and value (rows, key/value heads, tokens, width).
"""

import math
from typing import Any

import torch
import torch.nn.functional as functional

aten = torch.ops.aten
HALF = (torch.bfloat16, torch.float16)


def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """A stand-in for ``torch.nn.functional.scaled_dot_product_attention``."""
    query, key, value, attn_mask = _cast(query, key, value, attn_mask)
    shared = query.shape[1] // key.shape[1]
    if _flash(query, key, value, attn_mask, is_causal, shared == 1 or enable_gqa):
        return _by_flash(query, key, value, dropout_p, is_causal, scale)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        zero = torch.scalar_tensor(0.0, dtype=query.dtype, device=query.device)
        attn_mask = torch.where(attn_mask.logical_not(), -math.inf, zero)
    aligned = 8 if query.dtype in HALF else 4
    if shared == 1 and query.shape[-1] % aligned == 0 and value.shape[-1] % aligned == 0:
        return _efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if shared > 1 and enable_gqa:
        return _plain(query, key, value, attn_mask, dropout_p, is_causal, scale, shared)
    return _plain(query, key, value, attn_mask, dropout_p, is_causal, scale, 1)


def _cast(query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any, Any, Any]:
    """What autocast does to the inputs."""
    if not torch.is_autocast_enabled("cuda"):
        return query, key, value, mask
    half = torch.get_autocast_dtype("cuda")
    query, key, value = (one.to(half) if one.dtype == torch.float32 else one for one in (query, key, value))
    return query, key, value, mask.to(half) if mask is not None and mask.dtype == torch.float32 else mask


def _flash(query: Any, key: Any, value: Any, mask: Any, causal: bool, heads_fit: bool) -> bool:
    width = query.shape[-1]
    same = width == key.shape[-1] == value.shape[-1] and width <= 256
    return (
        query.dtype in HALF and mask is None and same and heads_fit and not (causal and query.shape[2] != key.shape[2])
    )


def _by_flash(query: Any, key: Any, value: Any, dropout: float, causal: bool, scale: float | None) -> Any:
    width = query.shape[-1]
    scale = 1.0 / math.sqrt(width) if scale is None else scale
    missing = -width % 8
    if missing:
        query, key, value = (functional.pad(one, (0, missing)) for one in (query, key, value))
    out = aten._scaled_dot_product_flash_attention(query, key, value, dropout, causal, False, scale=scale)[0]
    return out[..., :width] if missing else out


def _efficient(query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, scale: float | None) -> Any:
    if mask is not None:
        if any(stride % 8 for stride in mask.stride()[:-1]):
            last = mask.shape[-1]
            mask = functional.pad(mask, (0, 8 - last % 8))[..., :last]
        mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    keeps = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
    kernel = aten._scaled_dot_product_efficient_attention
    return kernel(query, key, value, mask, keeps, dropout, causal, scale=scale)[0]


def _plain(
    query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, scale: float | None, shared: int
) -> Any:
    """The composite implementation; it computes in fp32."""
    dtype = query.dtype
    if dtype in HALF:
        query, key, value = query.float(), key.float(), value.float()
    root = math.sqrt(1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    query = query * root
    if causal:
        mask = _triangle(query, key)
    if shared > 1:
        key, value = key.repeat_interleave(shared, -3), value.repeat_interleave(shared, -3)
    scores = torch.matmul(query, key.transpose(-2, -1) * root)
    if mask is not None:
        scores = scores.add_(mask.to(scores.dtype))
        scores = aten._safe_softmax(scores, -1)
    else:
        scores = torch.softmax(scores, -1)
    if dropout > 0:
        scores = functional.dropout(scores, dropout, True)
    return torch.matmul(scores, value).to(dtype)


def _triangle(query: Any, key: Any) -> Any:
    seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    zero = torch.scalar_tensor(0.0, dtype=query.dtype, device=query.device)
    return torch.where(seen.logical_not(), -math.inf, zero)
