"""``python -m bot`` and the command ``vram-bot``."""

import os

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for plugins reads every package's metadata

from bot.cli import main

if __name__ == "__main__":
    main()
