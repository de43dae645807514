"""How long a row may be: learned position tables end, rotary models have a context they were made for."""

from estimator.architecture import Architecture
from estimator.errors import EstimatorError
from estimator.regimes import tokens_per_row
from estimator.schema import Assumption, Largest, Run


def limit(arch: Architecture) -> int | None:
    """Tokens for which there are position embeddings; None where positions are computed."""
    return arch.max_positions if arch.positions == "learned" and arch.max_positions else None


def tokens_of(run: Run, arch: Architecture) -> int:
    """Positions that a row of the run takes: all of a training row, prompt and new tokens of a generation."""
    if run.task == "train":
        return tokens_per_row(run)
    new = 0 if arch.kind.startswith("encoder") else int(run.new_tokens or 0)
    return int(run.context_len or 0) + new


def within_limit(run: Run, assumed: list[Assumption], arch: Architecture) -> tuple[Run, list[Assumption]]:
    """The run with the lengths that were assumed cut to what a model with learned positions takes."""
    most = limit(arch)
    if most is None or tokens_of(run, arch) <= most:
        return run, assumed
    fields = {one.field for one in assumed}
    update: dict[str, int] = {}
    if run.task == "train":
        update = {"seq_len": most} if "seq_len" in fields else {}
    else:
        update = _shared_out(run, arch, fields, most)
    said = [_cut(one, update[one.field], most) if one.field in update else one for one in assumed]
    return run.model_copy(update=update), said


def _shared_out(run: Run, arch: Architecture, fields: set[str], most: int) -> dict[str, int]:
    new = 0 if arch.kind.startswith("encoder") else int(run.new_tokens or 0)
    if "context_len" in fields:
        new = min(new, most // 2) if "new_tokens" in fields else new
        update = {"context_len": max(most - new, 1)}
        return update | ({"new_tokens": new} if "new_tokens" in fields and new else {})
    return {"new_tokens": max(most - int(run.context_len or 0), 0)} if "new_tokens" in fields else {}


def _cut(one: Assumption, value: int, most: int) -> Assumption:
    if one.value == value:
        return one
    return Assumption(
        field=one.field,
        value=value,
        why=f"as much as the model's {most:,} positions leave",
        why_zh=f"该模型只有 {most:,} 个位置，按可用的最大值计算",
    )


def check_positions(run: Run, arch: Architecture) -> None:
    """Raise where a row is longer than the model's table of positions."""
    most = limit(arch)
    asked = tokens_per_row(run) if run.task == "train" else int(run.context_len or 0)
    if most is None or asked <= most:
        return
    field = "seq_len" if run.task == "train" else "context_len"
    raise EstimatorError(
        f"{arch.model_type} has learned embeddings for {most:,} positions: {asked:,} tokens in a row do not run;"
        f" ask for at most {most:,}",
        f"{arch.model_type} 只有 {most:,} 个可学习的位置嵌入，无法处理每行 {asked:,} 个 token；请改为不超过 {most:,}",
        field,
    )


def beyond_context(run: Run, arch: Architecture) -> tuple[str, int | None, str, str] | None:
    """A note where a row is longer than the context that the model was made for, or generation must stop earlier."""
    asked, most = tokens_of(run, arch), limit(arch)
    if most is not None and asked > most:
        return (
            "new_tokens",
            run.new_tokens,
            f"generation stops at {most:,} tokens: the model has no embeddings for later positions",
            f"生成到第 {most:,} 个 token 为止：该模型没有更多的位置嵌入",
        )
    if arch.positions != "rope" or not arch.max_positions or asked <= arch.max_positions:
        return None
    field = "seq_len" if run.task == "train" else "context_len"
    own = arch.max_positions
    return (
        field,
        asked,
        f"{asked:,} tokens are more than the model's own context of {own:,}: it runs, quality is another matter",
        f"{asked:,} 个 token 超过模型自身的上下文长度 {own:,}：可以运行，但效果没有保证",
    )


def capped(found: Largest, run: Run, arch: Architecture) -> tuple[Largest, list[tuple[str, int, str, str]]]:
    """The largest length, no longer than a learned table allows; a note where it exceeds a rotary model's context."""
    most = limit(arch)
    new = 0 if run.task == "train" or arch.kind.startswith("encoder") else int(run.new_tokens or 0)
    if most is not None:
        return found.model_copy(update={"seq_len": min(found.seq_len, max(most - new, 0))}), []
    own = arch.max_positions
    if arch.positions != "rope" or not own or found.seq_len + new <= own:
        return found, []
    note = (
        "max.seq_len",
        found.seq_len,
        f"memory would allow {found.seq_len:,} tokens; the model's own context is {own:,}",
        f"显存可容纳 {found.seq_len:,} 个 token；模型自身的上下文长度为 {own:,}",
    )
    return found, [note]
