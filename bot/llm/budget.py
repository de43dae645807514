"""What language models may use in a day, counted by this process."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

from bot.settings import Settings

MILLION = Decimal(1_000_000)


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass
class Budget:
    """Tokens and USD of a day (UTC); a cap on USD that cannot be counted for want of a price counts as reached."""

    most_tokens: int
    most_usd: Decimal | None
    usd_per_million: tuple[Decimal, Decimal] | None
    today: Callable[[], date] = _today
    _day: date | None = None
    _tokens: int = 0
    _usd: Decimal | None = field(default=Decimal(0))

    @classmethod
    def of(cls, settings: Settings) -> "Budget":
        """The budget that the settings allow."""
        usd = settings.vram_bot_llm_daily_usd
        return cls(settings.vram_bot_llm_daily_tokens, None if usd is None else Decimal(str(usd)), settings.llm_price)

    @property
    def left(self) -> bool:
        """Whether a further question may be asked today."""
        self._turn_the_page()
        usd_left = self.most_usd is None or (self._usd is not None and self._usd < self.most_usd)
        return self._tokens < self.most_tokens and usd_left

    def spend(self, tokens_in: int, tokens_out: int, cost: Decimal | None) -> None:
        """Count what a question used; ``cost`` in USD as the library knows it, None where it does not."""
        self._turn_the_page()
        self._tokens += tokens_in + tokens_out
        if self.usd_per_million:
            price_in, price_out = self.usd_per_million
            cost = (tokens_in * price_in + tokens_out * price_out) / MILLION
        if cost is None and tokens_in + tokens_out == 0:
            cost = Decimal(0)
        self._usd = None if cost is None or self._usd is None else self._usd + cost

    def _turn_the_page(self) -> None:
        if self._day != self.today():
            self._day, self._tokens, self._usd = self.today(), 0, Decimal(0)
