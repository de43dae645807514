"""Owning a card against renting it."""

from bot.answers.money.figures import Figures
from bot.texts import name_of


class Owned(Figures):
    """The cost of an owned hour, and when owning pays."""

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
