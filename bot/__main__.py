"""``python -m bot`` and the command ``vram-bot``."""

import atexit
import gc
import os

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for plugins reads every package's metadata
gc.set_threshold(200_000, 20, 20)  # starting and answering make many objects and hardly a cycle
atexit.register(gc.freeze)  # or the collections at the end look through all of them: a fifth of a question's time

from bot.cli import main  # noqa: E402 - after what the imports depend on

if __name__ == "__main__":
    main()
