"""Drawing in a process of its own: the renderer holds Python's lock for a tenth of a second at a time."""

import signal

import resvg_py

from bot.parent import end_with_parent

NOTHING = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


def drawn(svg: str, width: int) -> bytes:
    """An SVG as PNG of so many pixels' width."""
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width))


def prepare() -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
