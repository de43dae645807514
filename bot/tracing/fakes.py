"""What has to be pretended so that library code runs on fake CUDA tensors as it runs on a card."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch.nn.functional as functional
from torch import nn

from bot.tracing.attention import attention

WHOLE_ON_CUDA = ("silu_backward", "mish_backward", "_fused_rms_norm")
"""Operations with a CUDA kernel that a build without it would take apart."""


@cache
def prepare() -> None:
    """Answer the questions that libraries ask about the card; once a process."""
    import torch.cuda.amp.common as amp
    import torch.optim.adam as adam

    if not torch.version.cuda:
        amp.amp_definitely_not_available = lambda: False
        torch.cuda.is_bf16_supported = lambda *_, **__: True
        torch.cuda.get_device_capability = lambda *_, **__: (8, 0)
        torch.cuda.synchronize = lambda *_, **__: None
        _keep_whole()
    adam._get_value = lambda value: 1.0 if isinstance(value, torch.Tensor) else value
    _grouped_products()
    _masks_of_ones()


def _masks_of_ones() -> None:
    """A mask of ones is looked through on a card, which asks for its values: nothing that is traced is padded."""
    import transformers.masking_utils as masks

    for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
        asked = getattr(masks, name, None)
        if asked is not None:
            setattr(masks, name, _without_mask(asked))


def _without_mask(asked: Callable[..., Any]) -> Callable[..., Any]:
    def answer(_padding: Any, *rest: Any, **named: Any) -> Any:
        return asked(None, *rest, **named)

    return answer


_KERNELS: list[Any] = []
"""A registered kernel lives as long as its library object."""


def _keep_whole() -> None:
    library = torch.library.Library("aten", "IMPL")
    for name in WHOLE_ON_CUDA:
        library.impl(name, _never, "CUDA")
    _KERNELS.append(library)


def _never(*_: Any, **__: Any) -> None:
    raise RuntimeError("a stand-in CUDA kernel was executed")


def _grouped_products() -> None:
    """The meta kernel of the experts' grouped product knows bf16 only; CUDA's own takes fp16 and fp32 too."""
    import torch._meta_registrations as registrations

    of_bf16 = registrations._meta_grouped_mm_common
    bf16 = torch.bfloat16

    def common(first: Any, second: Any, *rest: Any, **named: Any) -> Any:
        if first.dtype == second.dtype != bf16 and first.dtype in (torch.float32, torch.float16):
            return of_bf16(first.to(bf16), second.to(bf16), *rest, **named).to(first.dtype)
        return of_bf16(first, second, *rest, **named)

    registrations._meta_grouped_mm_common = common


def pretending() -> bool:
    """Whether tensors are fake at this moment."""
    return torch._guards.detect_fake_mode() is not None


def quantiser() -> tuple[Any, Any]:
    """The bitsandbytes package and its functions; its look-up tables need no values where tensors have none."""
    import bitsandbytes
    import bitsandbytes.functional as functions

    if not pretending():
        return bitsandbytes, functions
    functions.create_dynamic_map = lambda *_, **__: torch.empty(256)
    functions.name2qmap.clear()
    bitsandbytes.optim.optimizer.Optimizer8bit.name2qmap = {}
    return bitsandbytes, functions


@contextmanager
def plain_modules() -> Iterator[None]:
    """Module.to and the like without swapping tensors, which fake ones refuse."""
    before = nn.Module._apply
    nn.Module._apply = _applied
    try:
        yield
    finally:
        nn.Module._apply = before


def _applied(self: Any, change: Callable[[Any], Any], recurse: bool = True) -> Any:
    for child in self.children() if recurse else ():
        _applied(child, change)
    for name, parameter in self._parameters.items():
        if parameter is not None:
            with torch.no_grad():
                changed = change(parameter)
            if changed is not parameter:
                self._parameters[name] = nn.Parameter(changed.detach(), parameter.requires_grad)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = change(buffer)
    return self


@contextmanager
def card_kernels(packed: bool) -> Iterator[None]:
    """Attention as on a card. transformers looks for packed rows and, on fake tensors, always finds some."""
    import transformers.masking_utils as masks

    before, search = functional.scaled_dot_product_attention, masks.find_packed_sequence_indices
    functional.scaled_dot_product_attention = attention
    if not packed:
        masks.find_packed_sequence_indices = lambda position_ids: None
    try:
        yield
    finally:
        functional.scaled_dot_product_attention, masks.find_packed_sequence_indices = before, search
