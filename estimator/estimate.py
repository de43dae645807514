"""Run in, estimate out: what one card holds over a training step or a generation."""

from estimator import card, frameworks, positions
from estimator.alternatives import alternatives, packing
from estimator.breakdown import at_peak
from estimator.caches import at_the_end
from estimator.catalogue import GpuMatch, ModelMatch, find_gpu, find_model, weight_format
from estimator.defaults import Facts, filled
from estimator.downgrades.around import Around, Outcome
from estimator.errors import EstimatorError
from estimator.evaluation import evaluation_note
from estimator.host import host_notes, host_of
from estimator.largest import largest_that_fit
from estimator.notes import notes_on
from estimator.schema import Assumption, Estimate, PerGpu, PhasePeak, Range, Run, Verdict
from estimator.scope import check_scope
from estimator.serving.engines import is_served
from estimator.serving_memory import serving_of
from estimator.setting import Peak, Setting, peak_of, setting_of
from estimator.stack import LOADINGS, with_packed_experts, with_stack
from estimator.stages.generation import online_of
from estimator.stages.reading import as_stage, with_lengths
from estimator.step.families import spread_of
from estimator.stored import native_format
from estimator.surroundings import counted, with_surroundings

GIB = 1 << 30
UNGROUPED, GROUPED = "gptq-4bit-g-1", "gptq-4bit-g128"


def estimate(run: Run, others: bool = False, explain: bool = False, steps: bool = True) -> Estimate:
    """The estimate of one run; with ``others``, also what the other choice would need where one was assumed.

    With ``explain``, every phase has its blocks, not the peak's alone; without ``steps``, what does not fit is not
    searched for changes.

    Raises ``EstimatorError`` with one sentence when the run cannot be estimated.
    """
    gpu = card_of(run)
    model = find_model(run.model)
    usable = usable_bytes(run, gpu) if gpu is not None else None
    complete, assumptions = completed(with_format(run, model), model, gpu)
    check_scope(complete, model)
    if is_served(complete):
        return _served(run, complete, model, assumptions, steps)
    setting = definite(complete, model, gpu)
    peak = peak_of(setting)
    sizes = sizes_of(setting, peak, gpu)
    per_gpu = per_card(setting, peak, sizes)
    if explain:
        per_gpu.phases = explained(setting, peak, sizes.workspace)
    result = Estimate(
        id=None, run=complete, assumptions=assumptions, notes=notes_on(complete, model, gpu, setting), per_gpu=per_gpu,
        serving=serving_of(setting, peak, per_gpu), host=host_of(complete, setting, peak),
    )  # fmt: skip
    result.notes = host_notes(complete, result.host) + result.notes
    if others:
        packed = None if (run.stack or {}).get("transformers") else with_packed_experts(complete, model.architecture)
        older = packing(run.stack, definite(packed, model, gpu).regime) if packed else None
        result.alternatives = alternatives(setting, older, assumptions, lambda other: measured(other, gpu, usable))
    if (evaluating := evaluation_note(complete, setting, peak)) is not None:
        result.notes.append(Assumption(field="details", value=evaluating[0], why=evaluating[1], why_zh=evaluating[2]))
    if gpu is not None and usable is not None:
        result.fit = card.fit(per_gpu.device_peak, usable)
        result.max, beyond = positions.capped(
            largest_that_fit(setting, most_live(setting, sizes, usable), peak.live), complete, setting.arch
        )
        result.notes += [Assumption(field=one[0], value=one[1], why=one[2], why_zh=one[3]) for one in beyond]
        if steps and result.fit.verdict != "fits":
            from estimator.downgrades.lowered import lowered

            shown = card.on_device(sizes, spread_around(setting))
            found = Outcome(sizes.allocated, shown, result.fit.verdict, tuple(peak.phases.values()), result.host.ram)
            result.downgrades, result.plan = lowered(run, complete, found, around_of(model, gpu))
    return result


def definite(complete: Run, model: ModelMatch, gpu: GpuMatch | None) -> Setting:
    """The setting of a filled run on its card."""
    setting = setting_of(complete, model.architecture)
    total = gpu.usable_low if gpu is not None else None
    return setting._replace(online=online_of(complete, setting.arch, total))


def around_of(model: ModelMatch, gpu: GpuMatch) -> Around:
    """A model on a card, with the estimator's own ways."""
    return Around(
        arch=model.architecture,
        gpu=gpu,
        refill=lambda run: refilled(run, model),
        measure=lambda run: outcome_of(run, model),
    )


def refilled(run: Run, model: ModelMatch) -> Run:
    """A changed run with every default."""
    gpu = card_of(run)
    complete, said = completed(with_format(run, model), model, gpu)
    if not is_served(complete):
        return complete
    from estimator.serving.defaults import with_engine_defaults

    usable = usable_bytes(run, gpu) if gpu is not None else None
    return with_engine_defaults(complete, model.architecture, gpu, usable, said)[0]


def outcome_of(run: Run, model: ModelMatch) -> Outcome | None:
    """What a filled run comes to on its card; None where it is refused or the host's memory is too small for it."""
    try:
        check_scope(run, model)
        gpu = card_of(run)
        if gpu is not None and is_served(run):
            from estimator.serving.report import outcome as serving_outcome

            return serving_outcome(run, model.architecture, gpu, usable_bytes(run, gpu))
        setting = definite(run, model, gpu)
    except EstimatorError:
        return None
    peak = peak_of(setting)
    host = host_of(run, setting, peak).ram
    if run.host_ram_gib is not None and host > run.host_ram_gib * GIB:
        return None
    sizes = sizes_of(setting, peak, gpu)
    shown = card.on_device(sizes, spread_around(setting))
    usable = usable_bytes(run, gpu) if gpu is not None else 0
    verdict = card.verdict_of(shown[1], shown[2], usable) if gpu is not None else None
    return Outcome(sizes.allocated, shown, verdict, tuple(peak.phases.values()), host, usable)


def _served(run: Run, complete: Run, model: ModelMatch, assumptions: list[Assumption], steps: bool) -> Estimate:
    """The estimate of a run of a serving engine, whose memory has rules of its own."""
    from estimator.serving.defaults import with_engine_defaults
    from estimator.serving.report import outcome, serving_estimate

    gpu, arch = card_of(run), model.architecture
    usable = usable_bytes(run, gpu) if gpu is not None else None
    complete, assumptions = with_engine_defaults(complete, arch, gpu, usable, assumptions)
    result = with_notes(serving_estimate(complete, arch, gpu, usable, assumptions), model, gpu)
    result.notes = host_notes(complete, result.host) + result.notes
    if steps and gpu is not None and usable is not None and result.fit.verdict != "fits":
        found = outcome(complete, arch, gpu, usable)
        if found is not None:
            from estimator.downgrades.lowered import lowered

            result.downgrades, result.plan = lowered(run, complete, found, around_of(model, gpu))
    return result


def with_notes(result: Estimate, model: ModelMatch, gpu: GpuMatch | None) -> Estimate:
    """The estimate of a serving engine with what is to be said of model and card."""
    about = [("model", model.id, model.note, model.note_zh)] if model.note else []
    about += [("gpu", gpu.name, gpu.note, gpu.note_zh)] if gpu is not None and gpu.note else []
    result.notes += [Assumption(field=one[0], value=one[1], why=one[2], why_zh=one[3]) for one in about]
    return result


def completed(run: Run, model: ModelMatch, gpu: GpuMatch | None) -> tuple[Run, list[Assumption]]:
    """The run with every default, and the assumptions made."""
    framework = frameworks.canonical(run.framework) if run.framework else run.framework
    if framework != run.framework:
        run = run.model_copy(update={"framework": framework})
    run, said = _with_trainer(run, model)
    complete, assumptions = filled(as_stage(counted(run)), facts_of(model, gpu, run))
    assumptions = said + assumptions
    complete, assumptions = with_lengths(complete, assumptions, model.architecture)
    complete, assumptions = positions.within_limit(complete, assumptions, model.architecture)
    complete, around = with_surroundings(complete)
    complete, versions = with_stack(complete)
    return complete, assumptions + around + versions


def _with_trainer(run: Run, model: ModelMatch) -> tuple[Run, list[Assumption]]:
    """The run of an encoder-decoder with a trainer that takes it, and what that assumes."""
    if model.architecture.kind != "encoder-decoder":
        return run, []
    from estimator.two_stacks import begun

    return begun(run)


def with_format(run: Run, model: ModelMatch) -> Run:
    """The run with its weight format, or the upload's, as the catalogue names it; a plain type is the precision."""
    native = model.how == "config" and native_format(model) is not None
    given = run.weight_format or (None if native else model.weight_format)
    if not given:
        return run
    found = weight_format(given)
    if model.weight_format == UNGROUPED and found.name == GROUPED:
        found = weight_format(UNGROUPED)  # groups of 128 may be what "gptq" was read as: the file decides
    if found.scheme == "plain":
        return run.model_copy(update={"weight_format": None, "precision": run.precision or found.name})
    return run if found.name == run.weight_format else run.model_copy(update={"weight_format": found.name})


def measured(setting: Setting, gpu: GpuMatch | None, usable: int | None) -> tuple[int, Range, Verdict | None]:
    """Allocated peak, device range and verdict of a setting."""
    sizes = sizes_of(setting, peak_of(setting), gpu)
    around = spread_around(setting)
    shown = card.device(card.reserved(sizes, around), around)
    return sizes.allocated, shown, card.fit(shown, usable).verdict if usable is not None else None


def card_of(run: Run) -> GpuMatch | None:
    """The card asked about; of several, the one with the least memory."""
    if run.gpu is None:
        return None
    names = [run.gpu] if isinstance(run.gpu, str) else run.gpu
    return min((find_gpu(name) for name in names), key=lambda match: match.usable_low)


def facts_of(model: ModelMatch, gpu: GpuMatch | None, run: Run) -> Facts:
    """What the defaults depend on besides the run."""
    quantised = run.weight_format is not None or run.method == "qlora"
    gguf = run.weight_format is not None and weight_format(run.weight_format).scheme.startswith("gguf")
    return Facts(model.default_dtype, quantised, gpu.bf16 if gpu is not None else None, gguf, native_format(model))


def usable_bytes(run: Run, gpu: GpuMatch) -> int:
    """The card's real total less what others use."""
    left = gpu.usable_low - int((run.reserved_by_others_gib or 0) * GIB)
    if left <= 0:
        others, total = f"{run.reserved_by_others_gib:g}", f"{gpu.usable_low / GIB:.1f}"
        raise EstimatorError(
            f"reserved_by_others_gib {others} leaves nothing of the {total} GiB of {gpu.name}; give what others use",
            f"reserved_by_others_gib {others} 已达到 {gpu.name} 的全部 {total} GiB；请填写其他程序占用的部分",
            "reserved_by_others_gib",
        )
    return left


def sizes_of(setting: Setting, peak: Peak, gpu: GpuMatch | None) -> card.Sizes:
    """Static, dynamic and workspace bytes at the peak."""
    capability = (gpu.compute_capability or None) if gpu else None
    workspace = card.workspace_bytes(capability, setting.regime.training)
    static = peak.base.weights.base if peak.phase == "load" else peak.base.total
    return card.Sizes(static, peak.live - static, workspace)


def spread_around(setting: Setting) -> card.Spread:
    """How far the truth may lie from the estimate."""
    regime = setting.regime
    sureness = "near" if "near" in regime.quirks else spread_of(setting.arch.model_type)
    if sureness == "exact":
        sureness = "inference" if not regime.training else "stated" if "stated" in regime.quirks else "exact"
    loading = next((name for name in LOADINGS if name in regime.quirks), "")
    return card.spread(sureness, regime_name(setting), loading)


def most_live(setting: Setting, sizes: card.Sizes, usable: int) -> int:
    """Live bytes with which the run still fits."""
    return sizes.static + card.most_dynamic(usable, sizes, spread_around(setting))


def regime_name(setting: Setting) -> str:
    """Which residuals describe this setting."""
    regime = setting.regime
    if not regime.training:
        return "inference"
    kind = "quantised" if regime.quantised else "adapter" if regime.adapter else "full"
    if setting.layout.engine == "fsdp1" and setting.layout.shards > 1:
        return f"{kind}-fsdp1"
    return kind if regime.checkpointing == "none" else f"{kind}-checkpointed"


def per_card(setting: Setting, peak: Peak, sizes: card.Sizes) -> PerGpu:
    """Everything that one card holds; between the steps of a generation its cache stays."""
    around = spread_around(setting)
    held = card.reserved(sizes, around)
    steady = peak.steady + sizes.workspace
    if not setting.regime.training:
        steady = min(steady + at_the_end(setting, peak).bytes, sizes.allocated)
    return PerGpu(
        allocated_peak=sizes.allocated, reserved_peak=held, device_peak=card.device(held, around),
        interval=card.interval(sizes, around), peak_phase=peak.phase, phases=_phases(peak, sizes.workspace),
        at_peak=at_peak(setting, peak, sizes.workspace), steady=steady,
    )  # fmt: skip


def explained(setting: Setting, peak: Peak, extra: int) -> list[PhasePeak]:
    """Every phase with the blocks that live at its own peak."""
    alone = {name: peak._replace(phases={name: size}) for name, size in peak.phases.items()}
    return [
        PhasePeak(phase=one.phase, allocated_peak=one.allocated_peak, blocks=at_peak(setting, alone[one.phase], extra))
        for one in _phases(peak, extra)
    ]


def _phases(peak: Peak, extra: int) -> list[PhasePeak]:
    return [PhasePeak(phase=name, allocated_peak=size + extra) for name, size in peak.phases.items()]
