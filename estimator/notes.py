"""What the reader must be told besides the numbers: stand-ins, approximations, cards that lack a type, versions."""

from estimator.approximations import in_chinese
from estimator.catalogue import GpuMatch, ModelMatch
from estimator.expert_notes import expert_notes
from estimator.frameworks import is_known, unknown_note
from estimator.inexact import inexact_modes
from estimator.parallel.words import layout_notes
from estimator.positions import beyond_context
from estimator.regimes import adapted
from estimator.schema import Assumption, Run
from estimator.setting import Setting
from estimator.stages.words import stage_notes
from estimator.step.families import approximation
from estimator.stored import dequantised_note
from estimator.targets_check import unmatched, unmatched_note


def notes_on(run: Run, model: ModelMatch, gpu: GpuMatch | None, setting: Setting) -> list[Assumption]:
    """Notes in the order in which they matter."""
    notes = []
    if model.note:
        notes.append(_note("model", model.id, model.note, model.note_zh))
    reason = approximation(setting.arch.model_type)
    if reason:
        notes.append(_note("model", setting.arch.model_type, f"approximation: {reason}", f"近似：{in_chinese(reason)}"))
    if gpu is not None and gpu.note:
        notes.append(_note("gpu", gpu.name, gpu.note, gpu.note_zh))
    notes += [_note(*mode) for mode in inexact_modes(run)]
    notes += [_note(*text) for text in stage_notes(run, setting)]
    notes += [_note(*text) for text in expert_notes(run, setting)]
    notes += _type_notes(run, gpu)
    notes += _run_notes(run, model, setting)
    notes += [_note(*text) for text in layout_notes(run, setting)]
    if setting.at.source:
        from estimator import two_stacks

        notes += [_note(*text) for text in two_stacks.notes(run, setting.arch)]
    return notes


def _run_notes(run: Run, model: ModelMatch, setting: Setting) -> list[Assumption]:
    """What is odd about the run itself: framework, stored format, targets, length."""
    notes = []
    if run.framework and not is_known(run.framework):
        notes.append(_note("framework", run.framework, *unknown_note(run.framework)))
    if (stored := dequantised_note(run, model)) is not None:
        notes.append(_note("weight_format", run.weight_format, *stored))
    missing = unmatched(run, setting.arch) if run.task == "train" and adapted(run) else ()
    if missing:
        notes.append(_note("adapter.targets", list(missing), *unmatched_note(missing)))
    if (beyond := beyond_context(run, setting.arch)) is not None:
        notes.append(_note(*beyond))
    return notes


def _type_notes(run: Run, gpu: GpuMatch | None) -> list[Assumption]:
    if gpu is None or gpu.bf16 or "bf16" not in str(run.precision):
        return []
    instead = "amp-fp16" if str(run.precision).startswith("amp") else "fp16"
    return [
        _note(
            "precision",
            run.precision,
            f"{gpu.name} has no bf16: PyTorch emulates it slowly; use {instead}, which takes the same memory",
            f"{gpu.name} 不支持 bf16（只能慢速模拟）；请改用 {instead}，显存占用相同",
        )
    ]


def _note(field: str, value: object, why: str, why_zh: str) -> Assumption:
    return Assumption(field=field, value=value, why=why, why_zh=why_zh)
