"""What the cards say, for estimates made by hand."""

import pytest

from bot.answer import Answer
from bot.answers.card import cards_of, change_of, flags_cards, math_cards
from bot.answers.render import rendered
from tests.bot.answers.card.limits import assert_within_limits
from tests.bot.answers.test_render import ANSWERS


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_kind_of_answer_has_a_card_within_the_limits(name: str, lang: str) -> None:
    answer = rendered(ANSWERS[name].model_copy(update={"lang": lang}))
    (card,) = cards_of(answer)
    assert_within_limits(card)
    for index, found in enumerate(answer.estimates):
        if found.per_gpu:
            for page in [*math_cards(answer, index), *flags_cards(answer, index)]:
                assert_within_limits(page)


def test_what_is_to_be_ignored_has_no_card() -> None:
    assert cards_of(rendered(Answer(reply="ignore"))) == []


def test_the_change_of_a_button_comes_back_from_its_argument() -> None:
    (card,) = cards_of(rendered(ANSWERS["fits"]))
    what_ifs = [one for one in card.actions if one.kind == "what_if"]
    assert what_ifs and all(change_of(one.argument) == one.change for one in what_ifs)
    with pytest.raises(ValueError, match="no field"):
        change_of("__class__=1")
