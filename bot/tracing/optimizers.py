"""The optimizer of a plan, from the library that has it."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from bot.tracing.fakes import pretending, quantiser
from bot.tracing.plan import Plan

RATE = 1e-4
OF_BITSANDBYTES = {"adamw": "AdamW", "lion": "Lion", "ademamix": "AdEMAMix"}


def optimizer_of(plan: Plan, model: Any, parameters: list[Any]) -> Any:
    """The optimizer over the parameters that train."""
    name, how = plan.optimizer, plan.implementation
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=RATE, fused=how == "fused", foreach=how == "foreach")
    if name == "muon":
        return Several(*_muon(model, parameters))
    if name == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=RATE, scale_parameter=False, relative_step=False)
    if name.startswith("sgd"):
        return torch.optim.SGD(parameters, lr=RATE, momentum=0.9 if name == "sgd-momentum" else 0.0, foreach=True)
    return _of_bitsandbytes(name, parameters)


def _of_bitsandbytes(name: str, parameters: list[Any]) -> Any:
    """Its updates write in place (bitsandbytes 0.50.2, CUDA kernels), so that on fake tensors they may do nothing."""
    package, functions = quantiser()
    if pretending():
        functions.optimizer_update_32bit = functions.optimizer_update_8bit_blockwise = _in_place
    kind = getattr(package.optim, OF_BITSANDBYTES[name.split("-")[0]])
    return kind(parameters, lr=RATE, optim_bits=8 if name.endswith("8bit") else 32)


def _in_place(*_: Any, **__: Any) -> None:
    """Nothing is allocated."""


def _muon(model: Any, parameters: list[Any]) -> Iterable[Any]:
    """Muon for the matrices inside the layers, AdamW for embeddings, head and all that is no matrix."""
    head = model.get_output_embeddings()
    outside = {id(one) for each in model.modules() if isinstance(each, nn.Embedding) or each is head
               for one in each.parameters()}  # fmt: skip
    hidden = [one for one in parameters if one.ndim == 2 and id(one) not in outside]
    ours = {id(one) for one in hidden}
    rest = [one for one in parameters if id(one) not in ours]
    if hidden:
        yield torch.optim.Muon(hidden, lr=RATE)
    if rest:
        yield torch.optim.AdamW(rest, lr=RATE, fused=True)


class Several:
    """Optimizers that step one after the other."""

    def __init__(self, *each: Any) -> None:
        self.each = each

    def step(self) -> None:
        """All of them."""
        self._all(lambda one: one.step())

    def zero_grad(self, set_to_none: bool = True) -> None:
        """All of them."""
        self._all(lambda one: one.zero_grad(set_to_none=set_to_none))

    def _all(self, act: Callable[[Any], None]) -> None:
        for one in self.each:
            act(one)

    @property
    def state(self) -> dict[Any, Any]:
        """The states of all, by parameter."""
        return {key: value for one in self.each for key, value in one.state.items()}
