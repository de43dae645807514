"""What older packages and frameworks do otherwise, one habit at a time."""

from typing import Any

import pytest

from estimator.estimate import estimate
from estimator.habits import old_habits
from estimator.schema import PerGpu, Run

RUN: dict[str, Any] = {
    "model": "mistralai/Mistral-7B-v0.1", "task": "train", "method": "lora", "precision": "bf16", "framework": "trl",
    "autocast": True, "micro_batch": 2, "seq_len": 1024, "gradient_checkpointing": "none", "attention": "flash2",
    "adapter": {"rank": 8, "targets": "attention", "dropout": 0.0},
}  # fmt: skip
TOKENS, LAYERS, HIDDEN = 2048, 32, 4096


def peak(**changes: Any) -> int:
    found = estimate(Run.model_validate(RUN | changes)).per_gpu
    assert found is not None
    return found.allocated_peak


def test_flash_attention_repeated_keys_and_values_before_4_48() -> None:
    more = peak(stack={"transformers": "4.45.2"}) - peak(stack={"transformers": "4.48.1"})
    assert more / (TOKENS * LAYERS * 3 * 2 * HIDDEN / 2) == pytest.approx(1, rel=0.05)


def test_llama_repeated_nothing() -> None:
    old, new = (peak(model="meta-llama/Meta-Llama-3-8B", stack={"transformers": v}) for v in ("4.46.0", "4.48.1"))
    assert old == new


def test_a_named_framework_brings_its_dropout() -> None:
    adapter = {"rank": 8, "targets": "attention"}
    run = RUN | {"adapter": adapter}
    assert estimate(Run.model_validate(run)).per_gpu != estimate(Run.model_validate(RUN)).per_gpu
    unnamed = Run.model_validate({key: value for key, value in run.items() if key != "framework"})
    dropouts = [one.value for one in estimate(unnamed).assumptions if one.field == "adapter.dropout"]
    assert dropouts == [0.0]


def test_auto_gptq_makes_one_cast_and_drops_it() -> None:
    gptq = {"method": "qlora", "weight_format": "gptq-4bit-g128"}
    old, new = (peak(**gptq, stack={"transformers": v}) for v in ("4.48.1", "5.24.0"))
    assert new - old > 6_900_000_000 * 2 * 0.9


def test_trl_turned_embeddings_back_after_k_bit_preparation() -> None:
    nf4 = {"method": "qlora", "weight_format": "nf4-dq", "kbit_prepare": True}
    old, new = (peak(**nf4, stack={"transformers": "4.48.1", "trl": v}) for v in ("0.13.0", "1.16.0"))
    assert new - old >= 262_144_000 * 2


def test_older_bitsandbytes_kept_its_inputs() -> None:
    nf4 = {"method": "qlora", "weight_format": "nf4-dq"}
    old, new = (peak(**nf4, stack={"bitsandbytes": v}) for v in ("0.42.0", "0.45.0"))
    assert old > new


def test_litgpt_runs_code_of_its_own() -> None:
    assert peak(framework="litgpt", autocast=False) != peak(framework="transformers", autocast=False)


def test_an_encoder_is_no_model_of_litgpts() -> None:
    """litgpt's model code holds decoders alone: an encoder that is asked about is counted as transformers runs it."""
    run = {"model": "bert-base-uncased", "task": "train", "method": "lora", "framework": "litgpt"}
    assert estimate(Run.model_validate(run)).per_gpu is not None


def autoawq(model: str, context: int, new: int) -> PerGpu:
    run = {"model": model, "task": "infer", "engine": "autoawq", "weight_format": "awq-4bit-g128"}
    found = estimate(Run.model_validate(run | {"context_len": context, "new_tokens": new})).per_gpu
    assert found is not None
    return found


def test_autoawq_makes_a_window_and_writes_the_prompts_attention_out() -> None:
    found = autoawq("mistralai/Mistral-7B-v0.1", 3000, 100)
    blocks = {block.item: block.bytes for block in found.at_peak}
    assert blocks["kv_cache"] == 3000 * 32 * 2 * 1024 * 2
    scores = [block.bytes for block in found.at_peak if block.item == "activations"]
    assert max(scores) == 32 * 3000 * 3000 * 10


def test_autoawq_holds_queries_keys_and_values_twice_while_it_joins_them() -> None:
    found = autoawq("mistralai/Mistral-7B-v0.1", 16, 16)
    joined = next(block.bytes for block in found.at_peak if block.item == "weight_casts")
    assert (found.peak_phase, joined) == ("load", pytest.approx(32 * 4096 * (4096 + 2048) * 0.51953, rel=0.001))


def test_falcon_is_estimated_as_loaded() -> None:
    """The file holds the head beside the embedding, transformers ties them."""
    weights = next(block.bytes for block in autoawq("tiiuae/falcon-7b", 512, 512).at_peak if block.item == "weights")
    halved, whole = 32 * 4544 * (4672 + 4544 + 18176), 32 * 4544 * 18176
    packed = halved * (4 + 20 / 64) / 8 + whole * (4 + 20 / 128) / 8
    assert weights == pytest.approx(packed + 295_469_056 * 2, rel=0.001)


BIGCODE: dict[str, Any] = {
    "model": {
        "model_type": "gpt_bigcode", "n_embd": 1024, "n_layer": 12, "n_head": 16, "multi_query": True,
        "vocab_size": 20000, "n_positions": 2048,
    },
    "method": "full", "autocast": False, "optimizer": "sgd", "micro_batch": 32, "loss": "standard",
}  # fmt: skip


def test_bigcode_returned_its_cache_under_checkpointing() -> None:
    """Before transformers 4.53 the fused projection of every layer lives until the loss is there."""
    run = BIGCODE | {"gradient_checkpointing": "full", "stack": {"transformers": "4.48.1"}}
    more = peak(**run) - peak(**run, details={"use_cache": False})
    assert more == pytest.approx(32 * 1024 * 12 * (1024 + 2 * 64) * 2, rel=0.15)
    habits = [
        old_habits(Run.model_validate(RUN | run | {"stack": {"transformers": v}}), "gpt_bigcode")
        for v in ("4.52.4", "4.53.3")
    ]
    assert habits == [("cache-returned",), ()]


def test_older_models_of_gpt_2s_time_asked_for_no_fp32_logits() -> None:
    """Half logits, their shifted copy and their log-softmax, 6 bytes, where the shared loss takes 12."""
    run = BIGCODE | {"gradient_checkpointing": "full", "details": {"use_cache": False}}
    old, new = (peak(**run, stack={"transformers": v}) for v in ("4.48.1", "4.49.0"))
    assert (new - old) / (32 * 1024 * 20000) == pytest.approx(6, abs=0.1)


def test_mistral_bound_its_fp32_logits_anew_until_4_48() -> None:
    old, new = (
        peak(
            stack={"transformers": v}, loss="standard", gradient_checkpointing="full", attention="sdpa", micro_batch=16
        )
        for v in ("4.47.1", "4.48.1")
    )
    assert old < new


def test_fused_lora_leaves_a_fused_projection_alone() -> None:
    run = BIGCODE | {"method": "qlora", "weight_format": "nf4", "autocast": True}
    assert peak(**run, fused_kernels=["lora"]) == peak(**run)


MIXTURE: dict[str, Any] = {
    "model": {
        "model_type": "mixtral", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
        "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000, "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    "gradient_checkpointing": "full", "micro_batch": 16, "loss": "fused",
}  # fmt: skip


def test_experts_ran_one_after_the_other_before_transformers_5() -> None:
    """The backward's temporaries are those of one expert's tokens, where version 5 has all chosen pairs' at once."""
    old, new = (peak(**MIXTURE, stack={"transformers": v}) for v in ("4.57.1", "5.24.0"))
    pairs = 16 * 1024 * 2
    assert 0.5 < (new - old) / (pairs * 1024 * 2 * 2) < 3


def test_many_experts_share_turns_and_lose_no_gradient() -> None:
    """A trace has 16 turns at most; every adapter's gradient is still made."""
    model = MIXTURE["model"] | {"num_local_experts": 64, "intermediate_size": 64}
    names = [f"w{number}" for number in (1, 2, 3)]
    run = MIXTURE | {"model": model, "adapter": {"rank": 64, "targets": names, "dropout": 0.0}, "micro_batch": 1}
    found = estimate(Run.model_validate(RUN | run | {"stack": {"transformers": "4.57.1"}, "seq_len": 64}))
    assert found.per_gpu is not None
    step = {phase.phase: phase.allocated_peak for phase in found.per_gpu.phases}["optimizer_step"]
    adapters = 4 * 64 * 3 * 64 * (512 + 64) * 4
    assert step - found.per_gpu.steady >= adapters


@pytest.mark.parametrize(
    ("upload", "packed"),
    [
        ("TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ", "gptq-4bit-g-1"),
        ("TheBloke/Llama-2-70B-chat-GPTQ", "gptq-4bit-g-1"),
        ("TheBloke/Llama-2-13B-GPTQ", "gptq-4bit-g128"),
        ("Qwen/Qwen2-72B-Instruct-GPTQ-Int4", "gptq-4bit-g128"),
    ],
)
def test_large_uploads_of_the_bloke_have_no_groups(upload: str, packed: str) -> None:
    """Also where the format that the name suggests is stated beside it."""
    run = RUN | {"model": upload, "method": "qlora", "weight_format": "gptq-4bit-g128"}
    assert estimate(Run.model_validate(run)).run.weight_format == packed


@pytest.mark.parametrize(
    ("upload", "packed"),
    [
        ("TheBloke/Llama-2-70B-GPTQ:gptq-4bit-128g-actorder_True", "gptq-4bit-g128"),
        ("TheBloke/Llama-2-70B-GPTQ:gptq-4bit-32g-actorder_True", "gptq-4bit-g32"),
        ("TheBloke/Llama-2-70B-GPTQ@gptq-3bit--1g-actorder_True", "gptq-3bit-g-1"),
        ("TheBloke/Llama-2-70B-GPTQ-4bit-128g", "gptq-4bit-g128"),
    ],
)
def test_a_branch_or_a_name_with_its_groups_is_taken_as_written(upload: str, packed: str) -> None:
    run = estimate(Run.model_validate(RUN | {"model": upload, "method": "qlora"})).run
    assert run.weight_format == packed


def test_fused_lora_leaves_adapters_out_of_fsdp() -> None:
    """fms-acceleration hands them to FSDP as ignored modules: weights and states are whole on every card."""
    spread = {"engine": "fsdp1", "data": 4, "zero": 3}
    run = RUN | {"method": "qlora", "weight_format": "nf4-dq", "gpu_count": 4, "parallel": spread, "gpu": "A100 80GB"}
    run |= {"adapter": {"rank": 8, "targets": "attention", "dtype": "fp32", "dropout": 0.0}}
    fused, plain = (
        estimate(Run.model_validate(run | {"fused_kernels": kernels})).per_gpu for kernels in (["lora"], None)
    )
    assert fused is not None
    assert plain is not None
    adapters = LAYERS * 8 * (4 * HIDDEN + 2 * (HIDDEN + 1024))
    kept = adapters * 4 // 4  # flat gradients go only in the next forward
    assert fused.steady - (plain.steady - kept) == pytest.approx(adapters * 12 * 3 / 4, rel=0.02)


def test_nobody_prepares_a_sharded_4_bit_base() -> None:
    run = RUN | {"method": "qlora", "weight_format": "nf4-dq", "gpu_count": 2, "gpu": "A100 80GB"}
    run |= {"parallel": {"engine": "fsdp1", "data": 2, "zero": 3}}
    prepared, plain = (estimate(Run.model_validate(run | {"kbit_prepare": done})).per_gpu for done in (True, False))
    assert prepared == plain


@pytest.mark.parametrize(
    ("model", "before", "since", "tables"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", "4.47.1", "4.48.1", 32 * 32768 * 128 * 2 * 2),
        ("Qwen/Qwen2.5-7B", "4.44.2", "4.45.0", 28 * 131072 * 128 * 2 * 2),
        ("EleutherAI/pythia-1.4b", "4.44.2", "4.45.0", 24 * 2048 * 32 * 2 * 4),
    ],
)
def test_every_layer_cached_its_rotary_table(model: str, before: str, since: str, tables: int) -> None:
    """Cosines and sines of all positions, as buffers of each layer."""
    run = RUN | {"model": model, "adapter": {"rank": 8, "targets": "all-linear", "dropout": 0.0}}
    old, new = (
        estimate(Run.model_validate(run | {"stack": {"transformers": v}}), steps=False).per_gpu for v in (before, since)
    )
    assert old is not None
    assert new is not None
    assert old.steady - new.steady == pytest.approx(tables, rel=0.001)


def test_an_old_torch_loads_its_kernels_with_the_context() -> None:
    """Before lazy loading a card showed over a GiB more than PyTorch's cache."""
    shown = []
    for torch in ("1.11", "2.0.1", "2.4.1"):
        per_gpu = estimate(Run.model_validate(RUN | {"stack": {"torch": torch}}), steps=False).per_gpu
        assert per_gpu is not None
        shown.append(per_gpu.device_peak.expected - per_gpu.reserved_peak.expected)
    assert shown == [int(gib * 2**30) for gib in (1.35, 0.8, 0.45)]


@pytest.mark.parametrize("task", [{"method": "qlora"}, {"task": "infer", "weight_format": "nf4"}])
def test_experts_that_stay_in_16_bit_come_with_the_transformers_that_packs_them(task: dict[str, Any]) -> None:
    found = estimate(Run(model="mixtral-8x7b", **task), others=True)
    other = next(one for one in found.alternatives if "stack" in one.change)
    older = estimate(Run(model="mixtral-8x7b", **task, **other.change))
    assert found.per_gpu is not None and older.per_gpu is not None
    assert other.allocated_peak == older.per_gpu.allocated_peak < found.per_gpu.allocated_peak / 3


def test_another_transformers_leaves_the_other_packages_that_were_named() -> None:
    run = Run(model="mixtral-8x7b", method="qlora", gpu="H100", stack={"torch": "2.0.1"})
    other = next(one for one in estimate(run, others=True).alternatives if "stack" in one.change)
    assert other.change["stack"] == {"torch": "2.0.1", "transformers": "4.57.6"}
    older = estimate(run.model_copy(update=other.change)).per_gpu
    assert older is not None and older.device_peak.expected == other.device_peak.expected


def test_what_is_done_to_one_answer_shows_in_no_other() -> None:
    run = Run(model="mixtral-8x7b", method="qlora")
    changes = [one.change for one in estimate(run, others=True).alternatives]
    next(one for one in changes if "stack" in one)["stack"]["transformers"] = "4.0"
    assert {"stack": {"transformers": "4.57.6"}} in [one.change for one in estimate(run, others=True).alternatives]


@pytest.mark.parametrize(
    "fields", [{"model": "llama3-8b", "method": "qlora"}, {"model": "mixtral-8x7b", "method": "lora"},
               {"model": "mixtral-8x7b", "method": "qlora", "stack": {"transformers": "5.0.0"}}],
)  # fmt: skip
def test_where_nothing_of_it_was_assumed_no_other_transformers_is_told(fields: dict[str, Any]) -> None:
    found = estimate(Run(**fields), others=True)
    assert found.alternatives and all("stack" not in one.change for one in found.alternatives)
