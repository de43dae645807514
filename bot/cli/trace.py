"""``vram-bot trace``: a run measured on fake tensors, next to its estimate."""

import json
import warnings
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from bot import service
from bot.answers.layout import table
from bot.answers.ledger import GIB
from bot.cli import ANSWERED, WrongInput
from bot.cli.flags import options, run_fields
from bot.cli.output import show
from bot.language import language_of
from bot.problems import message_of, problem_of
from bot.texts import name_of, say, texts
from estimator.errors import EstimatorError
from estimator.schema import Estimate, Run


@click.command("trace", short_help="Measure a run on fake tensors, next to its estimate.")
@click.argument("config")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language; else the locale's.")
@click.option("--json", "as_json", is_flag=True, help="Print the traced Estimate as JSON.")
@click.option("--gpu-check", is_flag=True, help="Run the step for real on this machine's GPU instead.")
def command(config: str, lang: str | None, as_json: bool, gpu_check: bool, **values: Any) -> int:
    """Run the real step of CONFIG (a config.json, its folder, or a model's name) on fake tensors.

    Takes the flags of ``estimate``. Needs the extra: pip install 'vram-bot[trace]'; no GPU.
    """
    language = language_of("", lang)
    warnings.simplefilter("ignore")  # what libraries deprecate is no concern of who asks
    try:
        run = Run.model_validate(run_fields(values) | {"model": _model(config, language)})
        estimated = service.estimate(run)
        if gpu_check:
            text = _measured(config, run, estimated, language)
        else:
            traced = service.trace(run)
            text = traced.model_dump_json(indent=2) if as_json else _compared(config, traced, estimated, language)
    except (ValidationError, EstimatorError) as error:
        raise WrongInput(message_of(problem_of(error), language)) from None
    show(text)
    return ANSWERED


def _model(config: str, lang: str) -> str | dict[str, Any]:
    """The config in a file or folder of this name, else the name."""
    path = Path(config) / "config.json" if Path(config).is_dir() else Path(config)
    if not path.is_file():
        return config
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise WrongInput(say(lang, "trace.bad_config", path=path, detail=str(error)[:120])) from None
    if not isinstance(found, dict):
        raise WrongInput(say(lang, "trace.bad_config", path=path, detail=type(found).__name__))
    return found


def _compared(config: str, traced: Estimate, estimated: Estimate, lang: str) -> str:
    """Every phase and the peak, traced and estimated."""
    real, ours = traced.per_gpu, estimated.per_gpu
    assert real is not None and ours is not None
    own = {one.phase: one.allocated_peak for one in ours.phases}
    rows = [_row(name_of(lang, "phase", one.phase), one.allocated_peak, own.get(one.phase)) for one in real.phases]
    peak = say(lang, "trace.peak", phase=name_of(lang, "phase", real.peak_phase))
    rows.append(_row(peak, real.allocated_peak, max(own.get(one.phase, 0) for one in real.phases)))
    lines = [
        _heading("trace.heading", config, traced, lang),
        table([texts(lang)["trace"]["columns"], *rows], numeric=(1, 2, 3)),
    ]
    if "load" in own:
        lines.append(say(lang, "trace.not_traced", size=_gib(own["load"])))
    return "\n".join(lines)


def _measured(config: str, run: Run, estimated: Estimate, lang: str) -> str:
    """What a card's counters show, and the estimate."""
    real, ours = service.measure(run), estimated.per_gpu
    assert ours is not None
    rows = [
        _row(say(lang, "trace.allocated"), real.allocated, ours.allocated_peak),
        _row(say(lang, "trace.reserved"), real.reserved, ours.reserved_peak.expected),
    ]
    ran = estimated.model_copy(update={"run": estimated.run and estimated.run.model_copy(update={"stack": real.stack})})
    heading = _heading("trace.measured", config, ran, lang, card=real.card)
    return "\n".join([heading, table([texts(lang)["trace"]["measured_columns"], *rows], numeric=(1, 2, 3))])


def _heading(key: str, config: str, found: Estimate, lang: str, **more: str) -> str:
    run = found.run
    assert run is not None
    stack = ", ".join(f"{name} {version}" for name, version in (run.stack or {}).items() if version)
    way = (
        name_of(lang, "method", run.method)
        if run.task == "train" and run.method
        else name_of(lang, "task", run.task or "")
    )
    return say(lang, key, model=config, way=f"{way} {run.precision or ''}".strip(), stack=stack, **more)


def _row(name: str, real: int, ours: int | None) -> list[str]:
    if ours is None:
        return [name, _gib(real), "-", "-"]
    return [name, _gib(real), _gib(ours), f"{100 * (ours / real - 1):+.3f} %"]


def _gib(size: int) -> str:
    return f"{size / GIB:.3f} GiB"


command.params.extend(option for option in options() if option.name != "run_model")
