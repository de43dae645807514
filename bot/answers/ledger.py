"""Keeps every number that goes into a text together with the place in the Answer that it came from."""

import re
from typing import Any

from bot.answer import Answer, Figure

MIB, GIB = 2**20, 2**30
_STEPS = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")
_NUMBERS = re.compile(r"(?<![A-Za-z0-9_.\-])\d+(?:,\d{3})*(?:\.\d+)?(?![A-Za-z0-9_]|[.\-]\w)")
_NAMES = re.compile(
    r"(?i)(?:torch|transformers|peft|trl|bitsandbytes|flash-?attn|deepspeed|vllm|sglang|unsloth|accelerate|liger|"
    r"axolotl|llama\.cpp|rtx|gtx|rx|quadro|titan|radeon|cuda|rocm|python|sfttrainer|zero|stage)\s+v?$"
)
"""What a number behind is part of: a version or a name, no figure."""


class Ledger:
    """Turns places in an Answer into text and notes each number on the way."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.figures: list[Figure] = []

    def at(self, path: str) -> Any:
        """The value at a path such as ``estimates[0].fit.usable``."""
        value: Any = self.answer
        for name, index in _STEPS.findall(path):
            key = int(index) if index else name
            value = value[key] if isinstance(value, dict | list) else getattr(value, name)
        return value

    def gib(self, path: str, unit: str = " GiB", fine: bool = False) -> str:
        """Bytes at a path, in GiB; what would round to nothing is told in MiB or bytes."""
        size = self.at(path)
        if 0 < abs(size) < MIB / 20:
            return self.count(path, "B") + " B"
        scale, own = (GIB, "GiB") if abs(size) >= GIB / 100 or not size else (MIB, "MiB")
        value = size / scale
        text = f"{value:.2f}" if own == "GiB" and (fine or abs(value) < 0.995) else f"{value:.1f}"
        self._note(float(text), own, path)
        return text + (unit if own == "GiB" else f" {own}")

    def span(self, path: str, low: str = "low", high: str = "high", dash: str = "-") -> str:
        """An interval at a path, in GiB; one number where both ends read the same."""
        begin, end = self.gib(f"{path}.{low}", ""), self.gib(f"{path}.{high}")
        return end if end.removesuffix(" GiB") == begin else begin + dash + end

    def count(self, path: str, unit: str = "") -> str:
        """A whole number at a path."""
        value = self.at(path)
        self._note(float(value), unit, path)
        return f"{value:,.0f}" if isinstance(value, float) and value.is_integer() else f"{value:,}"

    def number(self, path: str) -> str:
        """A plain number at a path, such as a share."""
        value = self.at(path)
        self._note(float(value), "", path)
        return f"{value:g}"

    def money(self, path: str, sign: str, currency: str) -> str:
        """A price at a path, with as many digits as say something."""
        value = float(self.at(path))
        digits = 0 if value >= 100 else 2 if value >= 0.1 or not value else 4
        text = f"{value:,.{digits}f}"
        self._note(float(text.replace(",", "")), currency, path)
        return sign + text

    def figure(self, path: str, text: str, unit: str) -> str:
        """A value at a path as it was written out: the digits of ``text``."""
        self._note(float(text.replace(",", "")), unit, path)
        return text

    def words(self, path: str) -> str:
        """A text of the estimator, with the figures in it; versions and names are none."""
        text = str(self.at(path))
        for number in _NUMBERS.finditer(text):
            if not _NAMES.search(text[: number.start()][-24:]):
                self._note(float(number.group().replace(",", "")), "", path)
        return text

    def _note(self, value: float, unit: str, path: str) -> None:
        self.figures.append(Figure(value=value, unit=unit, source=path))
