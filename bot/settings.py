"""The settings of the bot, read from the environment in one place; secrets never show in a text or a log."""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import click
from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.folders import data_folder
from bot.texts import say


class Unfit(ValueError):
    """A value that cannot be used: the key and values of the words that say what it must be."""

    def __init__(self, key: str, **values: str) -> None:
        super().__init__(key)
        self.key, self.values = key, values


def _checked(schemes: tuple[str, ...]) -> AfterValidator:
    """An address with one of these schemes, its closing slash dropped."""

    def address(value: str) -> str:
        scheme, _, rest = value.partition("://")
        if scheme not in schemes or not rest.strip("/"):
            raise Unfit("setting.address", begins=" / ".join(f"{one}://" for one in schemes))
        return value.rstrip("/")

    return AfterValidator(address)


def _place(value: str) -> str:
    """A host and a port."""
    host, _, port = value.rpartition(":")
    if value and not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise Unfit("setting.place")
    return value


def _sources(value: str) -> str:
    """Names of price sources."""
    if set(value.split()) - {"gpuhunt", "skypilot", "none"}:
        raise Unfit("setting.sources")
    return value


def _formed(pattern: str, key: str) -> AfterValidator:
    """A text of a form; the key is of the sentence that tells it."""

    def formed(value: str) -> str:
        if value and not re.fullmatch(pattern, value):
            raise Unfit(key)
        return value

    return AfterValidator(formed)


Http = Annotated[str, _checked(("http", "https"))]
Socket = Annotated[str, _checked(("ws", "wss"))]


class Settings(BaseSettings):
    """Every setting; the names of the variables are those of the fields in capitals.

    ``discord_api_base``, ``discord_gateway_url`` and ``discord_cdn_base`` are Discord's own addresses when absent;
    ``vram_bot_data`` is the platform's data folder; ``vram_bot_keep_days`` is how long a card's buttons work;
    ``vram_bot_price_sources`` are the price sources to ask (none: none is asked), ``vram_bot_price_table`` an own table
    of prices (else prices.csv or prices.yaml in the data folder), ``vram_bot_currency`` USD or CNY (else by language);
    ``vram_bot_llm`` is a language model as ``provider:name`` (openai, anthropic, google or ollama), none when absent;
    ``vram_bot_llm_base_url`` another address than the provider's; ``vram_bot_llm_seconds`` and ``vram_bot_llm_tokens``
    bound a question, ``vram_bot_llm_daily_tokens`` and ``vram_bot_llm_daily_usd`` a day of this process;
    ``vram_bot_llm_usd_per_million`` is what tokens cost, "in/out", where the library does not know;
    ``vram_bot_workers`` threads answer and ``vram_bot_drawers`` processes draw (0: the threads do);
    ``vram_bot_health`` is where /livez and /readyz are served, as host:port (nowhere when absent).
    """

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True)

    discord_token: SecretStr | None = None
    discord_api_base: Http | None = None
    discord_gateway_url: Socket | None = None
    discord_cdn_base: Http | None = None
    vram_bot_data: Path = Field(default_factory=data_folder)
    vram_bot_keep_days: Annotated[float, Field(gt=0, le=365)] = 30
    vram_bot_workers: Annotated[int, Field(ge=1, le=32)] = 2
    vram_bot_price_sources: Annotated[str, AfterValidator(_sources)] = "gpuhunt skypilot"
    vram_bot_price_table: Path | None = None
    vram_bot_currency: Literal["", "USD", "CNY"] = ""
    vram_bot_llm: Annotated[str, _formed(r"(openai|anthropic|google|ollama):\S+", "setting.llm")] = ""
    vram_bot_llm_base_url: Http | None = None
    vram_bot_llm_api_key: SecretStr | None = None
    vram_bot_llm_when: Literal["unsure", "always"] = "unsure"
    vram_bot_llm_seconds: Annotated[float, Field(gt=0, le=300)] = 30
    vram_bot_llm_tokens: Annotated[int, Field(ge=1_000)] = 60_000
    vram_bot_llm_daily_tokens: Annotated[int, Field(ge=0)] = 2_000_000
    vram_bot_llm_daily_usd: Annotated[float, Field(ge=0)] | None = None
    vram_bot_llm_usd_per_million: Annotated[str, _formed(r"\d+(\.\d+)?/\d+(\.\d+)?", "setting.usd_per_million")] = ""
    vram_bot_drawers: Annotated[int, Field(ge=0, le=8)] = 1
    vram_bot_health: Annotated[str, AfterValidator(_place)] = ""

    @property
    def llm_price(self) -> tuple[Decimal, Decimal] | None:
        """USD per million tokens read and written, where set."""
        if not self.vram_bot_llm_usd_per_million:
            return None
        read, _, written = self.vram_bot_llm_usd_per_million.partition("/")
        return Decimal(read), Decimal(written)


class BadSettings(click.ClickException):
    """A variable of the environment has a value that cannot be used; the text says which and why.

    Wherever a command comes upon it, that sentence and exit status 2 are its end.
    """

    exit_code = 2


def settings_from_environment(lang: str) -> Settings:
    """The settings, or ``BadSettings`` with one sentence."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise BadSettings(
            say(lang, "setting.wrong", name=str(first["loc"][0]).upper(), why=_why(lang, first))
        ) from None


def _why(lang: str, error: Mapping[str, Any]) -> str:
    """What the value must be; the value itself is not told, it may be a secret."""
    own = (error.get("ctx") or {}).get("error")
    if isinstance(own, Unfit):
        return say(lang, own.key, **own.values)
    from bot.problems import detail_of  # only wrong settings need it

    return detail_of(lang, error)
