"""Amounts of money and time as they are written; every figure notes where it came from."""

from decimal import Decimal
from math import floor

from bot.answer import Answer
from bot.answers.describe import Describer
from bot.answers.layout import width
from bot.answers.ledger import Ledger
from bot.answers.quote import quoted, source_name
from bot.texts import name_of, say
from estimator.economics import Assumed, CostEstimate, CostLine, PricedOffer

HOUR, DAY = 3600, 86_400
LONGEST_SOURCE = 40


class Figures:
    """What all lines about time and money of an answer are written with."""

    def __init__(self, answer: Answer, ledger: Ledger, describer: Describer) -> None:
        self.answer, self.ledger, self.describer, self.lang = answer, ledger, describer, answer.lang

    def heading(self, key: str, first: bool) -> str:
        """The word before the first line of several, and as many columns before the others."""
        word = self._say(key)
        return word if first else " " * width(word)

    def usd(self, path: str) -> str:
        """US dollars at a path; for Chinese readers also in yuan."""
        text = self._say("usd", usd=self.plain(path))
        if self.lang != "zh":
            return text
        from bot.prices.money import bundled_rates

        yuan = rounded(float(self.ledger.at(path)) * bundled_rates().rate("CNY"))
        return f"{text}（约 {self.ledger.figure(path, yuan, 'CNY')} 元）"

    def plain(self, path: str) -> str:
        """US dollars at a path without the unit."""
        value = float(self.ledger.at(path))
        return self.ledger.figure(path, money(value), "USD")

    def span(self, path: str) -> str:
        """Seconds at a path as minutes, hours or days."""
        head, _dot, _name = path.rpartition(".")
        return self._spelled(head, path.rpartition(".")[2], float(self.ledger.at(path)))

    def _spelled(self, path: str, name: str, seconds: float) -> str:
        key, size = next(
            ((key, size) for key, size, most in (("minutes", 60, HOUR), ("hours", HOUR, 2 * DAY)) if seconds < most),
            ("days", DAY),
        )
        return self._say(key, value=self.ledger.figure(f"{path}.{name}", rounded(seconds / size), key))

    def _rows(self, lines: list[CostLine], path: str, total: str, fine: bool = False) -> list[list[str]]:
        """A row a line and their sum; what is written adds up to the last digit."""
        digits, whole = 3 if fine else 2, float(self.ledger.at(total))
        shown = adding_up([line.usd for line in lines], whole, digits)
        rows = []
        for number, (line, usd) in enumerate(zip(lines, shown, strict=True)):
            name = "why_zh" if self.lang == "zh" and line.why_zh else "why"
            why = self.ledger.words(f"{path}[{number}].{name}")
            figure = self.ledger.figure(f"{path}[{number}].usd", usd, "USD")
            rows.append([name_of(self.lang, "bill", line.item), figure, why])
        return [
            *rows,
            [name_of(self.lang, "bill", "total"), self.ledger.figure(total, f"{whole:,.{digits}f}", "USD"), ""],
        ]

    def _range(self, path: str, offer: PricedOffer) -> str:
        low, high = offer.range or (offer.usd_per_gpu_hour, offer.usd_per_gpu_hour)
        texts = [money(low), money(high)]
        shown = dict.fromkeys(
            self.ledger.figure(f"{path}.range[{number}]", one, "USD/h") for number, one in enumerate(texts)
        )
        return "-".join(shown)

    def _origin(self, offer: PricedOffer) -> str:
        day = offer.as_of or self._say("undated")
        parts = (quoted(offer.provider, 30), day, quoted(source_name(offer.source), LONGEST_SOURCE))
        return name_of(self.lang, "sign", "comma").join(parts)

    def _told(self, one: Assumed) -> str:
        why = one.why_zh if self.lang == "zh" and one.why_zh else one.why
        mark = self._say("measured" if one.measured else "assumed_mark")
        value = f"{one.value:,.4g}" if isinstance(one.value, float) else one.value
        name, colon = name_of(self.lang, "field", one.field), name_of(self.lang, "sign", "colon")
        return f"{name} {value}{colon}{quoted(why, 300)} ({mark})"

    def _whose(self, price: Assumed | None) -> str:
        """The class that an assumption about the price speaks of, or the user."""
        why = price.why if price else ""
        name = why.split(",")[0].removeprefix("median of ") if why.startswith("median of ") else "stated"
        return self._name(name)

    def _name(self, provider_class: str) -> str:
        return name_of(self.lang, "provider_class", provider_class)

    def _cost(self, index: int) -> CostEstimate | None:
        return self.answer.estimates[index].cost

    def _run_task(self, index: int) -> str:
        run = self.answer.estimates[index].run
        return str(run.task or "train") if run else "train"

    def _say(self, key: str, **values: object) -> str:
        return say(self.lang, f"money.{key}", **values)


def adding_up(values: list[float], total: float, digits: int) -> list[str]:
    """The values with so many digits, rounded so that what is written adds up to the total as it is written.

    Each is rounded down, and those that lost most get what is then missing; none is off by a whole last digit.
    """
    units = 10**digits
    down = [floor(value * units) for value in values]
    missing = int(Decimal(f"{total:.{digits}f}").scaleb(digits)) - sum(down)
    lost = sorted(range(len(values)), key=lambda number: down[number] - values[number] * units)
    raised = set(lost[: max(0, missing)])
    return [f"{(low + (number in raised)) / units:,.{digits}f}" for number, low in enumerate(down)]


def money(value: float) -> str:
    """Dollars with as many digits as say something."""
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.0995 or value == 0 else f"{value:.2g}"


def rounded(value: float) -> str:
    """Three significant digits, whole from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
