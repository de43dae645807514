"""Reading one fact from a Hugging Face ``config.json``, whatever its class spells it."""

from typing import Any

from estimator import families
from estimator.errors import EstimatorError


class ConfigReader:
    """A config with its class's spellings and defaults behind one ``get``."""

    def __init__(self, config: dict[str, Any], model_type: str, nested: bool = False) -> None:
        self.config = config
        self.model_type = model_type
        self.defaults = families.defaults(model_type)
        self.nested = nested

    def given(self, key: str) -> Any:
        """The value that the config itself states for a canonical key, else None."""
        found = (_at(self.config, spelling) for spelling in families.spellings().get(key, (key,)))
        return next((value for value in found if value is not None), None)

    def states(self, key: str) -> bool:
        """Whether the config mentions the key, be it as null."""
        return any(spelling in self.config for spelling in families.spellings().get(key, (key,)))

    def get(self, key: str, fallback: Any = None) -> Any:
        """The stated value, else the class default, else ``fallback``; a stated null counts as stated."""
        value = self.given(key)
        if value is not None:
            return value
        default = None if self.states(key) else self.defaults.get(key)
        return fallback if default is None else default

    def count(self, key: str, fallback: int | None = None) -> int:
        """A positive whole number that must be known."""
        value = self.get(key, fallback) if self.nested or fallback is not None else self.given(key)
        if value is None:
            raise missing(self.model_type, key)
        return whole(key, value)

    def optional(self, key: str, fallback: int | None = None) -> int | None:
        """A whole number, or None where the class leaves it out."""
        value = self.get(key, fallback)
        return None if value is None else whole(key, value)

    def flag(self, rule: Any) -> Any:
        """A layout's flag: a literal, ``$key`` for a config key, ``$key=number`` for a comparison."""
        if not (isinstance(rule, str) and rule.startswith("$")):
            return rule
        key, _, wanted = rule[1:].partition("=")
        value = self.get(key)
        return str(value) == wanted if wanted else value

    def number(self, key: str, fallback: float = 0.0) -> float:
        """A real number, such as a dropout probability."""
        value = self.get(key, fallback)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong(key, value, "a number")
        return float(value)


def _at(config: dict[str, Any], path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    if "." not in path:
        return config.get(path)
    outer, inner = path.split(".", 1)
    part = config.get(outer)
    return _at(part, inner) if isinstance(part, dict) else None


MAX_COUNT = 10**8
"""No dimension of a real model comes near this."""
MAX_LAYERS = 2000
"""Layers are listed one by one; the deepest model of the catalogue has 126."""


def whole(key: str, value: Any) -> int:
    """``value`` as a whole number from 0 to ``MAX_COUNT``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    limit = MAX_LAYERS if key.endswith("_layers") else MAX_COUNT
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        raise wrong(key, value, "a whole number")
    return value


def missing(model_type: str, key: str) -> EstimatorError:
    """The error for a config that lacks a fact it needs."""
    spelled = " / ".join(f'"{name}"' for name in families.spellings().get(key, (key,))[:3])
    return EstimatorError(
        f"the config of model_type {model_type!r} lacks {spelled}; paste the model's whole config.json",
        f"model_type {model_type!r} 的配置缺少 {spelled}；请粘贴完整的 config.json",
        field="model",
    )


def wrong(key: str, value: Any, wanted: str) -> EstimatorError:
    """The error for a config value of the wrong kind."""
    shown = repr(value)[:40]
    return EstimatorError(
        f'config key "{key}" is {shown}, which is not {wanted} in the range of real models',
        f"配置项“{key}”的值 {shown} 不是合理范围内的数值",
        field="model",
    )
