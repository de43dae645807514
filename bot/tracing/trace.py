"""A run in, an Estimate out, its bytes counted while the real code runs on fake tensors."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from bot.tracing import guard, packages
from bot.tracing.plan import Plan, plan_of
from estimator import card
from estimator.catalogue import find_model
from estimator.catalogue.rows import model_ids, model_row
from estimator.errors import EstimatorError
from estimator.estimate import card_of, definite, estimate, spread_around, usable_bytes
from estimator.inventory import inventory
from estimator.schema import Assumption, Block, Estimate, PerGpu, Phase, PhasePeak, Run
from estimator.serving.engines import is_served
from estimator.setting import Setting

if TYPE_CHECKING:
    from bot.tracing.tracker import High, Tracker

PHASES: tuple[Phase, ...] = ("forward", "loss", "backward", "optimizer_step", "prefill", "decode")
WHY = ("traced: live tensors, blocks of 512 B", "跟踪所得：存活的张量，按 512 字节取整")
WORKSPACE = ("cuBLAS workspaces, which no trace on fake tensors sees", "cuBLAS 工作区，假张量跟踪无法看到")


def trace(run: Run) -> Estimate:
    """What one run needs, traced. Loading is not traced: its phase is left out. Raises EstimatorError."""
    complete, setting, plan = read(run)
    guard.load()
    tracker = _followed(plan, _parameters(setting))
    stack = {**(complete.stack or {}), **packages.versions()}
    return _filled(Estimate(run=complete.model_copy(update={"stack": stack})), tracker, setting, run)


def _followed(plan: Plan, parameters: int) -> "Tracker":
    """As ``followed``; library code that cannot run so is told in one sentence."""
    try:
        return followed(plan, parameters)
    except EstimatorError:
        raise
    except Exception as error:
        kind, detail = plan.config.get("model_type"), f"{type(error).__name__}: {error}".split("\n")[0][:160]
        raise EstimatorError(
            f"the code of {kind} does not run this way, or not on fake tensors ({detail}); the estimate stands alone",
            f"{kind} 的代码无法以这种方式（或在假张量上）运行（{detail}）；只能给出估算",
        ) from error


def _parameters(setting: Setting) -> int:
    """Parameters as the estimate counts them, without what transformers registers as buffers."""
    parts = inventory(setting.arch)
    weights = [*parts.stem, *parts.top, *(weight for index in parts.layers for weight in parts.kinds[index].weights)]
    return sum(weight.numel for weight in weights if weight.role != "buffer")


def read(run: Run) -> tuple[Run, Setting, Plan]:
    """The run with every default, what it means, and the plan of its step. Raises EstimatorError."""
    complete = estimate(run).run
    assert complete is not None
    if is_served(complete):
        raise EstimatorError(
            "the tracer runs transformers: ask for engine hf",
            "跟踪器运行的是 transformers：请设 engine 为 hf",
            "engine",
        )
    setting = definite(complete, find_model(run.model), card_of(run))
    target = setting.at.length if setting.at.source else 0
    plan = plan_of(complete, setting.regime, config_for(run.model), target)
    packages.check(plan)
    return complete, setting, plan


def config_for(model: str | dict[str, Any]) -> dict[str, Any]:
    """The config.json of a model of the catalogue, or the one given."""
    if isinstance(model, dict):
        return model
    name = find_model(model).id
    if name not in model_ids():
        raise EstimatorError(
            f"no config.json is known for {name}: give its path", f"没有 {name} 的 config.json：请给出路径"
        )
    return model_row(name).config


def followed(plan: Plan, parameters: int | None = None) -> "Tracker":
    """The tracker after the run. With ``parameters``, a model of another size than the catalogue's is refused."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from bot.tracing import fakes, models, step, tracker

    fakes.prepare()
    torch.manual_seed(0)
    with ExitStack() as around:
        around.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        model = models.built(plan, models.config_of(plan))
        _same_size(model, parameters)
        with fakes.plain_modules():
            model = models.adapted(plan, model)
        vocab = model.config.get_text_config().vocab_size
        sizes = (plan.batch * ((plan.target or plan.length) - shift) * vocab for shift in (0, 1))
        watcher = tracker.Tracker(vocab, sizes)
        _tag_weights(watcher, model)
        around.enter_context(fakes.card_kernels(bool(plan.documents)))
        around.enter_context(watcher)
        if plan.training:
            step.Training(plan, model, watcher).run()
        else:
            step.generate(plan, model, watcher)
        watcher.enter("after")
    return watcher


def _same_size(model: Any, parameters: int | None) -> None:
    built = sum(one.numel() for one in model.parameters())
    if parameters is not None and built != parameters:
        raise EstimatorError(
            f"transformers makes {built:,} parameters of this config, the estimate counts {parameters:,}: "
            "give the model's whole config.json",
            f"transformers 按此配置得到 {built:,} 个参数，估算为 {parameters:,} 个：请给出完整的 config.json",
            "model",
        )


def _tag_weights(tracker: "Tracker", model: Any) -> None:
    from bot.tracing.models import tables_of

    for name, one in model.named_parameters():
        tracker.tag(one, "adapter" if "lora_" in name else "weights")
    for one in (*model.buffers(), *tables_of(model)):
        tracker.tag(one, "weights")


def _filled(answer: Estimate, tracker: "Tracker", setting: Setting, run: Run) -> Estimate:
    """The answer with what was counted; what surrounds the tensors on a card is estimated as ever."""
    phases = _phases(tracker.highs)
    peak = max(phases, key=lambda name: phases[name].bytes)
    gpu, steady = card_of(run), tracker.highs[tracker.step, "after"].bytes
    workspace = card.workspace_bytes((gpu.compute_capability or None) if gpu else None, setting.regime.training)
    static = min(steady, phases[peak].bytes)
    sizes = card.Sizes(static, phases[peak].bytes - static, workspace)
    around = spread_around(setting)
    held = card.reserved(sizes, around)
    answer.per_gpu = PerGpu(
        allocated_peak=sizes.allocated, reserved_peak=held, device_peak=card.device(held, around),
        interval=card.interval(sizes, around), peak_phase=peak, at_peak=_blocks(phases[peak], workspace),
        phases=[PhasePeak(phase=name, allocated_peak=high.bytes + workspace) for name, high in phases.items()],
        steady=steady + workspace,
    )  # fmt: skip
    if gpu is not None:
        answer.fit = card.fit(answer.per_gpu.device_peak, usable_bytes(run, gpu))
    why = "the real code ran on fake tensors; loading, workspaces and the allocator's segments are not traced"
    why_zh = "真实代码在假张量上运行；加载过程、工作区与分配器的分段不在跟踪之内"
    answer.notes.append(Assumption(field="trace", value="fake tensors", why=why, why_zh=why_zh))
    return answer


def _phases(highs: Mapping[tuple[int, str], "High"]) -> dict[Phase, "High"]:
    """The fullest moment of each phase, over all steps: the first lacks the optimizer's states, so it is never more."""
    found: dict[Phase, High] = {}
    for name in PHASES:
        moments = [high for (_, phase), high in highs.items() if phase == name]
        if moments:
            found[name] = max(moments, key=lambda high: high.bytes)
    return found


def _blocks(high: "High", workspace: int) -> list[Block]:
    blocks = [Block(item=item, bytes=size, why=WHY[0], why_zh=WHY[1]) for item, size in high.items.items() if size]  # type: ignore[arg-type]
    blocks.append(Block(item="workspace", bytes=workspace, why=WORKSPACE[0], why_zh=WORKSPACE[1]))
    return sorted(blocks, key=lambda block: -block.bytes)
