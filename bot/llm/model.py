"""The language model that the settings name. Needs the extra ``llm``."""

import re
from typing import TYPE_CHECKING

from bot.settings import BadSettings, Settings
from bot.texts import say

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from bot.llm.helper import Helper

OLLAMA = "http://127.0.0.1:11434/v1"
KEY = re.compile(r"[A-Z]+_API_KEY")
NO_KEY = "none"
"""What is sent as key to an endpoint of one's own that has none."""


def helper_of(settings: Settings, lang: str = "en") -> "Helper | None":
    """Who asks the language model; None where none is set. Raises BadSettings."""
    if not settings.vram_bot_llm:
        return None
    try:
        from pydantic_ai.exceptions import UserError

        from bot.llm.helper import Helper
    except ImportError:
        raise BadSettings(say(lang, "tools.needs_extra", extra="llm")) from None
    try:
        return Helper(settings, model_of(settings))
    except ImportError:
        raise BadSettings(say(lang, "tools.needs_extra", extra="llm")) from None
    except UserError as error:
        raise BadSettings(say(lang, "setting.wrong", name="VRAM_BOT_LLM", why=_why(str(error), lang))) from None


def _why(text: str, lang: str) -> str:
    """Which key is missing, else what the library says first."""
    key = KEY.search(text)
    return say(lang, "setting.no_llm_key", own=key[0]) if key else text.split("\n")[0].split(". ")[0]


def model_of(settings: Settings) -> "Model":
    """The model of ``provider:name`` at its own address or another. Raises ImportError, pydantic-ai's UserError."""
    provider, _, name = settings.vram_bot_llm.partition(":")
    secret = settings.vram_bot_llm_api_key
    return {"openai": _openai, "ollama": _ollama, "anthropic": _anthropic, "google": _google}[provider](
        name, settings.vram_bot_llm_base_url, secret.get_secret_value() if secret else None
    )


def _openai(name: str, address: str | None, key: str | None) -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=address, api_key=key or (address and NO_KEY)))


def _ollama(name: str, address: str | None, key: str | None) -> "Model":
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    return OllamaModel(name, provider=OllamaProvider(base_url=address or OLLAMA, api_key=key or NO_KEY))


def _anthropic(name: str, address: str | None, key: str | None) -> "Model":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(name, provider=AnthropicProvider(base_url=address, api_key=key))


def _google(name: str, address: str | None, key: str | None) -> "Model":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(name, provider=GoogleProvider(base_url=address, api_key=key or ""))
