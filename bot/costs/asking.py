"""What a question about time or money needs beside the memory."""

from typing import Any

from bot.costs.costing import of_card, wants_money, with_costs
from estimator.schema import Estimate, Run

ABOUT_MONEY = ("time", "cost", "price")
FACTS = ("params_b", "memory_gb", "resolved_model", "hours", "model", "gpu", "task", "method")
"""What a run without a model carries beside what may be said of money."""


def spelled_out(question: str, fields: dict[str, Any], lang: str) -> dict[str, Any]:
    """The run with what the question says of money in its place: hours that were billed, the country of the reader."""
    said = dict(fields.get("economics") or {})
    if fields.get("hours") and question in ("cost", "price"):
        said.setdefault("hours", fields["hours"])
    if lang == "zh" and question in ABOUT_MONEY:
        said.setdefault("country", "cn")
    return {**fields, "economics": said} if said else fields


def beside(question: str, asked: Run, found: Estimate) -> Estimate:
    """The estimate with time and cost where the question, or the run itself, asks for them."""
    ranks = question in ABOUT_MONEY or (question == "need_gpu" and asked.gpu is None)
    return with_costs(asked, found, ranks) if ranks or wants_money(asked) else found


def without_model(fields: dict[str, Any]) -> Estimate:
    """Prices of a card alone. Raises ``EstimatorError``."""
    kept = {name: value for name, value in fields.items() if name not in FACTS}
    return of_card(kept, str(fields["gpu"]))
