"""``python -m bot`` and the command ``vram-bot``."""

import gc
import os

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for plugins reads every package's metadata
gc.set_threshold(200_000, 20, 20)  # starting and answering make many objects and hardly a cycle

from bot.cli import main  # noqa: E402 - after what the imports depend on

if __name__ == "__main__":
    main()
