"""Which packages a trace needs, and what to install where one is missing."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from bot.tracing.plan import Plan
from estimator.errors import EstimatorError

BITSANDBYTES = ("adamw-", "lion", "ademamix")
TRACED = ("torch", "transformers", "peft", "trl", "bitsandbytes")


def needed(plan: Plan) -> list[str]:
    """The packages whose code a plan runs."""
    names = ["torch", "transformers"]
    names += ["peft"] if plan.rank else []
    names += ["bitsandbytes"] if plan.weight_format or plan.optimizer.startswith(BITSANDBYTES) else []
    names += ["trl"] if plan.loss == "chunked" else []
    return names


def check(plan: Plan) -> None:
    """Raise an EstimatorError that names what is missing."""
    missing = [name for name in needed(plan) if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        raise EstimatorError(
            f"this trace runs {names}, not installed here: pip install 'vram-bot[trace]' "
            "(install a CPU build of torch first to do without the CUDA libraries)",
            f"此次跟踪需要运行 {names}，当前未安装：pip install 'vram-bot[trace]'（先装 CPU 版 torch 可免去 CUDA 库）",
        )


def versions() -> dict[str, str | None]:
    """The versions that ran."""
    return {name: _version(name) for name in TRACED}


def _version(name: str) -> str | None:
    try:
        return version(name).split("+")[0]
    except PackageNotFoundError:
        return None
