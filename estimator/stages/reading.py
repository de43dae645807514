"""What a run says about its stage, put where the defaults look for it, and what follows from the defaults."""

from estimator.architecture import Architecture
from estimator.schema import Assumption, Preference, ReinforcementLearning, Run
from estimator.stages.rows import ONLINE, OWN_STEP, rows_per_item
from estimator.vision.held import seen_by

PROMPT = 512
"""Tokens of a prompt where only the length of its completions is known."""


def as_stage(run: Run) -> Run:
    """A stage means training; an engine beside an online stage is the one that generates; beta asks for a reference."""
    if run.stage is None or run.task not in (None, "train"):
        return run
    update: dict[str, object] = {"task": "train"} if run.task is None else {}
    if run.stage in ONLINE and run.engine is not None:
        online = run.rl or ReinforcementLearning()
        update |= {"engine": None, "rl": online.model_copy(update={"engine": online.engine or run.engine})}
    if run.stage == "grpo" and _beta(run) > 0 and (run.preference is None or run.preference.reference is None):
        wanted = "adapter-off" if run.method in ("lora", "dora", "qlora") else "model"
        update["preference"] = (run.preference or Preference()).model_copy(update={"reference": wanted})
    return run.model_copy(update=update) if update else run


def _beta(run: Run) -> float:
    value = (run.details or {}).get("beta")
    return float(value) if isinstance(value, int | float) else 0.0


def with_lengths(run: Run, assumed: list[Assumption], arch: Architecture) -> tuple[Run, list[Assumption]]:
    """Rows long enough for images, prompt and completion, no mask for a single row, where these were assumed."""
    changed = _with_images(run, arch)
    if run.task == "train" and run.stage in (*OWN_STEP, *ONLINE):
        changed |= _of_stage(run)
    fields = {one.field for one in assumed} & set(changed) if changed else set()
    if not fields:
        return run, assumed
    update = {name: changed[name].value for name in fields}
    return run.model_copy(update=update), [changed[one.field] if one.field in fields else one for one in assumed]


def _with_images(run: Run, arch: Architecture) -> dict[str, Assumption]:
    """A row that holds its images and a prompt beside them."""
    found = seen_by(run, arch) if run.vision is not None else None
    tokens = found.features * run.vision.images if found is not None and run.vision is not None else 0
    field = "seq_len" if run.task == "train" else "context_len"
    length = run.seq_len if run.task == "train" else run.context_len
    if not isinstance(length, int) or tokens + PROMPT <= length:
        return {}
    return {
        field: Assumption(
            field=field,
            value=tokens + PROMPT,
            why=f"ours: the row's images ({tokens:,} tokens) and {PROMPT} tokens of text",
            why_zh=f"本工具的默认值：该行图像（{tokens:,} 个 token）加 {PROMPT} 个 token 的文本",
        )
    }


def _of_stage(run: Run) -> dict[str, Assumption]:
    changed = {}
    completion = (run.rl.max_completion_len or 0) if run.stage in ONLINE and run.rl else 0
    if isinstance(run.seq_len, int) and completion >= run.seq_len:
        changed["seq_len"] = Assumption(
            field="seq_len",
            value=completion + PROMPT,
            why=f"ours: a prompt of {PROMPT} tokens and the completion",
            why_zh=f"本工具的默认值：{PROMPT} 个 token 的提示加上回答",
        )
    if run.attention_mask_4d and (run.micro_batch or 1) * rows_per_item(run) == 1:
        changed["attention_mask_4d"] = Assumption(
            field="attention_mask_4d", value=False, why="a single row has no padding", why_zh="只有一行，无需填充"
        )
    return changed
