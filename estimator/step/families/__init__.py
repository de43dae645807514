"""One module per family of architectures: how its parts are put together."""

from types import ModuleType

from estimator.errors import EstimatorError
from estimator.step.families import (
    bert,
    bloom,
    distilbert,
    falcon,
    gpt2,
    gpt_bigcode,
    gpt_neo,
    gpt_neox,
    gptj,
    mixtures,
    modernbert,
    mpt,
    opt,
    phi,
)
from estimator.step.families.decoders import APPROXIMATE, ROTARY

FAMILIES: dict[str, ModuleType] = {
    **ROTARY,
    "gpt2": gpt2,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "bloom": bloom,
    "phi": phi,
    "gptj": gptj,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    "mpt": mpt,
    "bert": bert,
    "roberta": bert,
    "xlm-roberta": bert,
    "distilbert": distilbert,
    "falcon": falcon,
    "modernbert": modernbert,
}
FAMILIES.update(mixtures.MIXTURES)
APPROXIMATE.update(mixtures.APPROXIMATE)


def family_of(model_type: str) -> ModuleType:
    """The module that composes this architecture."""
    try:
        return FAMILIES[model_type]
    except KeyError:
        raise EstimatorError(f"no timeline for architecture {model_type!r} yet", field="model") from None


def spread_of(model_type: str) -> str:
    """How sure the timeline of an architecture is: exact, or near where it is composed from its closest kin."""
    return "near" if model_type in APPROXIMATE else "exact"
