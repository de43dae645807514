"""The tools, called by name as a language model or an MCP client does."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import service
from bot.answers.card import cards_of
from bot.tools.calls import WrongCall, called
from bot.tools.schema import description_of, run_fields, schema_of
from bot.tools.shapes import TOOLS
from estimator.schema import Run

QLORA = {"model": "qwen2.5-7b", "method": "qlora", "gpu": "24GB"}
FULL = {"model": "llama3 8b", "method": "full", "gpu": "RTX 3090"}
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB "
    "of which 1.20 GiB is free. Of the allocated memory 21.50 GiB is allocated by PyTorch, and 400.00 MiB is reserved "
    "by PyTorch but unallocated."
)


def test_estimate_says_what_the_same_question_in_words_gets() -> None:
    told = called("estimate", {"run": {"model": "qwen2.5-7b", "method": "qlora", "gpu": "24GB"}}, "en")
    asked = service.ask("/vram model:qwen2.5-7b method:qlora gpu:24GB")
    assert told.estimates[0].per_gpu == asked.estimates[0].per_gpu
    assert told.text.splitlines()[:9] == asked.text.splitlines()[:9]


def test_downgrades_come_with_what_to_type() -> None:
    found = called("downgrades", {"run": FULL}, "en")
    assert found.estimates[0].downgrades and found.estimates[0].plan
    assert "--use_peft" in found.text


@pytest.mark.parametrize("what", ["micro_batch", "seq_len"])
def test_the_largest_is_that_of_the_estimate(what: str) -> None:
    found = called("largest_that_fits", {"run": QLORA, "what": what}, "en")
    assert found.estimates[0].max is not None
    assert f"{getattr(found.estimates[0].max, what):,}" in found.text


def test_the_largest_model_is_found_among_sizes() -> None:
    found = called("largest_that_fits", {"run": QLORA, "what": "model", "sizes": ["7b", "72b"]}, "en")
    assert [one.fit.verdict for one in found.estimates] == ["fits", "does_not_fit"]


def test_compare_has_a_line_for_each_run() -> None:
    found = called("compare", {"runs": [QLORA, FULL]}, "zh")
    assert len(found.estimates) == 2 and "放不下" in found.text


def test_cost_has_a_bill() -> None:
    found = called("cost", {"run": {**QLORA, "gpu": "RTX 4090", "samples": 10_000, "price_usd_per_hour": 0.5}}, "en")
    assert found.estimates[0].cost and found.estimates[0].time
    assert "USD" in found.text and "Time" in found.text


def test_prices_have_a_class_and_a_day() -> None:
    assert "H100" in called("prices", {"gpus": ["H100"]}, "en").text


def test_diagnose_reads_the_numbers() -> None:
    found = called("diagnose", {"text": OOM}, "en")
    assert found.diagnosis and found.diagnosis.message
    assert found.diagnosis.message.tried == 2 * 2**30


def test_lookup_of_a_model_gives_its_shape() -> None:
    found = called("lookup", {"kind": "model", "query": "qwen2.5-0.5b"}, "en")
    assert found.known and found.known.facts["parameters"] == 494_032_768
    assert "494,032,768" in found.text
    assert {"value": 494_032_768.0, "unit": "", "from": "known.facts.parameters"} in [
        json.loads(one.model_dump_json()) for one in found.numbers
    ]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_lookup_of_a_card_is_told_on_discord_too(lang: str) -> None:
    found = called("lookup", {"kind": "gpu", "query": "4090"}, lang)
    (card,) = cards_of(found)
    assert "RTX 4090" in card.lead and found.text in card.lead


def test_lookup_of_a_topic_gives_the_entry() -> None:
    found = called("lookup", {"kind": "topic", "query": "fragmentation"}, "en")
    assert found.entries == ["fragmentation"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("rm", {}, "estimate"),
        ("estimate", {}, "run"),
        ("estimate", {"run": "7b"}, "run"),
        ("estimate", {"run": {"model": "7b", "micro_batchs": 3}}, "did you mean micro_batch"),
        ("estimate", {"run": {"model": "7b", "micro_batch": 0}}, "≥ 1"),
        ("compare", {"runs": [{"model": "7b"}, {"model": "7b", "zeal": 3}]}, "zeal"),
        ("estimate", {"run": {"model": "no-such-model-9x"}}, "no-such-model-9x"),
        ("downgrades", {"run": {"model": "7b"}}, "name the card"),
        ("prices", {"gpus": ["H1009"]}, "h1009"),
        ("lookup", {"kind": "topic", "query": "bananas on mars"}, "Nothing near"),
        ("lookup", {"kind": "gpu", "query": "banana"}, "banana"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(name: str, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(WrongCall, match=said):
        called(name, arguments, "en")


@given(st.dictionaries(st.text(max_size=8), st.recursive(st.none() | st.text(max_size=8) | st.integers(), st.lists)))
@settings(max_examples=60, deadline=None)
def test_whatever_is_passed_is_refused_in_a_sentence(arguments: dict[str, object]) -> None:
    for name in ("estimate", "compare", "lookup", "downgrades"):
        with pytest.raises(WrongCall) as refused:
            called(name, {**arguments, "run": arguments, "runs": [arguments]}, "en")
        assert 0 < len(str(refused.value)) < 1_000


def test_every_field_of_a_run_is_described() -> None:
    described = [field for group in run_fields().values() for field in group]
    assert sorted(Run.model_fields) == sorted(described), "describe the new field in bot/tools/run_fields.toml"
    fields = schema_of("estimate")["$defs"]["Run"]["properties"]
    assert fields.keys() == set(Run.model_fields)
    assert all(spec["description"] for spec in fields.values())


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_schema_is_complete_and_short(name: str) -> None:
    schema = schema_of(name)
    text = json.dumps(schema)
    assert description_of(name) and len(text) < 16_000
    assert all(f'"{one}": ' in text for one in TOOLS[name].model_fields)
    for part in text.split('"#/$defs/')[1:]:
        assert part.split('"')[0] in schema["$defs"]
    assert all(spec.get("description") for spec in schema["properties"].values())


def test_what_a_schema_allows_is_taken() -> None:
    """Rare fields are not listed by every tool, but every tool takes them."""
    assert "compile" not in schema_of("downgrades")["$defs"]["Run"]["properties"]
    assert called("downgrades", {"run": {**FULL, "compile": False, "packing": True}}, "en").estimates
