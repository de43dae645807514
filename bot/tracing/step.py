"""The training step, and the generation, that are followed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch

from bot.tracing import heads
from bot.tracing.optimizers import optimizer_of
from bot.tracing.plan import Plan

STEPS = 2
"""The first makes the optimizer's states, the second is like all that follow."""
CACHES = ("past_key_values", "cache", "cache_params")
HALF = (torch.bfloat16, torch.float16)


class Watcher(Protocol):
    """Who is told what happens: the tracker, or nobody on a real card."""

    step: int
    backward: bool

    def enter(self, phase: str) -> None:
        """A phase begins."""

    def tag(self, tensor: Any, item: str, only: str | None = None) -> None:
        """What a tensor is for."""

    def keep(self) -> None:
        """The forward is over."""


class Training:
    """A model, its optimizer and the loop around them, as transformers' Trainer has it (or a plain loop)."""

    def __init__(self, plan: Plan, model: Any, watcher: Watcher, device: str = "cuda") -> None:
        self.plan, self.model, self.watcher, self.device = plan, model, watcher, device
        self.vocab = model.config.get_text_config().vocab_size
        self.trained = [one for one in model.parameters() if one.requires_grad]
        self.optimizer = optimizer_of(plan, model, self.trained)
        self.half = getattr(torch, plan.autocast) if plan.autocast else None
        self.scaler = torch.amp.GradScaler(device) if plan.scaler else None
        self.outputs: Any = None
        for one in self.trained:
            one.register_post_accumulate_grad_hook(lambda held: watcher.tag(held.grad, "gradients"))
        model.get_output_embeddings().register_forward_pre_hook(self._at_head)

    def run(self) -> None:
        """All steps."""
        for step in range(1, STEPS + 1):
            self.watcher.step = step
            for _ in range(self.plan.micro_steps):
                self._micro_step()
            self._update()

    def _at_head(self, module: Any, inputs: Any) -> None:
        if not self.watcher.backward:
            self._loss_begins(inputs[0])

    def _loss_begins(self, hidden: Any) -> None:
        self.watcher.enter("loss")
        self.watcher.tag(hidden, "activations", only="other")

    def _micro_step(self) -> None:
        self.watcher.enter("forward")
        ids, labels, further = self._batch()
        with self._autocast():
            new = self._forward(ids, labels, further)
        if self.half is not None and not self.plan.outputs_kept:
            _to_full(new)
        self.outputs = new
        del new
        loss = self.outputs["loss"]
        if self.plan.micro_steps > 1:
            loss = loss / self.plan.micro_steps
        if not self.plan.outputs_kept:
            self.outputs = None
        self.watcher.keep()
        self.watcher.enter("backward")
        del ids, labels, further
        with self._backward():
            (self.scaler.scale(loss) if self.scaler else loss).backward()

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device, dtype=self.half) if self.half is not None else nullcontext()

    @contextmanager
    def _backward(self) -> Iterator[None]:
        self.watcher.backward = True
        try:
            yield
        finally:
            self.watcher.backward = False

    def _batch(self) -> tuple[Any, Any, dict[str, Any]]:
        rows, length = self.plan.batch, self.plan.length
        ids = torch.randint(0, self.vocab, (rows, length), device=self.device)
        target = (rows, self.plan.target)
        labels = torch.randint(0, self.vocab, target, device=self.device) if self.plan.seq2seq else ids.clone()
        further: dict[str, Any] = {}
        if self.plan.mask_4d:
            further["attention_mask"] = torch.ones(rows, 1, length, length, dtype=torch.bool, device=self.device)
        if self.plan.documents:
            pieces = [torch.arange(count, device=self.device) for count in self.plan.documents]
            further["position_ids"] = torch.cat(pieces)[None]
        for one in (ids, labels, *further.values()):
            self.watcher.tag(one, "activations")
        return ids, labels, further

    def _forward(self, ids: Any, labels: Any, further: dict[str, Any]) -> Any:
        if self.plan.loss == "standard":
            return self.model(input_ids=ids, labels=labels, **further)
        base = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        hidden = base.base_model(input_ids=ids, **further).last_hidden_state
        self._loss_begins(hidden)
        head = base.get_output_embeddings().weight
        if self.plan.loss == "chunked":
            return {"loss": heads.chunked(hidden, head, labels)}
        return {"loss": heads.fused(hidden, head, labels, self.half)}

    def _update(self) -> None:
        self.watcher.enter("optimizer_step")
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        if self.plan.clipping:
            torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        for state in self.optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    self.watcher.tag(value, "optimizer_states")
        self.optimizer.zero_grad(set_to_none=self.plan.zero_to_none)


def _to_full(outputs: Any) -> None:
    """What accelerate does to the outputs under autocast."""
    for name, value in list(outputs.items()):
        if isinstance(value, torch.Tensor) and value.dtype in HALF:
            outputs[name] = value.float()


def generate(plan: Plan, model: Any, watcher: Watcher, device: str = "cuda") -> None:
    """The prompt, then token by token, as ``generate`` calls the model and chooses greedily."""
    model.requires_grad_(False)
    takes = "logits_to_keep" in _arguments(model)
    watcher.step = STEPS
    with torch.no_grad():
        watcher.enter("prefill")
        ids = torch.randint(0, model.config.vocab_size, (plan.batch, plan.length), device=device)
        kept: dict[str, Any] = {"logits_to_keep": 1 if plan.logits == "last" else 0} if takes else {}
        start, source = "input_ids", {}
        if plan.seq2seq:
            source = {"encoder_outputs": model.get_encoder()(input_ids=ids)}
            start, token = "decoder_input_ids", torch.zeros(plan.batch, 1, dtype=torch.long, device=device)
        out = model(**{start: token if source else ids}, **source, use_cache=True, **kept)
        name = next((one for one in CACHES if one in out and out[one] is not None), "")
        past, token = out[name] if name else None, _next(out.logits, plan.new_tokens > 1)
        del out
        for _ in range(plan.new_tokens - 1):
            watcher.enter("decode")
            held = {name: past} if name else {}
            kept = {"logits_to_keep": 1} if takes else {}
            out = model(**{start: token}, **source, use_cache=True, **held, **kept)
            past, token = out[name] if name else None, _next(out.logits, plan.new_tokens > 1)
            del out, held


def _next(logits: Any, generates: bool) -> Any:
    """The likeliest word of each row: ``generate`` takes the last position's scores in fp32, always a copy."""
    scores = logits[:, -1, :].to(copy=True, dtype=torch.float32) if generates else logits[:, -1]
    return scores.argmax(-1)[:, None]


def _arguments(model: Any) -> set[str]:
    import inspect

    return set(inspect.signature(model.forward).parameters)
