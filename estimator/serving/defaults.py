"""What an engine takes for a context that was not given: the model's own, or as much as starts."""

from estimator.architecture import Architecture
from estimator.catalogue import GpuMatch
from estimator.schema import Assumption, Run
from estimator.serving.engines import MODULES
from estimator.serving.facts import GIB, facts
from estimator.serving.memory import note
from estimator.serving.plan import Plan, plan_of
from estimator.serving.solve import fits, largest

OURS = 8192
STEP = 1024
OLLAMA_FORMAT = "Q4_K_M"
HALF = "fp16"
UNUSED = ("framework", "attention", "logits", "precision", "micro_batch")
"""Assumptions about transformers that say nothing of an engine."""


def with_engine_defaults(
    run: Run, arch: Architecture, gpu: GpuMatch | None, usable: int | None, said: list[Assumption]
) -> tuple[Run, list[Assumption]]:
    """The run with the engine's own context and format in place of what was assumed before."""
    if run.engine not in MODULES:
        return run, said
    run, said = _named(run, said)
    if run.engine == "ollama" and run.weight_format is None:
        run = run.model_copy(update={"weight_format": OLLAMA_FORMAT})
        said = [*said, _ollama_format()]
    if not any(one.field == "context_len" for one in said):
        return run, said
    length, why = _length(run, arch, gpu, usable)
    kept = [one for one in said if one.field != "context_len"]
    return run.model_copy(update={"context_len": length}), [*kept, why]


def _named(run: Run, said: list[Assumption]) -> tuple[Run, list[Assumption]]:
    """The engine is the framework; what transformers would do is no reason here."""
    if any(one.field == "framework" for one in said):
        run = run.model_copy(update={"framework": run.engine})
    kept = [one for one in said if one.field not in UNUSED]
    if run.weight_format is None and any(one.field == "precision" for one in said):
        run, why = _type(run)
        kept.append(why)
    return run, kept


def _type(run: Run) -> tuple[Run, Assumption]:
    """The published type, but no engine keeps fp32 unless told (vLLM's and SGLang's ``auto``, GGUF conversions)."""
    if run.precision != "fp32":
        return run, note("precision", run.precision, "the type of the published weights", "发布权重的类型")
    run = run.model_copy(update={"precision": HALF})
    return run, note(
        "precision", HALF, "published in fp32, which engines turn to 16 bit", "发布为 fp32，引擎会转成 16 位"
    )


def _ollama_format() -> Assumption:
    return note(
        "weight_format", OLLAMA_FORMAT, "Ollama's tags are Q4_K_M unless they say otherwise", "Ollama 标签默认为 Q4_K_M"
    )


def _length(run: Run, arch: Architecture, gpu: GpuMatch | None, usable: int | None) -> tuple[int, Assumption]:
    own = arch.max_positions or OURS
    if run.engine == "ollama":
        length = min(own, _ollama_context(gpu))
        return length, note(
            "context_len", length, "Ollama's num_ctx for this card's memory", "Ollama 按显存选取的 num_ctx"
        )
    if gpu is None or usable is None:
        length = min(own, OURS)
        return length, note("context_len", length, f"ours: {length:,} tokens", f"本工具的默认值：{length:,} 个 token")
    plan = plan_of(run.model_copy(update={"context_len": own}), arch, gpu).least
    if fits(plan, usable):
        return own, note(
            "context_len", own, f"{run.engine}'s default: the model's own", f"{run.engine} 默认：模型自身的长度"
        )
    length = _longest(plan, usable, min(own, OURS))
    return length, note(
        "context_len",
        length,
        f"ours: {run.engine} takes the model's own {own:,} tokens if not told, which does not start here",
        f"本工具的取值：{run.engine} 默认用模型自身的 {own:,} 个 token，在此无法启动",
    )


def _longest(plan: Plan, usable: int, most: int) -> int:
    """The longest context up to ``most`` that starts, in whole thousands; ``most`` where not even one does."""
    steps = largest(lambda count: fits(plan._replace(length=count * STEP), usable), most // STEP)
    return steps * STEP or most


def _ollama_context(gpu: GpuMatch | None) -> int:
    memory = gpu.nominal_gb if gpu else 0
    table: list[list[int]] = facts()["ollama"]["contexts"]
    return [tokens for least, tokens in table if least <= memory or memory * 1e9 >= least * GIB][-1]
