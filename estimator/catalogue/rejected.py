"""What is said when a name means no model: one sentence, with the mend."""

import re
from typing import Any

from estimator.errors import EstimatorError

PATHLIKE = re.compile(r"\.\.|^[/~.\\]|\\|^[a-z]:/|//")


def is_pathlike(key: str) -> bool:
    """Whether a name looks like a path or an address; such names are never looked up further."""
    return PATHLIKE.search(key) is not None


def shown(name: Any) -> str:
    """A name as it may be repeated: short, on one line."""
    text = " ".join(str(name)[:200].split())
    return repr(text[:60] + ("…" if len(text) > 60 else ""))


def unknown_model(name: str, near: tuple[str, ...]) -> EstimatorError:
    """No model of that name; the nearest are listed."""
    hint = f"; the nearest are {', '.join(near)}" if near else ""
    hint_zh = f"，最接近的有 {'、'.join(near)}" if near else ""
    return EstimatorError(
        f"no model is known as {shown(name)}{hint}; check the spelling, give a size such as 7b, "
        "or paste its config.json",
        f"没有名为 {shown(name)} 的模型{hint_zh}；请检查拼写、给出规模（如 7b），或粘贴它的 config.json",
        field="model",
    )


def no_such_size(size: str, near: list[str]) -> EstimatorError:
    """A bare size without a stand-in."""
    return EstimatorError(
        f"no model stands in for the size {shown(size)}; the nearest sizes are {', '.join(near)}, "
        "or name the model or paste its config.json",
        f"没有可代表 {shown(size)} 的模型；最接近的规模有 {'、'.join(near)}，也可给出模型名或粘贴 config.json",
        field="model",
    )


def not_a_model(value: Any) -> EstimatorError:
    """Neither a name nor a config object."""
    return EstimatorError(
        f"a model is a name or a config.json object, not {type(value).__name__}",
        "模型应为名称或 config.json 对象",
        field="model",
    )
