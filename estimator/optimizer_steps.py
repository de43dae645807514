"""What an optimizer's step allocates while it runs, in the order of its code.

The names of a step's local variables are the slots of ``Scratch``: a new value is made before the old one goes, and
those of one tensor live on while the next tensor is worked on. Sources as in ``optimizer_states``.
"""

from collections.abc import Callable, Iterable

from estimator.optimizer_states import Choice, blocks_of_adam_mini, low_rank, projected, projector
from estimator.step.program import rounded
from estimator.trainables import Group, Trainable

Step = Callable[["Scratch", Trainable, Choice], None]
SCALAR = 4


class Scratch:
    """Local variables of a running step: bytes alive and their peak."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.live = 0
        self.peak = 0

    def put(self, name: str, size: int) -> None:
        """Bind ``name`` to a new tensor; what it held goes afterwards."""
        self.live += rounded(size)
        self.peak = max(self.peak, self.live)
        self.live -= self.slots.get(name, 0)
        self.slots[name] = rounded(size)

    def drop(self, *names: str) -> None:
        """Unbind, or bind to something that lives anyway."""
        for name in names:
            self.live -= self.slots.pop(name, 0)

    def keep(self, name: str, instead_of: int) -> None:
        """What ``name`` holds stays for good and replaces a tensor that was there before the step."""
        self.slots.pop(name)
        self.live -= rounded(instead_of)

    def move(self, old: str, new: str) -> None:
        """Bind ``new`` to what ``old`` holds, and nothing else to it."""
        self.live -= self.slots.get(new, 0)
        self.slots[new] = self.slots.pop(old, 0)


def peak_of(step: Step, groups: Iterable[Group], choice: Choice) -> int:
    """The highest level of a step over all tensors; alike layers are run until they repeat."""
    scratch = Scratch()
    for times, tensors in groups:
        before: dict[str, int] | None = None
        for _ in range(times):
            if scratch.slots == before:
                break
            before = dict(scratch.slots)
            for tensor in tensors:
                step(scratch, tensor, choice)
    return scratch.peak


def two_passes(step: Step) -> Callable[[Iterable[Group], Choice], int]:
    """GaLore's and APOLLO's order: the other parameters first, then the projected ones."""

    def run(groups: Iterable[Group], choice: Choice) -> int:
        known = list(groups)
        split = [
            (times, tuple(tensor for tensor in tensors if projected(tensor, choice) == wanted))
            for wanted in (False, True)
            for times, tensors in known
        ]
        return peak_of(step, split, choice)

    return run


def one_pass(step: Step) -> Callable[[Iterable[Group], Choice], int]:
    """The model's order."""
    return lambda groups, choice: peak_of(step, groups, choice)


def clipping(groups: Iterable[Group]) -> int:
    """``clip_grad_norm_``: a norm per tensor, their stack, and the norm of that."""
    counted = [(times * len(tensors), tensors) for times, tensors in groups]
    count = sum(times for times, _ in counted)
    if not count:
        return 0
    itemsize = max(tensor.itemsize for _, tensors in counted for tensor in tensors)
    return count * rounded(itemsize) + rounded(count * itemsize) + rounded(itemsize)


def adam_loop(s: Scratch, t: Trainable, _: Choice) -> None:
    """torch.optim.AdamW, one tensor at a time: the square root and its quotient."""
    s.put("root", t.bytes)
    s.put("denominator", t.bytes)
    s.drop("root")


def badam(groups: Iterable[Group], choice: Choice) -> int:
    """BAdam: fp32 gradients of the block replace the half ones, then AdamW's step over fp32 parameters."""
    tensors = [tensor for times, known in groups for tensor in known * times]
    full = sum(rounded(4 * tensor.numel) for tensor in tensors)
    half = sum(rounded(tensor.bytes) for tensor in tensors if tensor.itemsize < 4)
    replaced = full - half if half else 0
    if choice.implementation == "foreach":
        return replaced + full
    largest = max((rounded(4 * tensor.numel) for tensor in tensors), default=0)
    return replaced + (3 * largest if choice.implementation == "for-loop" else largest // 2)


def lion(s: Scratch, t: Trainable, _: Choice) -> None:
    """lion-pytorch: the momentum's clone and the sum."""
    s.put("clone", t.bytes)
    s.put("update", t.bytes)
    s.drop("clone", "update")


def adafactor(s: Scratch, t: Trainable, choice: Choice, projected_to: Trainable | None = None) -> None:
    """Transformers' Adafactor: fp32 copies of gradient and parameter, squared gradient, update and its negation."""
    half = t.itemsize < 4
    s.drop("gradient")
    if half:
        s.put("gradient", 4 * t.numel)
    if projected_to is not None:
        s.put("gradient", 4 * projected_to.numel)
    s.drop("parameter")
    if half:
        s.put("parameter", 4 * t.numel)
    small = projected_to or t
    size = 4 * small.numel
    s.put("square", size)
    s.put("update", size)
    s.drop("square")
    if len(small.shape) > 1:
        s.put("row", 4 * (small.numel // small.shape[-1]))
        s.put("column", 4 * (small.numel // small.shape[-2]))
        s.put("update", size)
        s.drop("row", "column")
    else:
        s.put("update", size)
    if projected_to is not None:
        s.put("unscaled", 4 * t.numel)
        s.put("scaled", 4 * t.numel)
        s.drop("unscaled")
        s.move("scaled", "update")
    s.put("negated", 4 * t.numel)
    s.drop("negated")


def galore_adafactor(s: Scratch, t: Trainable, choice: Choice) -> None:
    """The same on the projected gradient."""
    adafactor(s, t, choice, low_rank(t, choice) if projected(t, choice) else None)


def muon(s: Scratch, t: Trainable, _: Choice) -> None:
    """torch.optim.Muon: five Newton-Schulz iterations in bf16 on the interpolated gradient of hidden matrices."""
    if not (t.hidden and len(t.shape) == 2):
        return
    small = min(t.shape)
    s.put("update", t.bytes)
    if t.itemsize != 2:
        s.put("ortho", 2 * t.numel)
    for _round in range(5):
        s.put("gram", 2 * small * small)
        s.put("polynomial", 2 * small * small)
        s.put("ortho", 2 * t.numel)
    s.drop("gram", "polynomial")
    s.move("ortho", "update")


def adam_mini(s: Scratch, t: Trainable, choice: Choice) -> None:
    """Adam-mini: the squared gradient for its mean, then the update and its negation; plain Adam for biases."""
    if "bias" in t.name.lower():
        s.put("root", t.bytes)
        s.put("h", t.bytes)
        s.drop("root")
        return
    each = blocks_of_adam_mini(t, choice) * t.itemsize
    s.put("square", t.bytes)
    s.put("mean", each)
    s.drop("square")
    s.put("root", each)
    s.put("h", each)
    s.drop("root")
    s.put("reciprocal", SCALAR)
    s.put("rate", each)
    s.drop("reciprocal")
    s.put("update", t.bytes)
    s.put("negated", t.bytes)
    s.drop("negated")


def galore(s: Scratch, t: Trainable, choice: Choice) -> None:
    """GaLore's AdamW: the projected gradient, denominator and quotient, then the projection back and its multiple."""
    s.drop("gradient")
    small = low_rank(t, choice) if projected(t, choice) else t
    if small is not t:
        s.put("gradient", small.bytes)
    s.put("denominator", small.bytes)
    s.put("quotient", small.bytes)
    if small is not t:
        s.put("unscaled", t.bytes)
        s.put("scaled", t.bytes)
        s.drop("unscaled")
        s.move("scaled", "quotient")


def galore_8bit(s: Scratch, t: Trainable, choice: Choice) -> None:
    """GaLore with bitsandbytes' step: it runs on a zeroed stand-in of the parameter, which is then projected back.

    The parameter becomes a clone of itself, and the projected gradient takes the full one's place for good.
    """
    if not projected(t, choice):
        return
    small = low_rank(t, choice).bytes
    s.put("projected", small)
    s.put("clone", t.bytes)
    s.put("stand-in", small)
    s.drop("clone")
    s.keep("projected", instead_of=t.bytes)
    s.put("unscaled", t.bytes)
    s.put("scaled", t.bytes)
    s.drop("unscaled", "scaled", "stand-in")


def refresh(s: Scratch, t: Trainable, choice: Choice) -> None:
    """GaLore's new projector: singular vectors of the fp32 gradient, one side times the values, and what is kept."""
    if not projected(t, choice):
        return
    rows, columns = t.shape
    rank, small = min(choice.rank, *t.shape), min(t.shape)
    if t.itemsize != 4:
        s.put("matrix", 4 * t.numel)
    s.put("left", 4 * rows * small)
    s.put("values", 4 * small)
    s.put("right", 4 * small * columns)
    s.put("diagonal", 4 * rank * rank)
    s.put("product", 4 * rank * (rows if rows >= columns else columns))
    s.drop("diagonal")
    s.put("projector", projector(t, choice))
    s.drop("matrix", "left", "values", "right", "product", "projector")


def apollo(s: Scratch, t: Trainable, choice: Choice) -> None:
    """APOLLO: moments of the projected gradient, scaling factors, the scaled gradient, twice in the limiter."""
    s.drop("gradient")
    if not projected(t, choice):
        s.put("denominator", t.bytes)
        s.put("quotient", t.bytes)
        return
    small = low_rank(t, choice)
    factor = t.itemsize * (1 if choice.per_tensor else max(t.shape))
    s.put("gradient", small.bytes)
    s.put("denominator", small.bytes)
    s.put("quotient", small.bytes)
    s.put("norm", factor)
    s.put("other norm", factor)
    s.put("shifted", factor)
    s.drop("other norm")
    s.put("factor", factor)
    s.drop("norm", "shifted")
    s.put("scaled", t.bytes)
    s.put("length", SCALAR)
    s.put("limiter", SCALAR)
    s.put("scaled", t.bytes)
    s.drop("quotient")
