"""Draws the picture of the README: ``python docs/make_pictures.py`` writes docs/answer.png.

The text is a real answer, so the picture is drawn anew whenever the estimator or the templates change.
"""

import io
import re
from pathlib import Path

import resvg_py
from rich.console import Console
from rich.text import Text

from bot import service
from bot.cli.paint import painted

QUESTION = "/vram model:0.5b method:lora gpu:8GB"
FONT = "DejaVu Sans Mono"
COLUMNS = 108


def svg_of(question: str) -> str:
    """A terminal window that shows the question and its answer."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text(f'$ vram-bot ask "{question}"', style="dim"))
    console.print(painted(service.ask(question, lang="en").text))
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="vram-bot"), flags=re.DOTALL)
    return svg.replace("Fira Code", FONT).replace("arial", FONT)


def main() -> None:
    """Write every picture next to this file."""
    picture = resvg_py.svg_to_bytes(svg_string=svg_of(QUESTION), width=1600, monospace_family=FONT)
    Path(__file__).with_name("answer.png").write_bytes(bytes(picture))


if __name__ == "__main__":
    main()
