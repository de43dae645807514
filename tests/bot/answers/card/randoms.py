"""Random answers: real estimates of random runs, then whatever users and the estimator could put into them."""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from bot import service
from bot.answer import Answer
from bot.answers.render import rendered
from bot.intake.doubts import Doubt
from bot.intake.runs import with_facts
from estimator.errors import EstimatorError
from estimator.schema import Assumption, Estimate, Fit, Plan, Problem, Step
from tests.conftest import GIB

MODELS = ("0.5b", "qwen2.5-7b", "llama-3.1-8b", "qwen2.5-72b", "mixtral-8x7b", "gpt2", "deepseek-v2-lite")
TASKS: tuple[dict[str, Any], ...] = (
    {"method": "full"}, {"method": "lora"}, {"method": "qlora"}, {"method": "full", "precision": "amp-bf16"},
    {"method": "lora", "gradient_checkpointing": "none", "loss": "standard"}, {"task": "infer", "context_len": 8192},
    {"task": "infer", "weight_format": "Q4_K_M", "engine": "llama.cpp"},
    {"task": "serve", "engine": "vllm", "concurrency": 8}, {"method": "lora", "stage": "dpo"},
)  # fmt: skip
CARDS: tuple[dict[str, Any], ...] = (
    {}, {"gpu": "8GB"}, {"gpu": "RTX 4090"}, {"gpu": "H100", "gpu_count": 8}, {"gpu": "RTX 3090", "gpu_count": 2},
    {"gpu": ["RTX 3090", "RTX 4090"]}, {"gpu": "V100 16GB"},
)  # fmt: skip
HOSTILE = (
    "@everyone", "<@123456789012345678>", "```", "``` end", "**bold** _it_ ~~no~~ ||spoiler||",
    "[x](https://evil.example)", "\u202e\u0000\x1b[31m", "### heading\n> quote\n- list",
    "超长的名字" * 60, "a" * 500, "😀" * 90, "</text><script>",
    "-# small", "1. list", "{braces} {0} %s", "\n\n\n", "x`y`z", "",
)  # fmt: skip


@cache
def pool() -> list[tuple[dict[str, Any], Estimate]]:
    """Runs across models, tasks and cards with their estimates; what cannot be estimated is among them."""
    drawn = Random(7)
    found = []
    for model in MODELS:
        for task in TASKS:
            run = {"model": model, **task, **drawn.choice(CARDS), "micro_batch": drawn.choice((1, 1, 4, 64))}
            found.append((with_facts(run), _estimate(run)))
    return found


def _estimate(run: dict[str, Any]) -> Estimate:
    try:
        return service.estimate(service.run_of(run), others=True)
    except EstimatorError as error:
        return Estimate(error=Problem(field=error.field, message=error.message, message_zh=error.message_zh))


def random_answer(seed: int) -> Answer:
    """The answer with a number; the same every time."""
    drawn = Random(seed)
    count = drawn.choice((1,) * 12 + (2, 3, 7, 20))
    pairs = [_spoiled(drawn, *drawn.choice(pool())) for _ in range(count)]
    estimates = [found for _, found in pairs]
    answer = Answer(
        lang=drawn.choice(("en", "zh")),
        reply=drawn.choice(("answer",) * 8 + ("clarify", "refuse")),
        question=drawn.choice(("fit", "fit", "need_memory", "compare", "cost", "help")),
        runs=[run for run, _ in pairs],
        estimates=estimates,
        missing=drawn.sample(["model", "method", "task", "gpu", "samples"], drawn.randrange(3)),
        invalid=drawn.sample(["micro_batch", "seq_len", "rank"], drawn.choice((0, 0, 1))),
        smallest_card_gb=[drawn.choice((None, 8, 80)) if not one.fit.verdict else None for one in estimates],
        unknown_family=drawn.choice(("", "", drawn.choice(HOSTILE))),
    )
    doubts = [_doubt(drawn)] * drawn.choice((0, 1, 3))
    return answer if answer.reply == "answer" else rendered(answer, doubts)


def _doubt(drawn: Random) -> Doubt:
    near = tuple(drawn.sample(["adamw", "sgd", "lion", "x" * 40], drawn.randrange(4)))
    return Doubt(
        drawn.choice(("value", "option", "closed")), drawn.choice(("optimizer", "method")), _words(drawn), near
    )


def _words(drawn: Random) -> str:
    return " ".join(drawn.choice(HOSTILE) for _ in range(drawn.randrange(1, 4)))


def _spoiled(drawn: Random, run: dict[str, Any], found: Estimate) -> tuple[dict[str, Any], Estimate]:
    """A run and its estimate with hostile names, many assumptions and notes, sizes beyond reason, steps and plans."""
    changes: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: run.update(model=_words(drawn), resolved_model=None) or {},
        lambda: run.update(gpu=[_words(drawn)] * drawn.choice((1, 12)), gpu_count=drawn.choice((1, 4096))) or {},
        lambda: run.update(micro_batch=1_000_000, seq_len=100_000_000) or {},
        lambda: {"assumptions": [*found.assumptions, *(_assumption(drawn) for _ in range(drawn.choice((3, 40))))]},
        lambda: {"notes": [_assumption(drawn) for _ in range(drawn.choice((1, 30)))]},
        lambda: _steps(drawn),
        lambda: _steps(drawn),
        lambda: _resized(drawn, found),
        lambda: {"fit": Fit(verdict="tight", usable=drawn.choice((1, 24 * GIB)))},
    )
    run, updates = dict(run), {}
    for change in drawn.sample(changes, drawn.randrange(5)):
        updates.update(change())
    return run, found.model_copy(update=updates)


def _assumption(drawn: Random) -> Assumption:
    field = drawn.choice(("optimizer", "framework", "precision", "seq_len", "loss", "odd_field"))
    value = drawn.choice((True, None, 7, 1.5, _words(drawn), {"a": {"b": _words(drawn)}}, [1, 2]))
    return Assumption(field=field, value=value, why=_words(drawn), why_zh=drawn.choice(("", _words(drawn))))


def _steps(drawn: Random) -> dict[str, Any]:
    """Up to twenty steps, and a plan of some of them."""
    steps = [_step(drawn, number) for number in range(drawn.choice((1, 5, 20)))]
    chain = steps[: drawn.randrange(6)]
    plan = Plan(
        steps=[one.id for one in chain],
        chain=drawn.choice((chain, [])),
        allocated_peak=steps[-1].allocated_peak,
        verdict=drawn.choice(("fits", "tight")),
        commands=[_words(drawn) for _ in range(drawn.choice((0, 1, 60)))],
    )
    return {"downgrades": steps, "plan": plan if chain else None}


def _step(drawn: Random, number: int) -> Step:
    return Step(
        id=f"step-{number}",
        title=_words(drawn),
        title_zh=drawn.choice(("", _words(drawn))),
        note=drawn.choice(("", _words(drawn))),
        change={"micro_batch": 1},
        allocated_peak=drawn.randrange(2**45),
        saves=drawn.randrange(1, 2**45),
        speed_cost=drawn.choice(("none", "small", "medium", "large")),
        quality_cost=drawn.choice(("none", "small", "medium")),
        money_cost=drawn.choice(("none", "small", "medium", "large")),
        verdict=drawn.choice((None, "fits", "does_not_fit")),
        commands=[_words(drawn) for _ in range(drawn.choice((0, 1, 9)))],
    )


def _resized(drawn: Random, found: Estimate) -> dict[str, Any]:
    """Sizes from nothing to beyond any machine."""
    if not found.per_gpu:
        return {}
    factor = drawn.choice((0, 1e-6, 1e6))
    blocks = [one.model_copy(update={"bytes": int(one.bytes * factor)}) for one in found.per_gpu.at_peak]
    total = sum(block.bytes for block in blocks)
    return {"per_gpu": found.per_gpu.model_copy(update={"at_peak": blocks, "allocated_peak": total})}
