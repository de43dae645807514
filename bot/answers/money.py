"""Time and money as lines and rows of an answer, in its language; every figure notes where it came from."""

from collections.abc import Iterable

from bot.answer import Answer
from bot.answers.describe import Describer
from bot.answers.layout import width
from bot.answers.ledger import Ledger
from bot.answers.quote import quoted, source_name
from bot.texts import name_of, say
from estimator.economics import Assumed, CostEstimate, CostLine, PricedOffer

HOUR, DAY = 3600, 86_400
LONGEST_SOURCE = 40
MOST_STEPS = 3


class Money:
    """Time and cost of the estimates of an answer."""

    def __init__(self, answer: Answer, ledger: Ledger, describer: Describer) -> None:
        self.answer, self.ledger, self.describer, self.lang = answer, ledger, describer, answer.lang

    def headline(self, index: int) -> str:
        """The total with its spread, or why there is none."""
        cost, path = self._cost(index), f"estimates[{index}].cost"
        if cost is None or (cost.usd is None and not cost.why):
            return ""
        if cost.usd is None and cost.usd_per_million_tokens is not None:
            return ""
        if cost.usd is None:
            return self._say("no_total", why=cost.why_zh if self.lang == "zh" and cost.why_zh else cost.why)
        total = self.usd(f"{path}.usd.expected")
        if cost.usd.low == cost.usd.high:
            return self._say("headline_exact", usd=total)
        return self._say("headline", usd=total, low=self.plain(f"{path}.usd.low"), high=self.plain(f"{path}.usd.high"))

    def with_buffer(self, index: int) -> list[str]:
        """What hours at a price come to with a reserve, where none is in the total."""
        cost = self._cost(index)
        if cost is None or cost.with_buffer_usd is None or cost.usd is None or self._run_task(index) != "train":
            return []
        share = round(100 * (cost.with_buffer_usd / cost.usd.expected - 1)) if cost.usd.expected else 0
        path = f"estimates[{index}].cost.with_buffer_usd"
        return [self._say("with_buffer", share=share, usd=self.usd(path))]

    def time(self, index: int) -> list[str]:
        """How long, how fast, and what that is based on."""
        time = self.answer.estimates[index].time
        if time is None:
            return []
        return [*self.duration(index), *self.speed(index)]

    def duration(self, index: int) -> list[str]:
        """How long the job takes, with its spread."""
        time, path = self.answer.estimates[index].time, f"estimates[{index}].time.seconds"
        if time is None or time.seconds is None:
            return []
        count = self.answer.runs[index].get("gpu_count") or 1
        cards = self._say("on_cards", count=count) if count > 1 else ""
        middle = self.span(f"{path}.expected")
        if time.seconds.low == time.seconds.high:
            return [self._say("time_exact", time=middle, cards=cards)]
        low, high = self.span(f"{path}.low"), self.span(f"{path}.high")
        return [self._say("time", time=middle, low=low, high=high, cards=cards)]

    def speed(self, index: int) -> list[str]:
        """Tokens per second with what that is based on."""
        time, path = self.answer.estimates[index].time, f"estimates[{index}].time"
        if time is None or time.tokens_per_second is None:
            return []
        speed = self.ledger.figure(f"{path}.tokens_per_second", _rounded(time.tokens_per_second), "tokens/s")
        used = ""
        if time.mfu is not None:
            used = self._say("mfu", mfu=self.ledger.figure(f"{path}.mfu", f"{100 * time.mfu:.0f}", "%"))
        basis = time.basis_zh if self.lang == "zh" and time.basis_zh else time.basis
        told = [self._say("speed", speed=speed, mfu=used), basis]
        if time.uplift and time.seconds:
            share = self.ledger.figure(f"{path}.uplift", f"{100 * time.uplift:.0f}", "%")
            told.append(self._say("uplift", share=share))
        if time.generation_seconds:
            told.append(self._say("generation", time=self.span(f"{path}.generation_seconds")))
        return [name_of(self.lang, "sign", "semicolon").join(told)]

    def million(self, index: int) -> list[str]:
        """The price of a million tokens."""
        cost = self._cost(index)
        if cost is None or cost.usd_per_million_tokens is None:
            return []
        return [self._say("million", usd=self.usd(f"estimates[{index}].cost.usd_per_million_tokens"))]

    def bill_heading(self, index: int) -> str:
        """Whose price the bill is made with."""
        cost = self._cost(index)
        if cost is None or not cost.lines:
            return ""
        whose = next((one for one in cost.assumptions if one.field == "price"), None)
        named = self._whose(whose)
        return self._say("bill", usd=self.plain(f"estimates[{index}].cost.usd_per_gpu_hour"), whose=named)

    def per(self, index: int) -> str:
        """What the figures of a table are of: the whole job, or an hour of use."""
        cost = self._cost(index)
        return self._say("by_job" if cost and cost.lines else "by_hour")

    def bill(self, index: int) -> list[list[str]]:
        """A row a line of the bill, and their sum."""
        cost = self._cost(index)
        if cost is None or not cost.lines:
            return []
        path = f"estimates[{index}].cost"
        return self._rows(cost.lines, f"{path}.lines", f"{path}.usd.expected")

    def offers(self, index: int) -> list[list[str]]:
        """A row a provider class: price, the job, who asks the least and when that was seen."""
        cost = self._cost(index)
        rows = []
        for number, offer in enumerate(cost.offers if cost else []):
            path = f"estimates[{index}].cost.offers[{number}]"
            total = self.plain(f"{path}.usd_total") + " USD" if offer.usd_total is not None else ""
            rows.append([self._name(offer.provider_class), self._range(path, offer), total, self._origin(offer)])
        return rows

    def ranks(self, index: int) -> bool:
        """Whether the offers are of several cards, ranked, because none or only a size was named."""
        found, cost = self.answer.estimates[index], self._cost(index)
        names = {offer.gpu for offer in cost.offers} if cost else set()
        return bool(names) and (len(names) > 1 or (found.run is not None and not found.run.gpu))

    def offers_heading(self, index: int) -> str:
        """What the rows of providers show."""
        cost = self._cost(index)
        priced = any(offer.usd_total is not None for offer in cost.offers) if cost else False
        return self._say("offers" if priced else "offers_alone")

    def brief(self, index: int) -> list[str]:
        """Time and total, beside the memory of a run that says how much there is to do."""
        return [*self.duration(index), *([self.headline(index)] if self.duration(index) else [])]

    def heading(self, key: str, first: bool) -> str:
        """The word before the first line of several, and as many columns before the others."""
        word = self._say(key)
        return word if first else " " * width(word)

    def assumed_by_all(self) -> list[str]:
        """What time and money of every run rest on."""
        told = [self.assumed(index) for index in range(len(self.answer.estimates)) if self._cost(index)]
        return [line for line in told[0] if all(line in others for others in told)] if told else []

    def ranked_heading(self, index: int) -> str:
        """What the cards are ranked by."""
        cost = self._cost(index)
        first = cost.offers[0] if cost and cost.offers else None
        kind = "by_hour" if first is None else "by_job" if first.usd_total is not None else "by_million"
        return self._say("ranked", what=self._say(kind))

    def ranked(self, index: int) -> list[list[str]]:
        """A row a card: how many, what the job costs, how long, whose price."""
        cost = self._cost(index)
        return [self._ranked_row(index, number, offer) for number, offer in enumerate(cost.offers if cost else [])]

    def _ranked_row(self, index: int, number: int, offer: PricedOffer) -> list[str]:
        path = f"estimates[{index}].cost.offers[{number}]"
        name = f"{offer.gpu_count} x {offer.gpu}" if offer.gpu_count > 1 else offer.gpu
        field = "usd_total" if offer.usd_total is not None else "usd_per_million_tokens"
        priced = self.plain(f"{path}.{field}") + " USD" if getattr(offer, field) is not None else ""
        took = ""
        if offer.hours is not None:
            took = self._spelled(path, "hours", offer.hours * HOUR)
        steps = offer.steps_zh if self.lang == "zh" else offer.steps
        after = self._say("after", steps=quoted(" + ".join(steps[:MOST_STEPS]), 120)) if steps else ""
        hourly = self.plain(f"{path}.usd_per_gpu_hour") + "/h"
        origin = f"{hourly} {self._name(offer.provider_class)}, {self._origin(offer)}"
        return [name, priced, took, name_of(self.lang, "sign", "semicolon").join(filter(None, [origin, after]))]

    def cheapest_dated(self, index: int) -> list[str]:
        """The cheapest card whose price has a day: those without are never named cheapest."""
        cost = self._cost(index)
        dated = (
            [number for number, offer in enumerate(cost.offers) if _has_day(offer) and not offer.steps] if cost else []
        )
        if cost is None or not dated or _has_day(cost.offers[0]):
            return []
        offer = cost.offers[dated[0]]
        field = "usd_total" if offer.usd_total is not None else "usd_per_million_tokens"
        if getattr(offer, field) is None:
            return []
        usd = self.usd(f"estimates[{index}].cost.offers[{dated[0]}].{field}")
        return [self._say("cheapest", count=offer.gpu_count, gpu=offer.gpu, usd=usd)]

    def owning(self, index: int) -> list[str]:
        """When owning pays: use and months."""
        cost, path = self._cost(index), f"estimates[{index}].cost.rent_or_buy"
        own = cost.rent_or_buy if cost else None
        if own is None or own.rent_usd_per_gpu_hour is None or own.break_even_utilisation is None:
            return []
        share = self.ledger.figure(f"{path}.break_even_utilisation", f"{100 * own.break_even_utilisation:.0f}", "%")
        rent = self.plain(f"{path}.rent_usd_per_gpu_hour")
        kind = "break_even" if own.break_even_utilisation <= 1 else "never"
        lines = [self._say(kind, whose=self._name(own.rent_class), rent=rent, share=share)]
        used, invested = f"{100 * own.utilisation:.0f}", self.plain(f"{path}.invested_usd_per_gpu")
        if own.break_even_months is None:
            lines.append(self._say("no_months", used=used, invested=invested, years=f"{own.years:g}"))
        else:
            months = self.ledger.figure(f"{path}.break_even_months", f"{own.break_even_months:.1f}", "months")
            lines.append(self._say("months", used=used, invested=invested, months=months))
        rows = name_of(self.lang, "sign", "comma").join(
            f"{self._name(name)} {100 * even:.0f} %" for name, _price, even in own.against
        )
        return [*lines, self._say("against", rows=rows)]

    def owning_heading(self, index: int) -> str:
        """Which card is owned, and how much of the time it is used."""
        cost = self._cost(index)
        own = cost.rent_or_buy if cost else None
        return self._say("owning", gpu=own.gpu, used=f"{100 * own.utilisation:.0f}") if own else ""

    def owning_rows(self, index: int) -> list[list[str]]:
        """A row a line of the cost of an owned hour, and their sum."""
        cost, path = self._cost(index), f"estimates[{index}].cost.rent_or_buy"
        own = cost.rent_or_buy if cost else None
        return self._rows(own.lines, f"{path}.lines", f"{path}.usd_per_gpu_hour", fine=True) if own else []

    def assumed(self, index: int) -> list[str]:
        """Each value that time and money rest on, marked measured or assumed."""
        cost, time = self._cost(index), self.answer.estimates[index].time
        used = cost is not None and (cost.usd or cost.usd_per_million_tokens or cost.rent_or_buy)
        values = [*(cost.assumptions if cost and used else []), *(time.notes if time else [])]
        return [self._told(one) for one in values]

    def rent(self, index: int) -> list[str]:
        """What the card costs to rent, and under it the days and sources."""
        shown = self.answer.rents[index] if index < len(self.answer.rents) else None
        if shown is None:
            return []
        path, comma = f"rents[{index}].classes", name_of(self.lang, "sign", "comma")
        rows = [self._rent_row(f"{path}[{number}]", one) for number, one in enumerate(shown.classes)]
        days = [self._rent_origin(one) for one in shown.classes]
        return [self._say("rent", rows=comma.join(rows)), name_of(self.lang, "sign", "semicolon").join(days)]

    def _rent_origin(self, one: dict[str, object]) -> str:
        """Day and source in a few letters: of a repository its name without its owner."""
        source = str(one["source"]).rpartition("/")[2]
        return f"{one['as_of'] or self._say('undated')}, {quoted(source, LONGEST_SOURCE)}"

    def _rent_row(self, path: str, one: dict[str, object]) -> str:
        low, high = (self.ledger.figure(f"{path}.{end}", f"{one[end]:.2f}", "USD/h") for end in ("low", "high"))
        key = "rent_row" if low != high else "rent_row_one"
        return self._say(key, whose=self._name(str(one["provider_class"])), low=low, high=high)

    def several(self) -> list[list[str]]:
        """A row a run: what it is, its verdict or smallest card, time, and cost or the cheapest card."""
        heading = ["", *(self._say(f"column_{name}") for name in ("time", "fit", "cost"))]
        return [heading, *(self._several_row(index) for index in range(len(self.answer.estimates)))]

    def _several_row(self, index: int) -> list[str]:
        found, d = self.answer.estimates[index], self.describer
        comparison = d.comparison()[index]
        if found.per_gpu is None:
            return [d.label(index), "-", "-", comparison[-1]]
        spent = found.time and found.time.seconds
        took = self.span(f"estimates[{index}].time.seconds.expected") if spent else ""
        cost = found.cost
        if cost is not None and cost.usd is not None:
            path = f"estimates[{index}].cost.usd"
            spread = (
                f" ({self.plain(f'{path}.low')}-{self.plain(f'{path}.high')})" if cost.usd.low != cost.usd.high else ""
            )
            priced = self.plain(f"{path}.expected") + spread
        elif cost is not None and self.ranks(index):
            name, usd, took, _origin = self._ranked_row(index, 0, cost.offers[0])
            priced = f"{usd}, {name}"
        elif cost is not None and cost.usd_per_million_tokens is not None:
            priced = self._say("a_million", usd=self.plain(f"estimates[{index}].cost.usd_per_million_tokens"))
        else:
            priced = (cost.why_zh if self.lang == "zh" else cost.why) if cost else ""
        return [d.label(index), took, comparison[-1], priced + self._at_whose_price(cost)]

    def _at_whose_price(self, cost: CostEstimate | None) -> str:
        """The class whose price a row is made with: two classes are never mixed unseen."""
        price = next((one for one in cost.assumptions if one.field == "price"), None) if cost else None
        return f" · {self._whose(price)}" if price else ""

    def usd(self, path: str) -> str:
        """US dollars at a path; for Chinese readers also in yuan."""
        text = self._say("usd", usd=self.plain(path))
        if self.lang != "zh":
            return text
        from bot.prices.money import bundled_rates

        yuan = _rounded(float(self.ledger.at(path)) * bundled_rates().rate("CNY"))
        return f"{text}（约 {self.ledger.figure(path, yuan, 'CNY')} 元）"

    def plain(self, path: str) -> str:
        """US dollars at a path without the unit."""
        value = float(self.ledger.at(path))
        return self.ledger.figure(path, _money(value), "USD")

    def span(self, path: str) -> str:
        """Seconds at a path as minutes, hours or days."""
        head, _dot, _name = path.rpartition(".")
        return self._spelled(head, path.rpartition(".")[2], float(self.ledger.at(path)))

    def _spelled(self, path: str, name: str, seconds: float) -> str:
        key, size = next(
            ((key, size) for key, size, most in (("minutes", 60, HOUR), ("hours", HOUR, 2 * DAY)) if seconds < most),
            ("days", DAY),
        )
        return self._say(key, value=self.ledger.figure(f"{path}.{name}", _rounded(seconds / size), key))

    def _rows(self, lines: list[CostLine], path: str, total: str, fine: bool = False) -> list[list[str]]:
        rows = []
        for number, line in enumerate(lines):
            name = "why_zh" if self.lang == "zh" and line.why_zh else "why"
            why = self.ledger.words(f"{path}[{number}].{name}")
            rows.append([name_of(self.lang, "bill", line.item), self._cell(f"{path}[{number}].usd", fine), why])
        return [*rows, [name_of(self.lang, "bill", "total"), self._cell(total, fine), ""]]

    def _cell(self, path: str, fine: bool) -> str:
        value = float(self.ledger.at(path))
        return self.ledger.figure(path, f"{value:,.3f}" if fine else f"{value:,.2f}", "USD")

    def _range(self, path: str, offer: PricedOffer) -> str:
        low, high = offer.range or (offer.usd_per_gpu_hour, offer.usd_per_gpu_hour)
        texts = [_money(low), _money(high)]
        shown = dict.fromkeys(
            self.ledger.figure(f"{path}.range[{number}]", one, "USD/h") for number, one in enumerate(texts)
        )
        return "-".join(shown)

    def _origin(self, offer: PricedOffer) -> str:
        day = offer.as_of or self._say("undated")
        return f"{quoted(offer.provider, 30)}, {day}, {quoted(source_name(offer.source), LONGEST_SOURCE)}"

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


def _has_day(offer: PricedOffer) -> bool:
    return len(offer.as_of) == len("2026-01-01")


def _money(value: float) -> str:
    """Dollars with as many digits as say something."""
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.0995 or value == 0 else f"{value:.2g}"


def _rounded(value: float) -> str:
    """Three significant digits, whole from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def is_about_money(answer: Answer) -> bool:
    """Whether time and money are the answer: the question asks for them, and there is something to tell."""
    found: Iterable[object] = (one.time or one.cost for one in answer.estimates)
    ranks = answer.question == "need_gpu" and any(one.cost and one.cost.offers for one in answer.estimates)
    return (answer.question in ("time", "cost", "price") or ranks) and any(found)
