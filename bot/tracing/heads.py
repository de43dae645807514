"""Losses that are not the model's own: TRL's chunked one, and Liger's fused linear cross-entropy re-enacted."""

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as functional

from bot.tracing.fakes import pretending


class FusedCrossEntropy(torch.autograd.Function):
    """The allocations of Liger's fused linear cross-entropy (liger-kernel 0.8.5, ops/fused_linear_cross_entropy.py).

    One buffer of logits, reused; the gradients of hidden states and head are made in place during the forward.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Any, head: Any, targets: Any) -> Any:
        """Hidden states (tokens, width) and head (vocabulary, width) to the summed loss."""
        tokens, width = hidden.shape
        pieces = -(-tokens // -(-head.shape[0] // width))
        chunk = min(tokens, 1 << (pieces - 1).bit_length())
        of_hidden = torch.zeros_like(hidden)
        of_head = torch.zeros_like(head) if head.requires_grad else None
        losses = torch.zeros(tokens, dtype=torch.float32, device=hidden.device)
        buffer = torch.empty(chunk, head.shape[0], dtype=hidden.dtype, device=hidden.device)
        for start in range(0, tokens, chunk):
            rows = hidden[start : start + chunk]
            logits = buffer[: rows.shape[0]]
            torch.mm(rows, head.t(), out=logits)
            torch.mm(logits, head, out=of_hidden[start : start + chunk])
            if of_head is not None:
                torch.addmm(of_head, logits.t(), rows, out=of_head)
        ctx.save_for_backward(of_hidden.detach(), of_head.detach() if of_head is not None else None)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """The gradients that are there already, scaled."""
        of_hidden, of_head = ctx.saved_tensors
        of_hidden.mul_(gradient)
        if of_head is not None:
            of_head.mul_(gradient)
        return of_hidden, of_head, None


def fused(hidden: Any, head: Any, labels: Any, half: Any) -> Any:
    """Liger's loss; ``half``: the type of autocast, None without."""
    targets = functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous().view(-1)
    rows = hidden.view(-1, hidden.shape[-1])
    if half is not None:
        rows, head = rows.to(half), head.to(half)
    return FusedCrossEntropy.apply(rows, head, targets)


def chunked(hidden: Any, head: Any, labels: Any) -> Any:
    """The loss of TRL's SFTTrainer, by its own autograd function; its kernels work in place, so they may do nothing."""
    import trl.kernels.chunked_logprob as kernels

    if pretending():
        kernels._use_triton = lambda device: True
        kernels._forward_kernel = kernels._backward_kernel = _Kernel()
        kernels.triton = SimpleNamespace(cdiv=lambda number, by: -(-number // by))
    rows = hidden[:, :-1].reshape(-1, hidden.shape[-1])
    found = kernels.ChunkedLogProbFunction.apply(
        rows, head, None, labels[:, 1:].reshape(-1), 1.0, 32768, None, 1.0, ("entropy", "is_top1")
    )
    return -found[0].sum() / rows.shape[0]


class _Kernel:
    def __getitem__(self, grid: Any) -> Any:
        return lambda *_, **__: None
