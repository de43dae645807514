"""From a filled run to its layout."""

from typing import Any

from estimator.parallel.layout import ONE_CARD, Layout
from estimator.schema import Parallel, Run
from estimator.stack import before_5
from estimator.step.regime import Regime
from estimator.step.tape import FULL

ITEMSIZES = {"bf16": 2, "fp16": 2, "fp32": 4, "bfloat16": 2, "float16": 2, "float32": 4}
TRAINER = ("transformers", "trl", "peft", "llama-factory", "axolotl", "ms-swift", "accelerate")
"""Frameworks whose FSDP is accelerate's."""


def layout_of(run: Run, regime: Regime) -> Layout:
    """The layout of a training run."""
    parallel = run.parallel or Parallel()
    layout = with_offload(_engine(run, parallel, regime), run)
    groups = (parallel.tensor, parallel.context, parallel.expert, parallel.pipeline)
    return layout if set(groups) == {1} else with_groups(layout, run, parallel)


def in_flight(run: Run, parallel: Parallel, last: bool = False) -> int:
    """Micro-batches whose activations the first (the last) stage keeps, in whole stages rounded up.

    1F1B (Narayanan et al. 2021): as many as there are stages, and one in the last; interleaved with v chunks a rank:
    the warm-up of 2 (p - 1) + (v - 1) p chunks (without the first term in the last rank) and the one at work, v of
    which make a stage. GPipe: all of the step, in every stage.
    """
    stages, chunks, steps = parallel.pipeline, parallel.virtual_stages, run.grad_accum or 1
    if (parallel.schedule or "").lower() in ("gpipe", "afab"):
        return max(steps, 1)
    if chunks > 1:
        ahead = 0 if last else 2 * (stages - 1)
        return min(-(-(ahead + (chunks - 1) * stages + 1) // chunks), max(steps, stages))
    if last:
        return 1
    return min(stages, steps) if steps > 1 else stages


def with_offload(layout: Layout, run: Run) -> Layout:
    """The layout with what waits on the host: FSDP moves parameters, gradients and states together."""
    places = run.offload
    if places is None or (places.optimizer == places.parameters == "none"):
        return layout
    if layout.engine.startswith("fsdp"):
        return layout._replace(states_on="cpu", weights_on="cpu")
    return layout._replace(states_on=places.optimizer, weights_on=places.parameters)


def with_groups(layout: Layout, run: Run, parallel: Parallel) -> Layout:
    """The layout with its layers, or its sequences, shared by several ranks."""
    details = run.details or {}
    if parallel.pipeline > 1 and layout.engine == "fsdp2":
        # torchtitan keeps parameters gathered between micro-batches; PyTorch's schedules reduce after the last one
        layout = layout._replace(reshard=parallel.reshard_after_forward is True, whole_gradients=True)
    return layout._replace(
        context=parallel.context,
        expert=parallel.expert,
        pipeline=parallel.pipeline,
        in_flight=in_flight(run, parallel),
        in_flight_last=in_flight(run, parallel, last=True),
        stage="first" if parallel.pipeline > 1 else "",
        tensor=parallel.tensor,
        sequence=parallel.sequence,
        loss_parallel=bool(details.get("loss_parallel", run.framework == "torchtitan")),
        whole_ends=details.get("tp_style") == "hf",
    )


def _engine(run: Run, parallel: Parallel, regime: Regime) -> Layout:
    if parallel.engine in ("fsdp1", "fsdp2"):
        return fsdp_layout(run, parallel, regime)
    if parallel.engine == "deepspeed":
        return zero_layout(run, parallel, regime)
    if parallel.engine == "megatron":
        cards = parallel.data * parallel.context
        return Layout("megatron", shards=cards if parallel.zero or parallel.data > 1 else 1, zero=1)
    if parallel.engine == "ddp":
        return Layout("ddp", bucket_view=bool((run.details or {}).get("gradient_as_bucket_view")))
    return ONE_CARD


REDUCE_BUCKET, PREFETCH_BUCKET = 500_000_000, 50_000_000
PERSISTENCE, MAX_LIVE, REUSE = 100_000, 1_000_000_000, 1_000_000_000
"""DeepSpeed's defaults in elements (0.19.8, runtime/zero/config.py)."""


def zero_layout(run: Run, parallel: Parallel, regime: Regime) -> Layout:
    """DeepSpeed's ZeRO, with its own keys in ``details`` (``zero_optimization``, or the whole JSON)."""
    given = _zero_keys(run)
    stage = parallel.zero or int(given.get("stage", 0) or 0)
    bucket = (
        parallel.bucket_bytes // 2 if parallel.bucket_bytes else _elements(given, "reduce_bucket_size", REDUCE_BUCKET)
    )
    return Layout(
        engine="deepspeed",
        shards=parallel.data * parallel.context if stage else 1,
        replicas=parallel.replicate,
        zero=stage or 1,
        bucket=_elements(given, "reduce_bucket_size", bucket),
        prefetch_bucket=_elements(given, "stage3_prefetch_bucket_size", PREFETCH_BUCKET),
        persistence=_elements(given, "stage3_param_persistence_threshold", PERSISTENCE),
        max_live=_elements(given, "stage3_max_live_parameters", MAX_LIVE),
        reuse=_elements(given, "stage3_max_reuse_distance", REUSE),
    )


def _zero_keys(run: Run) -> dict[str, Any]:
    details = run.details or {}
    for keys in (details.get("zero_optimization"), (details.get("deepspeed") or {}), details):
        if isinstance(keys, dict):
            found = keys.get("zero_optimization", keys)
            if isinstance(found, dict) and any(name in found for name in ("stage", "reduce_bucket_size")):
                return found
    return {}


def _elements(given: dict[str, Any], key: str, otherwise: int) -> int:
    value = given.get(key, given.get(key.removeprefix("stage3_")))
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise


def fsdp_layout(run: Run, parallel: Parallel, regime: Regime) -> Layout:
    """FSDP of either kind."""
    details = run.details or {}
    param, reduce, output = mixed_precision(run)
    stored = FULL if kept_in_fp32(run) and not regime.adapter else 0
    adapter = regime.adapter.itemsize if regime.adapter is not None and param else 0
    return Layout(
        engine=parallel.engine,
        shards=parallel.data * parallel.context,
        replicas=parallel.replicate,
        zero=parallel.zero,
        stored=stored,
        stored_adapter=adapter,
        gather=param,
        reduce=reduce,
        output=output,
        wrap=parallel.wrap or ("accelerate" if run.framework in TRAINER else "layers"),
        reshard=parallel.reshard_after_forward is not False and parallel.zero != 2,
        prefetch=_prefetch(parallel),
        whole_gradients=_whole_gradients(run, parallel),
        leaf_units=parallel.engine == "fsdp1" and regime.adapter is not None and parallel.wrap in (None, "peft"),
        whole_adapters=parallel.engine == "fsdp1" and "weights-remade" in regime.quirks and bool(regime.quantised),
        outside=bool(details.get("ckpt_outside", before_5(run) and run.framework in TRAINER)),
        original_params=details.get("use_orig_params") is not False,
    )


def _prefetch(parallel: Parallel) -> str:
    """FSDP1's backward prefetch; nothing said: ahead of the backward of the unit before (BACKWARD_PRE)."""
    given = parallel.prefetch
    if given is None:
        return "pre"
    name = str(given).lower()
    return "post" if name in ("post", "backward_post") else "none" if name in NO_PREFETCH else "pre"


NO_PREFETCH = ("none", "no_prefetch", "false", "0", "off")


def _whole_gradients(run: Run, parallel: Parallel) -> bool:
    """Whether micro-steps before the last keep whole gradients: FSDP1's ``no_sync``, and accelerate's with FSDP2."""
    each = (run.details or {}).get("sync_each")
    if each is not None:
        return not each
    return parallel.engine == "fsdp1" or (parallel.wrap is None and run.framework in TRAINER)


def kept_in_fp32(run: Run) -> bool:
    """Whether FSDP stores what trains in fp32 and gathers it in 16 bit."""
    return run.precision == "fsdp-mixed-bf16" or upcast(run)


def upcast(run: Run) -> bool:
    """Trainers' bf16 flag under FSDP: accelerate keeps what trains in fp32, gathers and reduces in bf16."""
    return run.framework in TRAINER and bool(run.autocast) and run.precision == "bf16" and run.method == "full"


def mixed_precision(run: Run) -> tuple[int, int, int]:
    """Bytes per element that are gathered, reduced and put out; 0 where the parameters' own type stays."""
    given: Any = (run.details or {}).get("mixed_precision")
    if isinstance(given, dict):
        names = (given.get("param_dtype"), given.get("reduce_dtype"), given.get("output_dtype"))
        param, reduce, output = (ITEMSIZES.get(str(name), 0) for name in names)
        return param, reduce or param, output
    if upcast(run):
        return 2, 2, 2 if run.parallel is not None and run.parallel.engine == "fsdp2" else 0
    return (2, FULL, 0) if run.precision == "fsdp-mixed-bf16" else (0, 0, 0)
