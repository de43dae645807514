"""An answer to a wreck within the length of one chat message."""

from collections.abc import Callable

from bot.answer import Answer
from bot.answers.render import rendered
from knowledge.diagnosis import Diagnosis

LONGEST = 1800
"""Characters of a diagnosis: a Discord message takes 2,000 and has its marks, too."""


def briefly(answer: Answer) -> Answer:
    """The rendered answer; of one that is too long what matters least is left out of the text, not of the diagnosis."""
    told, diagnosis = rendered(answer), answer.diagnosis
    for shorter in SHORTER:
        if diagnosis is None or len(told.text) <= LONGEST:
            break
        diagnosis = shorter(diagnosis)
        told = rendered(answer.model_copy(update={"diagnosis": diagnosis}))
    return told.model_copy(update={"diagnosis": answer.diagnosis})


def _fewer_useless(found: Diagnosis) -> Diagnosis:
    return found.model_copy(update={"useless": found.useless[:1]})


def _fewer_causes(found: Diagnosis) -> Diagnosis:
    return found.model_copy(update={"causes": found.causes[:1], "gap": None})


def _fewer_fixes(found: Diagnosis) -> Diagnosis:
    causes = [one.model_copy(update={"fixes": one.fixes[:2]}) for one in found.causes]
    return found.model_copy(update={"causes": causes, "useless": []})


SHORTER: tuple[Callable[[Diagnosis], Diagnosis], ...] = (_fewer_useless, _fewer_causes, _fewer_fixes)
