"""One module per family of architectures: how its parts are put together."""

from types import ModuleType

from estimator.errors import EstimatorError
from estimator.step.families import gpt2, llama

FAMILIES: dict[str, ModuleType] = {
    "llama": llama,
    "qwen2": llama,
    "gpt2": gpt2,
}


def family_of(model_type: str) -> ModuleType:
    """The module that composes this architecture."""
    try:
        return FAMILIES[model_type]
    except KeyError:
        raise EstimatorError(f"no timeline for architecture {model_type!r} yet", field="model") from None
