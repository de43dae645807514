"""One module per family of architectures: how its parts are put together. Modules are imported when first asked for."""

from importlib import import_module
from types import ModuleType

from estimator.errors import EstimatorError
from estimator.step.families import decoders

CLASSIC = {
    "gpt2": "gpt2",
    "gpt_neox": "gpt_neox",
    "opt": "opt",
    "bloom": "bloom",
    "phi": "phi",
    "gptj": "gptj",
    "gpt_bigcode": "gpt_bigcode",
    "gpt_neo": "gpt_neo",
    "mpt": "mpt",
    "falcon": "falcon",
    "bert": "bert",
    "roberta": "bert",
    "xlm-roberta": "bert",
    "distilbert": "distilbert",
    "modernbert": "modernbert",
    **dict.fromkeys(("t5", "mt5", "umt5"), "t5"),
    **dict.fromkeys(("bart", "mbart", "m2m_100"), "bart"),
}
"""Decoders and encoders with layer norms."""

SINGLE = decoders.ROTARY | CLASSIC
"""Model types without experts, latent attention or recurrent states; the others are in ``mixtures``."""


def family_of(model_type: str, quirks: tuple[str, ...] = ()) -> ModuleType:
    """The module that composes this architecture, or any in a framework that has model code of its own."""
    if "litgpt" in quirks:
        return import_module(f"{__name__}.litgpt")
    name = SINGLE.get(model_type)
    if name is not None:
        return import_module(f"{__name__}.{name}")
    module: ModuleType | None = _mixtures().MIXTURES.get(model_type)
    if module is None and model_type in _mixtures().MISSING:
        part, part_zh = _mixtures().MISSING[model_type]
        raise EstimatorError(
            f"{model_type} cannot be estimated: {part} not described here; name a model of another family",
            f"无法估算 {model_type}：{part_zh}尚未描述；请换用其他系列的模型",
            "model",
        )
    if module is None:
        raise EstimatorError(
            f"the layers of architecture {model_type[:40]!r} are not described here; name a model of another family",
            f"尚未描述 {model_type[:40]!r} 的层结构；请换用其他系列的模型",
            "model",
        )
    return module


def approximation(model_type: str) -> str | None:
    """Why the timeline of an architecture is only near the real one, in one sentence; None where it is followed."""
    table: dict[str, str] = decoders.APPROXIMATE if model_type in SINGLE else _mixtures().APPROXIMATE
    return table.get(model_type)


def spread_of(model_type: str) -> str:
    """How sure the timeline of an architecture is: exact, or near where it is composed from its closest kin."""
    return "near" if approximation(model_type) else "exact"


def _mixtures() -> ModuleType:
    return import_module(f"{__name__}.mixtures")
