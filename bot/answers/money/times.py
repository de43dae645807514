"""How long a job takes, and how fast it goes."""

from bot.answers.money.figures import Figures, rounded
from bot.texts import name_of


class Times(Figures):
    """Lines about time and speed."""

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
        speed = self.ledger.figure(f"{path}.tokens_per_second", rounded(time.tokens_per_second), "tokens/s")
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
