"""From the options of /cost and /compare to the question they ask."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from bot.intake.doubts import Doubt
from bot.intake.economics import read_token_amounts
from bot.intake.runs import MOST_RUNS, Fields, spoken_runs, with_facts, with_open_readings
from bot.intake.settled import settled
from bot.intake.sheet import Sheet
from bot.intake.typed import typed_fields
from bot.intake.understand import Question, read_sheet

AMOUNTS = ("samples", "epochs", "tokens")
SAID = {"price": "price", "hours": "hours", "country": "country", "buy": "rent_or_buy"}
"""Options whose value is the value of a field of ``economics``."""


def cost_question(given: Mapping[str, Any]) -> Question:
    """The question of /cost: a run with an amount of data, or a card to be rented or bought."""
    fields, doubts = typed_fields(given)
    amounts, unread = _amounts(given)
    run = settled({**fields, **amounts, **_said(given)}, False)
    alone = not run.get("model") and bool(run.get("gpu"))
    runs, missing = ([run], []) if alone else with_open_readings([run])
    doubts += unread
    if not (run.get("model") or alone):
        missing.append("model")
    if not alone and _lacks_amount(run):
        missing.append("samples")
    stuck = bool(doubts) or "samples" in missing or "model" in missing
    shown = [run] if stuck else runs
    return Question(
        "clarify" if stuck else "answer", "cost", [run], [with_facts(one) for one in shown], missing, doubts=doubts
    )


def comparison_question(given: Mapping[str, Any]) -> Question:
    """The question of /compare: every card with every method; without an amount by the price of a million tokens."""
    plain = {name: value for name, value in given.items() if name not in ("cards", "methods")}
    fields, doubts = typed_fields(plain)
    amounts, unread = _amounts(given)
    doubts += unread
    cards, methods = _cards(str(given.get("cards") or "")), _methods(str(given.get("methods") or ""))
    named: list[Fields] = [{**fields, **amounts, **card, **method} for card, method in product(cards, methods)]
    runs = [settled(run, False) for run in named][:MOST_RUNS]
    open_runs, missing = with_open_readings(runs)
    if not fields.get("model"):
        missing.append("model")
    stuck = bool(doubts) or not fields.get("model")
    shown = runs if stuck else open_runs
    return Question(
        "clarify" if stuck else "answer", "cost", runs, [with_facts(one) for one in shown], missing, doubts=doubts
    )


def _amounts(given: Mapping[str, Any]) -> tuple[Fields, list[Doubt]]:
    fields: Fields = {name: given[name] for name in ("samples", "epochs") if given.get(name) is not None}
    text = str(given.get("tokens") or "").strip()
    if not text:
        return fields, []
    sheet = Sheet.of(text if "token" in text.lower() else f"{text} tokens")
    read_token_amounts(sheet, 1)
    found = sheet.values("tokens")
    return ({**fields, "tokens": found[-1]}, []) if found else (fields, [Doubt("value", "tokens", text)])


def _said(given: Mapping[str, Any]) -> Fields:
    said = {field: given[name] for name, field in SAID.items() if given.get(name) is not None}
    if "price" in said:
        said["price_unit"] = "gpu"
    if given.get("utilisation") is not None:
        said |= {"utilisation": given["utilisation"] / 100, "rent_or_buy": True}
    return {"economics": said} if said else {}


def _lacks_amount(run: Fields) -> bool:
    said = run.get("economics") or {}
    known = any(run.get(name) for name in ("samples", "tokens")) or said.get("hours") or said.get("rent_or_buy")
    return not known and run.get("task") not in ("infer", "serve")


def _cards(text: str) -> list[Fields]:
    """The cards of a list in words; one empty run where none is named."""
    parts = [part for part in text.replace("、", ",").replace("，", ",").split(",") if part.strip()]
    found = [run for part in parts for run in spoken_runs(read_sheet(f"gpu:{part.strip()}"))]
    cards: list[Fields] = [
        {name: run[name] for name in ("gpu", "memory_gb", "gpu_count", "nodes") if name in run} for run in found
    ]
    return [card for card in cards if card] or [{}]


def _methods(text: str) -> list[Fields]:
    if not text.strip():
        return [{}]
    runs = spoken_runs(read_sheet(text))
    return [{name: run[name] for name in ("method", "task") if name in run} for run in runs] or [{}]
