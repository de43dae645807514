"""``python -m bot`` and the command ``vram-bot``."""

from bot.cli import main

if __name__ == "__main__":
    main()
