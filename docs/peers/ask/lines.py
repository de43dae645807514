"""The loop around a peer: a row in, ``{"id", "bytes"}`` or ``{"id", "why"}`` out."""

import contextlib
import io
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


class CannotSayError(Exception):
    """What of the row the peer has no way to express."""


def answer(ask: Callable[[Row], float]) -> None:
    """Every row of the standard input, whatever the peer prints on the way."""
    logging.disable(logging.CRITICAL)
    for text in sys.stdin:
        row = json.loads(text)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found = {"id": row["id"], "bytes": round(ask(row))}
        except Exception as error:
            found = {"id": row["id"], "why": f"{error}".split("\n")[0][:200] or type(error).__name__}
        print(json.dumps(found), flush=True)


def need(so: Any, what: str) -> None:
    """Refuse the row unless the peer can say it."""
    if not so:
        raise CannotSayError(what)


def plain(run: Row, cards: int = 1) -> None:
    """What no peer has a field for."""
    need(not run.get("fused_kernels"), "fused kernels")
    need(run.get("loss") in (None, "standard"), f"the loss {run.get('loss')}")
    need(not run.get("compile"), "torch.compile")
    need(not run.get("offload"), "offload")
    need((run.get("gpu_count") or 1) <= cards, "several cards")
    need(run.get("gradient_checkpointing") in (None, "none", "full"), "selective checkpointing")
