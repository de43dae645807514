"""Where the bot keeps what it may keep."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """A folder for files that can be fetched anew: under ``VRAM_BOT_DATA`` if set, else the platform's cache."""
    if chosen := os.environ.get("VRAM_BOT_DATA"):
        return Path(chosen) / "cache" / name
    from platformdirs import user_cache_path  # most questions need no folder

    return user_cache_path("vram-bot") / name


def data_folder() -> Path:
    """The folder for what cannot be fetched anew: ``VRAM_BOT_DATA`` if set, else the platform's data folder."""
    if chosen := os.environ.get("VRAM_BOT_DATA"):
        return Path(chosen)
    from platformdirs import user_data_path

    return user_data_path("vram-bot")
