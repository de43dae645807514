"""Questions find their entry in other words, in both languages; what is not ours finds none."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bot import service
from knowledge.search import answering, searched

LINES = (Path(__file__).parents[1] / "data" / "faq.jsonl").read_text("utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"])
def test_a_question_finds_its_entry(row: dict[str, Any]) -> None:
    near = answering(row["text"])
    assert (near.entry.id if near else None) == row["entry"]


@pytest.mark.parametrize("row", [row for row in ROWS if not row["entry"]], ids=lambda row: row["text"])
def test_talk_stays_unanswered(row: dict[str, Any]) -> None:
    assert service.ask(row["text"]).reply == "ignore"


PARAPHRASES = Path(__file__).parents[1] / "data" / "faq_paraphrases.jsonl"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_documents_questions_are_found_in_other_words(lang: str) -> None:
    """Ten paraphrases of each, written before the search was tried on them; a few may miss, none may be chatter."""
    rows = [row for line in PARAPHRASES.read_text("utf-8").splitlines() if (row := json.loads(line))["lang"] == lang]
    found = [near.entry.id if (near := answering(row["text"])) else None for row in rows]
    right = [one == row["entry"] for one, row in zip(found, rows, strict=True)]
    assert sum(right) / len(right) >= 0.95


@pytest.mark.parametrize(
    "text",
    [
        "the weather differs between my two cities",
        "GPU prices doubled over time",
        "最近房价一直涨怎么办",
        "他们两个差别很大",
    ],
)
def test_topics_need_their_subject(text: str) -> None:
    assert answering(text) is None


def test_full_text_search_needs_most_of_the_words() -> None:
    assert searched("optimizer states appear after the first step")[0].id == "optimizer_first_step"
    assert searched("数据并行每张卡都有完整模型")[0].id == "full_copy_per_gpu"
    assert searched("the quick brown fox jumps over the lazy dog") == []
    assert searched("显存") == []


def test_any_thread_may_search() -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(searched, ["optimizer states appear after the first step"] * 8))
    assert all(one[0].id == "optimizer_first_step" for one in found)


def test_a_pasted_wreck_is_diagnosed_and_a_screenshot_declined() -> None:
    wreck = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    answer = service.ask(wreck)
    assert answer.question == "diagnose"
    assert answer.diagnosis
    assert answer.diagnosis.causes[0].id == "opaque_alloc_error"
    declined = service.ask("why? https://cdn.example.com/shot.png")
    assert declined.reply == "refuse"
    assert "paste the error as text" in declined.text


def test_figures_of_an_answer_are_noted_with_their_place() -> None:
    answer = service.ask(
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 14.75 GiB total capacity; 10.23 GiB already allocated; "
        "790.81 MiB free; 12.92 GiB reserved in total by PyTorch)"
    )
    noted = {(one.source, one.value) for one in answer.numbers}
    assert ("diagnosis.message.total", 14.8) in noted
    assert ("diagnosis.message.tried", 2.0) in noted
