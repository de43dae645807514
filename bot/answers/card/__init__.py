"""An Answer as Discord cards: pure data that the files which speak with Discord turn into components."""

from dataclasses import replace

from bot.answer import Answer
from bot.answers.card.actions import change_of, examples
from bot.answers.card.cost import cost_card, costs_card
from bot.answers.card.one import one_card
from bot.answers.card.pages import alone, flags_cards, math_cards
from bot.answers.card.question import help_card, question_card, refusal_card, told_card
from bot.answers.card.several import comparison_card
from bot.answers.card.shape import MOST_TEXT, Action, Card, Picture
from bot.answers.card.voice import Voice
from bot.answers.money import is_about_money

__all__ = ["Action", "Card", "Picture", "alone", "cards_of", "change_of", "examples", "flags_cards", "math_cards"]


def cards_of(answer: Answer) -> list[Card]:
    """The cards of an answer, one message each; none for what is to be ignored."""
    cards = _cards_of(answer)
    if not cards or not answer.said or answer.said in cards[0].lead:
        return cards
    first = replace(cards[0], lead=f"{answer.said}\n{cards[0].lead}")
    return [first if first.length <= MOST_TEXT else cards[0], *cards[1:]]


def _cards_of(answer: Answer) -> list[Card]:
    voice = Voice(answer)
    if answer.reply == "ignore":
        return []
    if answer.reply == "refuse":
        return [refusal_card(voice)]
    if answer.prices is not None:
        return [_price_card(answer)]
    if answer.diagnosis is not None or answer.known is not None or (answer.entries and not answer.estimates):
        return [told_card(voice)]
    if answer.reply == "clarify" or (answer.question != "help" and not answer.estimates):
        return [question_card(voice)]
    if answer.question == "help":
        return [help_card(voice)]
    if is_about_money(answer) and not (len(answer.estimates) == 1 and answer.estimates[0].error):
        return [cost_card(voice) if len(answer.estimates) == 1 else costs_card(voice)]
    return [one_card(voice) if len(answer.estimates) == 1 else comparison_card(voice)]


def _price_card(answer: Answer) -> Card:
    from bot.answers.card.prices import price_card  # most cards hold no price

    return price_card(answer)
