"""The entries: complete in both languages, without dead references, each reached by something."""

import re
from pathlib import Path

import pytest

from bot.diagnosing.moves import MOVES
from bot.language import has_chinese
from estimator.downgrades.moves import INFERENCE, TRAINING
from estimator.schema import Run
from knowledge.check import problems
from knowledge.reading import causes, entries, parsed

CATALOGUE = [
    "weights_exceed_gpu",
    "loaded_in_fp32",
    "full_copy_per_gpu",
    "zero3_not_sharding",
    "host_ram_killed",
    "rank0_pileup",
    "shm_too_small",
    "device_map_imbalance",
    "full_ft_states",
    "optimizer_first_step",
    "lora_activation_bound",
    "qlora_overhead",
    "trainable_embeddings",
    "moe_total_params",
    "batch_seq_activations",
    "long_sample_spike",
    "attention_quadratic",
    "logits_vocab_spike",
    "grad_ckpt_ineffective",
    "vision_tokens",
    "graph_retained_leak",
    "fragmentation",
    "eval_accumulation",
    "no_grad_inference",
    "save_gather_spike",
    "resume_double_load",
    "merge_export_spike",
    "rl_extra_models",
    "rl_engine_colocated",
    "kv_no_blocks",
    "max_len_too_large",
    "vllm_prealloc_by_design",
    "outside_budget_serving",
    "llamacpp_offload_ctx",
    "other_process",
    "wrong_or_small_device",
    "windows_wsl_memory",
    "opaque_alloc_error",
    "dtype_unsupported",
    "unified_memory",
    "framework_preallocation",
]


def test_every_cause_of_the_catalogue_has_its_entry() -> None:
    assert sorted(entry.id for entry in causes()) == sorted(CATALOGUE)


def test_the_check_finds_nothing() -> None:
    assert problems() == []


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.id)
def test_each_language_is_its_own(entry) -> None:  # type: ignore[no-untyped-def]
    texts = [entry.title, *entry.fixes, *entry.useless]
    assert not any(has_chinese(text.en) for text in texts)
    assert all(has_chinese(text.zh) for text in texts)
    assert not has_chinese(entry.body("en").text)
    assert has_chinese(entry.body("zh").text)
    assert bool(entry.body("en").ask) == bool(entry.body("zh").ask)
    assert bool(entry.body("en").confirm) == bool(entry.body("zh").confirm)


def test_moves_exist_and_name_their_field() -> None:
    named = {fix.move for entry in entries().values() for fix in entry.fixes if fix.move}
    assert named <= MOVES.keys()
    assert {move.field for move in MOVES.values()} <= Run.model_fields.keys()
    ours = {move.name for move in (*TRAINING, *INFERENCE)}
    assert {name for move in MOVES.values() for name in move.moves} <= ours


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("no front matter", "begins with its front matter"),
        ("+++\nid = 'x'\n+++\n\n## English\n\nText.\n", "no text under the heading 中文"),
    ],
)
def test_an_entry_without_a_part_is_refused(broken: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parsed(broken)


def test_entries_name_no_place_of_a_machine() -> None:
    folder = Path(__file__).parent.parent.parent / "knowledge" / "entries"
    inside = re.compile(r"(?<![\w./:<])/(?!dev/|proc/|sys/)[a-z]+/[\w-]")
    assert not [path.name for path in folder.glob("*.md") if inside.search(path.read_text("utf-8"))]


def test_every_phrase_means_a_pattern() -> None:
    """Patterns are compiled when a text first needs them, so that a broken one would be met late."""
    for entry in entries().values():
        of_signals = [one for signal in entry.evidence for one in (*signal.says, *signal.beside, *signal.unless)]
        assert all(one.compiled.groups == 0 for one in (*of_signals, *entry.questions))
