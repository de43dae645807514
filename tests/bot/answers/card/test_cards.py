"""What the cards say, for estimates made by hand."""

import re

import pytest

from bot.answer import Answer
from bot.answers.card import Card, cards_of, change_of, examples, flags_cards, math_cards
from bot.answers.card.shape import COLOURS
from bot.answers.render import rendered
from bot.intake.doubts import Doubt
from estimator.schema import Assumption, Block, Fit, PhasePeak
from tests.bot.answers.card.limits import assert_within_limits, code_lines
from tests.bot.answers.card.made import RUN, made_step, too_big
from tests.bot.answers.test_render import ANSWERS
from tests.conftest import GIB, made_estimate


def card_of(answer: Answer, lang: str = "en") -> Card:
    (card,) = cards_of(rendered(answer.model_copy(update={"lang": lang})))
    return card


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_kind_of_answer_has_a_card_within_the_limits(name: str, lang: str) -> None:
    answer = rendered(ANSWERS[name].model_copy(update={"lang": lang}))
    (card,) = cards_of(answer)
    assert_within_limits(card)
    for index in range(len(answer.estimates)):
        for page in [*math_cards(answer, index), *flags_cards(answer, index)]:
            assert_within_limits(page)


def test_what_is_to_be_ignored_has_no_card() -> None:
    assert cards_of(rendered(Answer(reply="ignore"))) == []


@pytest.mark.parametrize(
    ("verdict", "lang", "words"),
    [
        ("fits", "en", "**FITS**:"), ("fits", "zh", "**放得下**："),
        ("tight", "en", "**TIGHT, it may or may not fit**:"), ("tight", "zh", "**很紧，可能放得下也可能放不下**："),
        ("does_not_fit", "en", "**DOES NOT FIT**:"), ("does_not_fit", "zh", "**放不下**："),
    ],
)  # fmt: skip
def test_the_verdict_is_told_in_words_and_colour(verdict: str, lang: str, words: str) -> None:
    fit = Fit.model_validate({"verdict": verdict, "usable": 3 * GIB})
    card = card_of(too_big(estimates=[made_estimate(fit=fit)]), lang)
    assert card.lead.startswith(words)
    assert card.colour == COLOURS[card.verdict] and card.verdict == verdict


def test_without_a_card_the_smallest_that_holds_it_is_told_first() -> None:
    card = card_of(too_big(estimates=[made_estimate(fit=Fit(), max=None)], smallest_card_gb=[4]))
    assert card.lead.endswith("Smallest card that surely holds it: **4 GB**")
    assert card.colour == COLOURS[None]
    assert change_of(next(one.argument for one in card.actions if one.label == "On 4 GB?")) == {"gpu": "4GB"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_rows_of_the_table_add_up_to_the_peak(lang: str) -> None:
    _, *rows, rule, total = code_lines(card_of(too_big(), lang).table)[1:]
    assert set(rule) == {"-"}
    assert sum(float(row.split()[0]) for row in rows) == pytest.approx(float(total.split()[0]))


def test_the_table_of_several_cards_is_of_each() -> None:
    card = card_of(too_big(runs=[{**RUN, "gpu_count": 2}]))
    assert "peak of each card" in card.table and card.lead.endswith(", each")


def test_steps_are_told_with_what_they_save_and_cost() -> None:
    plan, steps, *_ = card_of(too_big()).sections
    assert plan == (
        "Cheapest way to make it fit: **micro-batch 1 with 8 accumulation steps + 8-bit AdamW**, peak 3.5 GiB, fits."
    )
    assert steps.splitlines() == [
        "**What to change first**",
        "1. **micro-batch 1 with 8 accumulation steps**: saves 2.0 GiB, peak 5.5 GiB, does not fit, slightly slower; "
        "same loss in practice",
        "2. **8-bit AdamW**: saves 2.0 GiB, peak 5.5 GiB, fits",
    ]


def test_of_many_steps_the_first_and_those_that_fit_are_told() -> None:
    steps = [made_step(f"s{number}", title=f"s{number}", verdict="does_not_fit") for number in range(6)]
    steps += [made_step("other-card", title="other card", saves=0, money_cost="large")]
    card = card_of(too_big(estimates=[made_estimate(downgrades=steps)]))
    told = card.sections[0].splitlines()
    assert [line.split("**")[1] for line in told[1:5]] == ["s0", "s1", "s2", "other card"]
    assert told[4].startswith("4. **other card**: peak 5.5 GiB, fits, slightly slower, costs much more")
    assert card.sections[1].splitlines()[0] == '3 more under "Copy flags".'
    assert [one.argument for one in card.actions if one.kind == "apply"] == ["s0", "s1", "s2", "other-card"]


def test_the_buttons_of_a_run() -> None:
    actions = card_of(too_big()).actions
    assert [(one.kind, one.argument) for one in actions] == [
        ("apply", "plan"), ("apply", "micro-batch"), ("apply", "adamw-8bit"), ("math", "0"), ("flags", "0"),
        ("what_if", 'loss="standard"'), ("what_if", 'gradient_checkpointing="full"'),
    ]  # fmt: skip
    assert actions[0].change == {"micro_batch": 1, "grad_accum": 8, "optimizer": "adamw-8bit"}
    assert all(change_of(one.argument) == one.change for one in actions if one.kind == "what_if")


@pytest.mark.parametrize("argument", ["__class__=1", "loss", "=1", "loss=standard"])
def test_an_argument_that_was_never_made_is_refused(argument: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        change_of(argument)


def test_what_does_not_fit_a_card_is_left_out_and_said() -> None:
    many = [Assumption(field="gpu", value=None, why=f"{number} " + "long " * 50) for number in range(60)]
    card = card_of(too_big(estimates=[too_big().estimates[0].model_copy(update={"notes": many})]))
    assert_within_limits(card)
    assert re.search(r'-# \d+ less important lines left out; "Show the math" has them\.$', card.footer)
    assert "Assumed" not in card.footer and "What to change first" in "".join(card.sections)


def test_several_runs_are_compared_with_a_button_each() -> None:
    fits, not_fits = made_estimate(), too_big().estimates[0]
    runs = [{**RUN, "method": "lora"}, {**RUN, "method": "full"}]
    full = not_fits.model_copy(update={"run": None})
    card = card_of(Answer(runs=runs, estimates=[fits, full]))
    assert (card.kind, card.verdict, card.lead) == ("comparison", None, "**fits: 1, does not fit: 1**")
    assert [(one.kind, one.label, one.argument) for one in card.actions] == [
        ("reading", "LoRA bf16", "0"), ("reading", "full fine-tuning", "1"),
    ]  # fmt: skip
    assert "  1.90 fits" in card.table and "  1.90 does not fit" in card.table


def test_runs_that_share_a_verdict_share_its_colour() -> None:
    assert card_of(Answer(runs=[RUN, {**RUN, "model": "14b"}], estimates=[made_estimate()] * 2)).verdict == "fits"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_math_tells_every_block_and_every_assumption(lang: str) -> None:
    answer = too_big(lang=lang)
    told = "\n".join(text for page in math_cards(answer) for text in page.below)
    found = answer.estimates[0]
    blocks = found.per_gpu.at_peak if found.per_gpu else []
    assert all((block.why_zh if lang == "zh" else block.why) in told for block in blocks)
    assert all((one.why_zh if lang == "zh" else one.why) in told for one in [*found.assumptions, *found.notes])


def test_long_math_goes_over_numbered_pages() -> None:
    many = [Assumption(field="seq_len", value=number, why="reason " * 30) for number in range(50)]
    pages = math_cards(too_big(estimates=[made_estimate(assumptions=many)]))
    assert len(pages) > 1
    assert [page.headline[-5:] for page in pages] == [f"({number}/{len(pages)})" for number in range(1, len(pages) + 1)]
    assert sum("seq_len" in line for page in pages for text in page.below for line in text.splitlines()) == 50


def test_flags_are_told_as_they_are_typed() -> None:
    odd = made_step("odd", commands=["--targets '[\"q_proj\"]' `x` <y>"])
    (page,) = flags_cards(too_big(estimates=[made_estimate(downgrades=[odd])]))
    assert code_lines(page.sections[0])[1:] == ["--targets '[\"q_proj\"]' 'x' <y>"]


def test_a_run_that_needs_no_change_has_no_flags() -> None:
    answer = too_big(estimates=[made_estimate()])
    assert "flags" not in [one.kind for one in card_of(answer).actions]
    assert flags_cards(answer)[0].lead == "Nothing needs to change: the run is taken as it stands."


def test_what_may_have_been_meant_is_offered() -> None:
    doubts = [Doubt("value", "optimizer", "sgdd", ("adamw", "sgd"))]
    (card,) = cards_of(rendered(Answer(reply="clarify", runs=[RUN]), doubts))
    assert [(one.kind, one.label, one.change) for one in card.actions] == [
        ("what_if", "sgd", {"optimizer": "sgd"}), ("what_if", "adamw", {"optimizer": "adamw"}),
    ]  # fmt: skip


def test_sizes_are_offered_where_no_model_is_named() -> None:
    card = card_of(Answer(reply="clarify", missing=["model"], runs=[{"gpu": "RTX 4090"}]))
    assert [one.change for one in card.actions][1] == {"model": "7b"}
    assert not card_of(Answer(reply="clarify", invalid=["seq_len"], runs=[{"gpu": "RTX 4090"}])).actions


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_help_offers_its_examples(lang: str) -> None:
    card = card_of(Answer(question="help"), lang)
    assert card.kind == "help"
    assert [examples(lang)[int(one.argument)] for one in card.actions] == examples(lang)[1:4]


def test_the_math_tells_the_blocks_of_every_phase() -> None:
    found = made_estimate()
    assert found.per_gpu is not None
    block = Block(item="activations", bytes=2**30, why="24 layers x 1,024 tokens x 43,691 B", why_zh="24 层")
    phases = [
        PhasePeak(phase=one.phase, allocated_peak=one.allocated_peak, blocks=[block]) for one in found.per_gpu.phases
    ]
    per_gpu = found.per_gpu.model_copy(update={"phases": phases})
    pages = math_cards(Answer(runs=[RUN], estimates=[found.model_copy(update={"per_gpu": per_gpu})]))
    told = "\n".join(text for page in pages for text in page.below)
    assert told.count(block.why) == sum(one.phase != found.per_gpu.peak_phase for one in phases) > 0
