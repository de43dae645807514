"""The environment's settings."""

from pathlib import Path

import pytest

from bot.settings import BadSettings, Settings, settings_from_environment

NAMES = (
    "DISCORD_TOKEN", "DISCORD_API_BASE", "DISCORD_GATEWAY_URL", "DISCORD_CDN_BASE", "VRAM_BOT_DATA",
    "VRAM_BOT_KEEP_DAYS", "VRAM_BOT_WORKERS", "VRAM_BOT_DRAWERS", "VRAM_BOT_PRICE_SOURCES",
    "VRAM_BOT_PRICE_TABLE", "VRAM_BOT_CURRENCY",
    "VRAM_BOT_LLM", "VRAM_BOT_LLM_BASE_URL", "VRAM_BOT_LLM_API_KEY", "VRAM_BOT_LLM_WHEN", "VRAM_BOT_LLM_SECONDS",
    "VRAM_BOT_LLM_TOKENS", "VRAM_BOT_LLM_DAILY_TOKENS", "VRAM_BOT_LLM_DAILY_USD", "VRAM_BOT_LLM_USD_PER_MILLION",
    "VRAM_BOT_HEALTH",
)  # fmt: skip


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_every_setting_has_its_variable() -> None:
    assert {name.upper() for name in Settings.model_fields} == set(NAMES)


def test_nothing_need_be_set() -> None:
    settings = settings_from_environment("en")
    assert settings.discord_token is None and settings.discord_api_base is None
    assert settings.vram_bot_data.is_absolute()


def test_the_token_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", "very.secret.token")
    settings = settings_from_environment("en")
    assert settings.discord_token and settings.discord_token.get_secret_value() == "very.secret.token"
    assert "very.secret" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


def test_addresses_and_folder_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DISCORD_API_BASE", "http://127.0.0.1:1/api/v10/")
    monkeypatch.setenv("DISCORD_GATEWAY_URL", "ws://127.0.0.1:1/")
    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path))
    settings = settings_from_environment("en")
    assert settings.discord_api_base == "http://127.0.0.1:1/api/v10"
    assert settings.discord_gateway_url == "ws://127.0.0.1:1" and settings.vram_bot_data == tmp_path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DISCORD_API_BASE", "ftp://x"),
        ("DISCORD_GATEWAY_URL", "http://x"),
        ("DISCORD_CDN_BASE", "https://"),
        ("VRAM_BOT_KEEP_DAYS", "0"),
        ("VRAM_BOT_KEEP_DAYS", "long"),
        ("VRAM_BOT_WORKERS", "1000"),
        ("VRAM_BOT_HEALTH", "8080"),
        ("VRAM_BOT_HEALTH", "localhost:0"),
        ("VRAM_BOT_PRICE_SOURCES", "gpuhunt skypilto"),
        ("VRAM_BOT_CURRENCY", "EUR"),
        ("VRAM_BOT_LLM", "gpt-5-mini"),
        ("VRAM_BOT_LLM_USD_PER_MILLION", "0.15"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_wrong_value_is_told_by_its_variable(
    name: str, value: str, lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("DISCORD_TOKEN", "very.secret.token")
    with pytest.raises(BadSettings) as caught:
        settings_from_environment(lang)
    assert name in str(caught.value) and "very.secret" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("VRAM_BOT_KEEP_DAYS", "long", "必须是数字"),
        ("VRAM_BOT_WORKERS", "0", "必须 ≥ 1"),
        ("VRAM_BOT_PRICE_SOURCES", "gpuhnt", "只能是 gpuhunt、skypilot"),
        ("DISCORD_API_BASE", "ftp://x", "必须以 http:// / https:// 开头"),
    ],
)
def test_what_a_value_must_be_is_said_in_the_language(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings) as caught:
        settings_from_environment("zh")
    assert said in str(caught.value) and "must" not in str(caught.value) and "should" not in str(caught.value)
