"""Cards as a browser draws them, on a desk and in a hand; the pictures are kept when a folder for them is named."""

import io
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
FOLDER = os.environ.get("VRAM_BOT_PICTURES", "")
"""Where the drawn cards are to be kept, to be looked at."""
WIDTHS = {"desk": 960, "hand": 390}

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium: apt-get install chromium draws the cards")


@pytest.fixture(autouse=True)
def browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's own browser: playwright's downloads none here."""
    playwright = pytest.importorskip("playwright.async_api")
    launched = playwright.BrowserType.launch

    async def launch(self: Any, **values: Any) -> Any:
        return await launched(self, executable_path=CHROMIUM, args=["--no-sandbox"], **values)

    monkeypatch.setattr(playwright.BrowserType, "launch", launch)


async def drawn(lab: SimpleNamespace, done: Any, who: Any, name: str, folder: Path) -> dict[str, bytes]:
    """The message as PNG in both widths."""
    pictures = {}
    async with lab.env.preview(lab.channel, viewers=[who], display="fixed", height=2000) as preview:
        for place, width in WIDTHS.items():
            shot = await preview.screenshot(target=done, viewer=who, viewport=(width, 2000), allow_incomplete=True)
            pictures[place] = shot.png
            (folder / f"{name}-{place}.png").write_bytes(shot.png)
    return pictures


@pytest.mark.parametrize(
    ("who", "name", "options"),
    [
        ("ann", "does-not-fit-en", {"model": "llama3 8b", "method": "full", "gpu": "RTX 4090", "length": 4096}),
        ("wei", "fits-zh", {"model": "0.5b", "method": "lora", "gpu": "8GB"}),
        ("wei", "compared-zh", {"model": "7b", "gpu": "24GB", "length": 4096}),
    ],
)
async def test_a_card_is_drawn(
    lab: SimpleNamespace, tmp_path: Path, who: str, name: str, options: dict[str, str]
) -> None:
    actor = getattr(lab, who)
    done = await actor.slash(lab.channel, "vram", **options)
    folder = Path(FOLDER) if FOLDER else tmp_path
    pictures = await drawn(lab, done, actor, name, folder)
    for place, png in pictures.items():
        picture = Image.open(io.BytesIO(png)).convert("RGB")
        assert WIDTHS[place] * 0.8 < picture.width <= WIDTHS[place] and picture.height > 600
        assert len(picture.getcolors(1 << 24) or []) > 100, "more than a blank page"
