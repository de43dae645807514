"""Key/value caches of transformers 5.24 (cache_utils.py): what a layer holds between forwards and makes in each."""

from estimator.step.tape import LONG, Rows, Tensor

ITEM = "kv_cache"


class Cache:
    """The cache of one layer.

    ``DynamicCache`` concatenates: old and new keys live together for a moment, then old and new values do; also the
    first update copies. A layer with a window makes both before it lets go of the old, and keeps a view of its last
    ``window - 1`` tokens, so after the prompt the whole prompt stays in memory until the first decode step. A
    preallocated cache is written in place.
    """

    def __init__(self, windowed: bool, preallocated: bool) -> None:
        self.windowed = windowed
        self.preallocated = preallocated
        self.k: Tensor | None = None
        self.v: Tensor | None = None
        self.length: Tensor | None = None
        self.states: dict[str, Tensor] = {}

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of the current tokens; returns those to attend to."""
        k.tape.windowed = self.windowed
        if self.preallocated:
            return self._in_place(k, v)
        rows = self._rows(k)
        if self.windowed:
            return self._slide(k, v, rows)
        self.k = k.tape.new(rows, k.width, k.itemsize, ITEM)
        self.v = v.tape.new(rows, v.width, v.itemsize, ITEM)
        return self.k, self.v

    def _slide(self, k: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if self.length is None:
            self.length = k.tape.new("1", 1, LONG, ITEM)
        keys = k.tape.new(rows, k.width, k.itemsize, ITEM)
        values = v.tape.new(rows, v.width, v.itemsize, ITEM)
        self.k, self.v = keys, values
        return keys, values

    def _rows(self, k: Tensor) -> Rows:
        if not k.tape.stage:
            return k.rows
        return "W" if self.windowed else "K"

    def _in_place(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        tape, rows = k.tape, "W" if self.windowed else "K"
        if self.k is None or self.v is None:
            self.length = tape.new("1", 1, LONG, ITEM)
            self.k = tape.new(rows, k.width, k.itemsize, ITEM)
            self.v = tape.new(rows, v.width, v.itemsize, ITEM)
        if not tape.stage:
            if self.windowed:
                return k, v
            return (self.k, self.v) if tape.whole_cache else (self.k.view(k.rows), self.v.view(v.rows))
        if self.windowed:  # rolled by one token in new tensors, then copied back
            rolled = [tape.new(rows, x.width, x.itemsize) for x in (k, v)]
            del rolled
        return self.k, self.v

    def keep(self, name: str, state: Tensor) -> None:
        """Hold a state (of a convolution, linear attention or a state space) until the next one replaces it."""
        self.states[name] = state

    def grow(self) -> None:
        """Jump to the last decode step: what was cached before it takes the place of what is cached now."""
        if self.preallocated or self.k is None or self.v is None:
            return
        tape, shapes = self.k.tape, [(kept.width, kept.itemsize) for kept in (self.k, self.v)]
        self.k = self.v = None
        rows = "W0" if self.windowed else "K0"
        self.k, self.v = (tape.new(rows, width, size, ITEM) for width, size in shapes)
