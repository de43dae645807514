"""All fields of a run, in the order in which they depend on each other."""

import re

from bot.intake.names import model_meant
from bot.reading.draft import Draft
from bot.reading.facts import DEFAULT, FILE, Fact
from bot.reading.scripts import ARGUMENTS, framework_of
from bot.reading.settle.batch import settle_batch
from bot.reading.settle.checks import check
from bot.reading.settle.method import settle_method
from bot.reading.settle.models import settle_model
from bot.reading.settle.precision import settle_precision
from bot.reading.settle.serving import file_fact, settle_serving
from bot.reading.settle.spread import settle_spread
from bot.reading.settle.training import settle_checkpointing, settle_optimizer, settle_stage, settle_training
from bot.reading.settle.uploads import format_of, note_upload
from estimator.catalogue import rows
from estimator.catalogue.formats import stated_format
from estimator.errors import EstimatorError

TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
STAGES_WITH_PAIRS = ("dpo", "kto", "orpo", "simpo", "reward", "grpo", "pretrain", "sft", "ppo")


def settled_draft(draft: Draft, task: str) -> None:
    """Fill the draft's fields from its facts."""
    if draft.facts.stated("hub_config"):
        _hub(draft)
    if not draft.tool.name:
        if draft.facts.stated("adapter_config"):
            _adapter_alone(draft)
        return
    if draft.tool.engine or task in ("serve", "infer") or _only_generates(draft):
        _served(draft, task or ("infer" if not draft.tool.engine else ""))
    elif draft.tool.framework or draft.tool.python:
        _trained(draft)
    else:
        _launched(draft)
    check(draft)


OF_TRAINING = (
    "stage",
    "batch",
    "grad_accum",
    "optimizer",
    "epochs",
    "seq_len",
    "packing",
    "checkpointing",
    "deepspeed",
)


def _only_generates(draft: Draft) -> bool:
    """A file of a trainer's that names an engine for answers and nothing of training."""
    return draft.facts.stated("engine") is not None and not draft.named(*OF_TRAINING)


def _served(draft: Draft, task: str) -> None:
    kind = task or draft.tool.task or "serve"
    draft.put("task", kind, draft.identified)
    if draft.tool.framework:
        draft.put("framework", draft.tool.framework, draft.identified)
    draft.has("")
    note_upload(draft)
    _file(draft)
    settle_model(draft)
    settle_serving(draft)


def _file(draft: Draft) -> None:
    """A model given as a file or as ``repo:type``."""
    repo, file, model = (draft.facts.stated(name) for name in ("hf_repo", "hf_file", "model"))
    if repo:
        draft.facts.put("model", Fact(str(repo.value), repo.key, repo.line, repo.rank + 1, repo.source))
        note_upload(draft)
        if file:
            _note_file(draft, file)
        bare = str(repo.value).partition(":")[0]
        draft.facts.put("model", Fact(bare, repo.key, repo.line, repo.rank + 2, repo.source))
        return
    if model and re.search(r"\.(gguf|bin)$", str(model.value)):
        draft.facts.put("model", file_fact(model))
    elif file and not model:
        draft.facts.put("model", file_fact(file))


def _note_file(draft: Draft, file: Fact) -> None:
    """The format of the one file that is taken from a repository."""
    if form := format_of(str(file.value)):
        draft.facts.put("upload_format", Fact(form, file.key, file.line, file.rank, file.source))


def _trained(draft: Draft) -> None:
    framework = draft.tool.framework or framework_of(draft.calls)
    draft.put("framework", framework, draft.identified)
    draft.put("task", "train", draft.identified)
    _conditions(draft)
    note_upload(draft)
    settle_model(draft)
    _stored(draft)
    settle_method(draft)
    settle_spread(draft)
    _staged(draft)
    settle_precision(draft)
    settle_batch(draft)
    settle_training(draft)
    kbit = draft.facts.stated("kbit_prepare")
    if kbit:
        draft.put("kbit_prepare", True, kbit)


def _conditions(draft: Draft) -> None:
    """The stage decides some defaults, so it comes before them."""
    settle_stage(draft)
    draft.has("")
    if draft.calls & set(ARGUMENTS):
        draft.has("arguments")
    elif any(
        name.endswith("Config") and name[:3] in ("SFT", "DPO", "GRP", "KTO", "ORP", "CPO", "Rew")
        for name in draft.calls
    ):
        draft.has("trl_config")
    settle_stage(draft)


def _staged(draft: Draft) -> None:
    stage = draft.run.get("stage")
    if draft.facts.stated("rloo") and not draft.facts.stated("generations"):
        draft.facts.put("generations", Fact(2, "num_generations of RLOO", 0, DEFAULT, draft.tool.name))
        draft.conditions.add("grpo")
    if stage in STAGES_WITH_PAIRS:
        draft.has(str(stage))


def _stored(draft: Draft) -> None:
    """The type that the catalogue's model is published in."""
    name = draft.run.get("model")
    known = model_meant(name) if isinstance(name, str) else None
    if known is None or known.family or known.size:
        return
    stored = TYPES.get(str(rows.model_row(known.hub_id).default_dtype))
    if stored:
        draft.facts.put("stored", Fact(stored, "the stored type", 0, DEFAULT, "config.json"))


def _launched(draft: Draft) -> None:
    """A launcher's or DeepSpeed's file alone: how a run is spread, but not what is run."""
    draft.put("task", "train", draft.identified)
    if draft.facts.stated("model"):
        settle_model(draft)
    settle_spread(draft)
    settle_precision(draft)
    settle_batch(draft)
    settle_optimizer(draft)
    settle_checkpointing(draft)
    clipping = draft.facts.stated("clipping")
    if clipping:
        draft.put("gradient_clipping", clipping.value > 0, clipping)


def _hub(draft: Draft) -> None:
    """A config.json: the model itself, its quantised format, its stored type."""
    found = draft.facts.stated("hub_config")
    if found is None:
        return
    draft.facts.put("model_object", found)
    draft.put("model", found.value, found)
    try:
        form = stated_format(found.value)
    except (EstimatorError, TypeError, ValueError, KeyError, AttributeError):
        form = None
    if form:
        draft.put("weight_format", form, "quantization_config")
    kind = draft.facts.stated("hub_dtype")
    stored = TYPES.get(str(kind.value)) if kind else None
    if kind and stored:
        draft.put("precision", stored, kind)


def _adapter_alone(draft: Draft) -> None:
    """An adapter_config.json by itself."""
    draft.facts.put("dropout_kept", Fact(True, "", 0, FILE, ""))
    note_upload(draft)
    settle_model(draft)
    settle_method(draft)
