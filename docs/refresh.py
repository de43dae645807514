"""Runs every example of the README anew and draws its pictures: ``python docs/refresh.py``.

Examples and pictures are real answers, so all are made again whenever the estimator or the templates change; the tests
fail while the examples differ. The pictures of Discord cards are those of tests/bot/discord/test_pictures.py, as a
browser draws them.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import resvg_py
from rich.console import Console
from rich.text import Text

from bot import service
from bot.cli.paint import painted

ROOT = Path(__file__).parent.parent
QUESTION = "/vram model:0.5b method:lora gpu:8GB"
FONT = "DejaVu Sans Mono"
COLUMNS = 112
UNSEEN = 32
"""Of 255: a browser smooths round edges by up to 14 another way from one drawing to the next, letters differ more."""
CARDS = {"does-not-fit-en-desk.png": "card.png", "fits-zh-hand.png": "card.zh.png"}
"""Pictures that the tests draw, and what they are called here."""
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ .*$", re.MULTILINE)


def svg_of(question: str) -> str:
    """A terminal window that shows the question and its answer."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text(f'$ vram-bot ask "{question}"', style="dim"))
    console.print(painted(service.ask(question, lang="en").text))
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="vram-bot"), flags=re.DOTALL)
    return svg.replace("Fira Code", FONT).replace("arial", FONT)


def answered(block: re.Match[str]) -> str:
    """A console block with each command's own output below it."""
    return (
        "```console\n" + "\n".join(f"{command}\n{output_of(command)}" for command in COMMAND.findall(block[1])) + "```"
    )


def output_of(command: str) -> str:
    """What a command of the README prints; the one command that may stand before a pipe is echo."""
    *echoed, program = [shlex.split(part) for part in command.removeprefix("$ ").split("|")]
    text = " ".join(echoed[0][1:]) + "\n" if echoed else ""
    arguments = [sys.executable, "-m", "bot", *program[1:]]
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    return done.stdout.rstrip("\n") + "\n"


def draw_cards() -> None:
    """Discord cards in a browser; the old pictures stay where there is none."""
    tests = [sys.executable, "-m", "pytest", "-q", "tests/bot/discord/test_pictures.py"]
    with TemporaryDirectory() as folder:
        subprocess.run(tests, env={**os.environ, "VRAM_BOT_PICTURES": folder}, check=False, cwd=ROOT)  # noqa: S603
        for name, kept in CARDS.items():
            drawn, there = Path(folder) / name, ROOT / "docs" / kept
            if not drawn.exists():
                print(f"docs/{kept} was not drawn: that needs the extra dev and chromium")
            elif not there.exists() or not looks_alike(drawn, there):
                shutil.copy(drawn, there)


def looks_alike(one: Path, other: Path) -> bool:
    """Whether two pictures look the same to a reader."""
    from PIL import Image, ImageChops

    first, second = (Image.open(path).convert("RGB") for path in (one, other))
    if first.size != second.size:
        return False
    return ImageChops.difference(first, second).point(lambda level: 255 * (level > UNSEEN)).getbbox() is None


def main() -> None:
    """Write the README and its pictures."""
    readme = ROOT / "README.md"
    readme.write_text(BLOCK.sub(answered, readme.read_text("utf-8")), "utf-8")
    picture = resvg_py.svg_to_bytes(svg_string=svg_of(QUESTION), width=1600, monospace_family=FONT)
    (ROOT / "docs" / "answer.png").write_bytes(bytes(picture))
    draw_cards()


if __name__ == "__main__":
    main()
