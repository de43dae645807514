"""Runs that a stranger asked about: stored formats, versions, targets, lengths, hosts, and what is said of them."""

import re
from typing import Any

import pytest

from estimator.approximations import UNTRANSLATED, in_chinese
from estimator.defaults import rules
from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.frameworks import KNOWN, canonical
from estimator.schema import Assumption, Block, Estimate, Run
from estimator.stack import MODELLED
from estimator.step.families import decoders, mixtures

GIB = 1 << 30
MIXTRAL: dict[str, Any] = {"model": "mixtral-8x7b", "method": "qlora", "weight_format": "nf4", "seq_len": 512}
OLD = {"transformers": "4.57.1"}


def answer(**fields: Any) -> Estimate:
    return estimate(Run.model_validate(fields))


def refused(**fields: Any) -> EstimatorError:
    with pytest.raises(EstimatorError) as caught:
        answer(**fields)
    assert caught.value.message_zh != caught.value.message
    return caught.value


def allocated(found: Estimate) -> int:
    assert found.per_gpu is not None
    return found.per_gpu.allocated_peak


def block(found: Estimate, item: str) -> Block:
    assert found.per_gpu is not None
    return next(block for block in found.per_gpu.at_peak if block.item == item)


def assumed(found: Estimate, field: str) -> Assumption:
    return next(one for one in found.assumptions if one.field == field)


def notes(found: Estimate, field: str) -> list[str]:
    assert all(note.why and note.why_zh for note in found.notes)
    return [note.why for note in found.notes if note.field == field]


@pytest.mark.parametrize(
    ("model", "stored", "gib"),
    [("deepseek-v3", "fp8", 627), ("gpt-oss-20b", "mxfp4", 12.8), ("kimi-k2-thinking", "int4-experts", 554)],
)
def test_models_published_quantised_run_as_stored(model: str, stored: str, gib: float) -> None:
    found = answer(model=model, task="infer")
    assert assumed(found, "weight_format").value == stored
    assert block(found, "weights").bytes / GIB == pytest.approx(gib, rel=0.01)


def test_training_them_turns_them_to_16_bit() -> None:
    found = answer(model="gpt-oss-20b", method="lora")
    assert found.run is not None
    assert found.run.weight_format is None
    assert "16 bit" in notes(found, "weight_format")[0]
    packed = answer(model="gpt-oss-20b", method="qlora", weight_format="nf4")
    assert any("packed as nf4" in why for why in notes(packed, "weight_format"))


def test_a_precision_that_is_asked_for_undoes_the_stored_format() -> None:
    found = answer(model="gpt-oss-20b", task="infer", precision="bf16")
    assert found.run is not None
    assert found.run.weight_format is None


@pytest.mark.parametrize(("model", "precision"), [("gpt2", "fp32"), ("bert-base", "fp32"), ("opt-125m", "fp16")])
@pytest.mark.parametrize("gpu", [None, "T4", "3090"])
def test_inference_keeps_the_stored_type(model: str, precision: str, gpu: str | None) -> None:
    found = answer(model=model, task="infer", gpu=gpu)
    assert assumed(found, "precision").value == precision


def test_experts_are_linears_before_transformers_5() -> None:
    old, new = answer(**MIXTRAL, stack=OLD), answer(**MIXTRAL)
    assert block(old, "weights").bytes / GIB < 26 < 80 < block(new, "weights").bytes / GIB
    assert "before transformers 5" in notes(old, "stack")[0]
    assert "242,225,152 trainable parameters" in block(old, "optimizer_states").why
    assert block(old, "gradients").bytes > 400_000_000
    assert old.per_gpu is not None
    around = old.per_gpu.interval
    assert around.low < old.per_gpu.allocated_peak < around.high


def test_adapters_on_attention_leave_the_old_experts_alone() -> None:
    fields = MIXTRAL | {"adapter": {"targets": "attention"}}
    assert block(answer(**fields, stack=OLD), "adapter").bytes == block(answer(**fields), "adapter").bytes


@pytest.mark.parametrize("version", ["latest", "five", "", "4..1", "1;2"])
def test_a_version_is_a_version(version: str) -> None:
    assert refused(model="qwen2.5-0.5b", stack={"transformers": version}).field == "stack.transformers"


@pytest.mark.parametrize("version", ["4.57.1", "v5.0", "5.0.0rc1", "2.13.0+cu128", "4.x", "5.1.0.dev0"])
def test_versions_in_all_their_forms(version: str) -> None:
    found = answer(model="qwen2.5-0.5b", stack={"transformers": version})
    assert found.run is not None
    assert found.run.stack == MODELLED | {"transformers": version}
    assert "transformers" not in assumed(found, "stack").value


def test_what_surrounds_a_run_is_filled_in_few_lines() -> None:
    found = answer(model="qwen2.5-0.5b")
    run = found.run
    assert run is not None
    assert run.stack == MODELLED
    assert run.nodes == 1
    assert run.parallel is not None
    assert run.offload is not None
    assert len([one for one in found.assumptions if one.field.startswith("stack")]) == 1
    many = answer(model="qwen2.5-0.5b", gpu_count=4).run
    assert many is not None
    assert many.parallel is not None
    assert (many.parallel.engine, many.parallel.data) == ("ddp", 4)
    dealt = answer(model="qwen2.5-0.5b", task="infer", gpu_count=2).run
    assert dealt is not None
    assert dealt.parallel is not None
    assert dealt.parallel.engine == "device_map"
    assert allocated(estimate(dealt)) == allocated(answer(model="qwen2.5-0.5b", task="infer", gpu_count=2))


def test_an_unknown_framework_is_a_note() -> None:
    found = answer(model="qwen2.5-0.5b", framework="foo")
    assert "foo is not known here" in notes(found, "framework")[0]
    assert assumed(found, "optimizer").why.startswith("not stated by foo: ")
    assert allocated(found) == allocated(answer(model="qwen2.5-0.5b", framework="transformers"))


@pytest.mark.parametrize(("given", "name"), [("TRL", "trl"), ("LLaMA_Factory", "llama-factory"), ("<b>x", "bx")])
def test_frameworks_have_one_spelling(given: str, name: str) -> None:
    assert canonical(given) == name


@pytest.mark.parametrize("framework", KNOWN)
def test_no_default_is_ascribed_to_the_wrong_framework(framework: str) -> None:
    found = answer(model="qwen2.5-0.5b", framework=framework, method="lora")
    owners = ("trl's", "transformers' default", "MiniMind", "torchtune", "unsloth's")
    for one in found.assumptions:
        named = [owner for owner in owners if one.why.startswith(owner)]
        own = next((rule for rule in rules().get(one.field, ()) if rule.said == one), None)
        if named and own is not None and own.of is not None:
            assert framework in own.of, (one.field, one.why)


@pytest.mark.parametrize("method", ["lomo", "galore", "apollo", "badam"])
def test_methods_that_are_optimizers(method: str) -> None:
    found = answer(model="qwen2.5-0.5b", method=method)
    assert assumed(found, "optimizer").value == method
    assert "optimizer_impl" not in {one.field for one in found.assumptions}
    assert allocated(found) == allocated(answer(model="qwen2.5-0.5b", method=method, optimizer="adamw"))


def test_the_rank_of_projectors_is_told() -> None:
    found = answer(model="qwen2.5-0.5b", method="galore", details={"rank": 64})
    assert block(found, "optimizer_states").why.endswith("rank 64")


def test_targets_must_name_linears() -> None:
    error = refused(model="qwen2.5-0.5b", method="lora", adapter={"targets": ["c_attn", "wq"]})
    assert error.field == "adapter.targets"
    assert "down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj" in error.message
    partly = answer(model="qwen2.5-0.5b", method="lora", adapter={"targets": ["q_proj", "wq"]})
    assert notes(partly, "adapter.targets") == ["wq: no linear of the layers has this name; counted without"]
    whole = answer(model="qwen2.5-0.5b", method="lora", adapter={"targets": ["q_proj"]})
    assert allocated(partly) == allocated(whole)
    assert allocated(whole) == allocated(answer(model="qwen2.5-0.5b", method="lora", adapter={"targets": "q_proj"}))


@pytest.mark.parametrize("name", ["Q4_K_M", "fp8", "mxfp4", "nvfp4", "exl2-4bpw"])
@pytest.mark.parametrize("method", ["lora", "qlora", "dora"])
def test_bases_without_a_backward_are_refused(name: str, method: str) -> None:
    error = refused(model="qwen2.5-0.5b", method=method, weight_format=name)
    assert error.field == "weight_format"
    assert "use nf4" in error.message


@pytest.mark.parametrize("name", ["nf4", "int8", "gptq-4bit-g128", "awq-4bit-g128"])
def test_bases_with_one_are_not(name: str) -> None:
    assert allocated(answer(model="qwen2.5-0.5b", method="lora", weight_format=name))


def test_a_mean_is_at_most_the_longest() -> None:
    assert refused(model="qwen2.5-0.5b", seq_len={"mean": 900, "max": 300}).field == "seq_len"


def test_the_largest_batch_of_unequal_rows_is_exact() -> None:
    fields: dict[str, Any] = {
        "model": "qwen2.5-0.5b", "method": "lora", "gpu": "3060", "attention": "sdpa",
        "gradient_checkpointing": "none", "seq_len": {"mean": 300, "max": 2048},
    }  # fmt: skip
    found = answer(**fields)
    assert found.max is not None
    most = found.max.micro_batch
    assert most > 1
    assert answer(**fields, micro_batch=most).fit.verdict == "fits"
    assert answer(**fields, micro_batch=most + 1).fit.verdict != "fits"


@pytest.mark.parametrize(("model", "most"), [("gpt2", 1024), ("opt-125m", 2048), ("bert-base", 512)])
def test_learned_positions_end(model: str, most: int) -> None:
    error = refused(model=model, method="full", seq_len=most + 1)
    assert error.field == "seq_len"
    assert f"{most:,}" in error.message
    found = answer(model=model, method="full", seq_len=most, gpu="H100")
    assert found.max is not None
    assert found.max.seq_len <= most


def test_assumed_lengths_stay_within_the_positions() -> None:
    found = answer(model="gpt2", task="infer").run
    assert found is not None
    assert (found.context_len, found.new_tokens) == (768, 256)
    assert assumed(answer(model="bert-base"), "seq_len").value == 512


def test_generation_stops_where_positions_end() -> None:
    assert (
        "stops at 1,024" in notes(answer(model="gpt2", task="infer", context_len=1000, new_tokens=100), "new_tokens")[0]
    )
    assert refused(model="gpt2", task="infer", context_len=1025).field == "context_len"


def test_rotary_models_run_beyond_their_context() -> None:
    found = answer(model="qwen2.5-0.5b", method="lora", seq_len=40_000, gpu="H100")
    assert "more than the model's own context of 32,768" in notes(found, "seq_len")[0]
    assert notes(found, "max.seq_len")
    assert not notes(answer(model="qwen2.5-0.5b", method="lora", gpu="8GB"), "seq_len")


@pytest.mark.parametrize(
    "fields", [{"method": "lora"}, {"task": "infer"}, {"task": "infer", "weight_format": "Q4_K_M"}]
)
def test_a_card_never_holds_less_than_its_tensors(fields: dict[str, Any]) -> None:
    per_gpu = answer(model="llama-3.1-8b", **fields).per_gpu
    assert per_gpu is not None
    assert per_gpu.allocated_peak <= per_gpu.reserved_peak.low <= per_gpu.reserved_peak.expected
    assert per_gpu.reserved_peak.low < per_gpu.device_peak.low


def test_inputs_that_wait_in_host_memory() -> None:
    found = answer(model="qwen2.5-0.5b", framework="unsloth", seq_len=2048)
    assert found.host.ram == 24 * 2048 * 896 * 2
    assert "wait in host memory" in block(found, "activations").why
    saved = answer(model="qwen2.5-0.5b", method="lora", offload={"activations": "cpu"}, gradient_checkpointing="none")
    assert saved.host.ram > 100_000_000


def test_others_cannot_hold_the_whole_card() -> None:
    error = refused(model="qwen2.5-0.5b", gpu="8GB", reserved_by_others_gib=9)
    assert error.field == "reserved_by_others_gib"


def test_the_cache_is_told_per_token() -> None:
    found = answer(model="meta-llama/Llama-2-7b-hf", task="infer")
    assert block(found, "kv_cache").why.startswith("1,279 tokens x 524,288 B of keys and values")
    assert found.serving is not None
    assert found.serving.kv_bytes_per_token == 524_288
    assert found.serving.kv_bytes == 1279 * 524_288
    assert found.serving.weights_bytes == block(found, "weights").bytes
    assert answer(model="qwen2.5-0.5b").serving is None


def test_llama_cpp_has_one_compute_buffer() -> None:
    found = answer(model="meta-llama/Llama-2-7b-hf", task="infer", weight_format="Q4_K_M", context_len=1024).serving
    assert found is not None
    assert found.compute_buffer_bytes
    assert found.activation_peak_bytes is None
    assert found.kv_bytes == 1024 * 524_288


def test_windows_hold_the_whole_prompt_at_first() -> None:
    found = answer(model="mistral-7b-v0.1", task="infer", context_len=8000)
    why = block(found, "kv_cache").why
    assert why.startswith("8,000 tokens x 131,072 B of keys and values")
    assert "hold the whole prompt" in why
    assert found.serving is not None
    assert found.serving.kv_bytes == 4096 * 131_072


def test_a_large_mask_is_told_apart() -> None:
    found = answer(model="gemma-3-1b", task="infer", context_len=100_000)
    assert "GiB attention mask" in block(found, "activations").why


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method": "lora", "weight_format": "int8", "gradient_checkpointing": "full"}, "int8 linears hold on to"),
        ({"method": "full", "gradient_checkpointing": "selective-op"}, "every second matrix product"),
        ({"method": "full", "gradient_checkpointing": "selective-attention"}, "attention's core"),
        ({"method": "full", "gradient_checkpointing": "every-2"}, "of one layer in 2"),
    ],
)
def test_what_checkpointing_keeps_is_said(fields: dict[str, Any], words: str) -> None:
    found = answer(model="qwen2.5-0.5b", micro_batch=8, loss="standard", optimizer="sgd", **fields)
    assert words in block(found, "activations").why


@pytest.mark.parametrize("table", [decoders.APPROXIMATE, mixtures.APPROXIMATE])
def test_approximations_in_chinese(table: dict[str, str]) -> None:
    for reason in table.values():
        chinese = in_chinese(reason)
        assert chinese != UNTRANSLATED, reason
        assert not re.search(r"[a-z]+ [a-z]+ [a-z]+", chinese)


DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek_v3", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 512, "q_lora_rank": 256, "kv_lora_rank": 128,
    "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "n_shared_experts": 1, "first_k_dense_replace": 1,
}  # fmt: skip
INT4 = {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}


@pytest.mark.parametrize(
    ("stated", "stored"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": INT4}}, "int4-experts"),
        ({"quant_method": "compressed-tensors"}, "fp8"),
    ],
)
def test_a_config_that_states_its_format(stated: dict[str, Any], stored: str) -> None:
    config = DEEPSEEK | {"quantization_config": stated}
    served, trained = answer(model=config, task="infer").run, answer(model=config, method="lora")
    assert served is not None
    assert served.weight_format == stored
    assert trained.run is not None
    assert trained.run.weight_format is None
    assert any("16 bit" in why for why in notes(trained, "weight_format"))


def test_an_embedding_sized_temporary_is_a_gradient() -> None:
    found = answer(
        model="gpt2", method="full", loss="standard", gradient_checkpointing="none", optimizer="sgd", seq_len=64
    )
    assert block(found, "gradients").bytes > 124_439_808 * 4
    assert block(found, "other").bytes < 1_000_000
