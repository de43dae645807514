"""The surfaces of vram-bot: terminal and Discord, all through ``bot.service``."""
