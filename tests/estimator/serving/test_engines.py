"""What the engines' rules imply, whatever the model: monotone, adding up, refusing with a reason and a cure."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.catalogue import find_model
from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Estimate, Run

MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "gemma-3-4b", "deepseek-v2-lite", "qwen3.6-35b-a3b", "gpt-oss-20b")
ENGINES = ("vllm", "sglang", "tgi", "llama.cpp")


def answer(**fields: Any) -> Estimate:
    fields.setdefault("task", "serve")
    return estimate(Run.model_validate(fields))


def tokens(**fields: Any) -> int:
    found = answer(model="llama-3.1-8b", engine="vllm", gpu="H100", context_len=8192, **fields).serving
    assert found is not None
    assert found.kv_tokens is not None
    return found.kv_tokens


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    engine=st.sampled_from(ENGINES),
    length=st.integers(1, 60_000),
    users=st.integers(1, 40),
    gpu=st.sampled_from([None, "RTX 4090", "H200", "24GB"]),
)
def test_blocks_add_up_and_ranges_are_ordered(
    model: str, engine: str, length: int, users: int, gpu: str | None
) -> None:
    found = answer(model=model, engine=engine, context_len=length, concurrency=users, gpu=gpu)
    assert found.per_gpu is not None
    assert found.serving is not None
    per_gpu = found.per_gpu
    assert sum(block.bytes for block in per_gpu.at_peak) == per_gpu.allocated_peak
    assert per_gpu.interval.low <= per_gpu.allocated_peak <= per_gpu.interval.high
    assert per_gpu.device_peak.low <= per_gpu.device_peak.expected <= per_gpu.device_peak.high
    assert all(block.why and block.why_zh for block in per_gpu.at_peak)
    assert (found.fit.verdict is None) == (gpu is None)


@settings(max_examples=40, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    engine=st.sampled_from(ENGINES),
    length=st.integers(1, 30_000),
    more=st.integers(1, 999),
)
def test_more_tokens_never_need_less(model: str, engine: str, length: int, more: int) -> None:
    short, long = (answer(model=model, engine=engine, context_len=size) for size in (length, length + more))
    assert short.serving is not None
    assert long.serving is not None
    assert (short.serving.kv_bytes or 0) <= (long.serving.kv_bytes or 0)


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.3, 0.95), more=st.floats(0.001, 0.05))
def test_a_larger_share_never_holds_fewer_tokens(share: float, more: float) -> None:
    assert tokens(serving={"gpu_memory_utilization": share}) <= tokens(
        serving={"gpu_memory_utilization": min(share + more, 1)}
    )


@pytest.mark.parametrize("model", MODELS)
def test_the_longest_request_is_the_longest(model: str) -> None:
    found = answer(model=model, engine="vllm", gpu="H100", context_len=4096).serving
    assert found is not None
    longest = found.max_len_possible or 0
    fits = [
        answer(model=model, engine="vllm", gpu="H100", context_len=length).serving for length in (longest, longest + 64)
    ]
    assert fits[0] is not None
    assert fits[1] is not None
    assert (fits[0].users_possible or 0) >= 1
    assert longest == find_model(model).architecture.max_positions or (fits[1].users_possible or 0) < 1


def test_the_longest_request_is_alone_whatever_the_users() -> None:
    one, many = (
        answer(model="llama-3.1-8b", engine="vllm", gpu="RTX 4090", context_len=4096, concurrency=users)
        for users in (1, 9)
    )
    assert one.serving is not None
    assert many.serving is not None
    assert one.max is not None
    assert many.max is not None
    assert one.serving.max_len_possible == many.serving.max_len_possible
    assert 8 * many.max.seq_len < one.max.seq_len <= (one.serving.max_len_possible or 0)


def test_a_pool_of_hybrid_layers_is_grouped() -> None:
    found = answer(model="qwen3.5-35b-a3b", engine="vllm", weight_format="fp8", gpu="H200", context_len=10_000).serving
    assert found is not None
    assert found.kv_bytes_per_token == 10 * 2 * 2 * 256 * 2


def test_heads_are_split_and_one_stays() -> None:
    two, sixteen = (
        answer(model="llama-3.1-70b", engine="vllm", parallel={"tensor": ranks}, context_len=1024).serving
        for ranks in (2, 16)
    )
    assert two is not None
    assert sixteen is not None
    assert two.kv_bytes_per_token == 4 * 2 * 80 * 128 * 2
    assert sixteen.kv_bytes_per_token == 2 * 80 * 128 * 2


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(EstimatorError, match="do not divide"):
        answer(model="qwen2.5-7b", engine="vllm", parallel={"tensor": 3}, context_len=1024)


def test_without_blocks_it_says_so_and_how_to_mend_it() -> None:
    found = answer(model="qwen2.5-72b", engine="vllm", gpu="RTX 4090", context_len=8192)
    assert found.fit.verdict == "does_not_fit"
    assert "nothing is left for the KV cache" in found.notes[0].why
    assert "8 cards" in found.notes[0].why


def test_without_blocks_the_engine_is_quoted() -> None:
    found = answer(model="qwen3-14b", engine="vllm", gpu="RTX 5090", context_len=8192, precision="bf16",
                   serving={"gpu_memory_utilization": 0.88})  # fmt: skip
    assert "No available memory for the cache blocks" in found.notes[0].why
    assert "--gpu-memory-utilization 0.96" in found.notes[0].why


def test_sglang_starts_and_refuses_what_is_too_long() -> None:
    found = answer(model="llama-3.1-8b", engine="sglang", gpu="RTX 4090", context_len=131_072)
    assert "sglang starts, but refuses requests" in found.notes[0].why
    assert found.fit.verdict == "does_not_fit"


def test_a_checkpoints_own_block_drafts() -> None:
    """Qwen3.6-27B's has 424,699,392 parameters as published, and one attention layer's cache."""
    run = {"model": "qwen3.6-27b", "engine": "vllm", "gpu": "H200", "context_len": 4096}
    plain, drafting = answer(**run), answer(**run, serving={"draft_model": "mtp"})
    assert plain.serving is not None
    assert drafting.serving is not None
    more = (drafting.serving.weights_bytes or 0) - (plain.serving.weights_bytes or 0)
    assert more == pytest.approx(2 * 424_699_392, rel=0.001)


def test_a_length_that_is_too_long_names_the_longest() -> None:
    found = answer(model="llama-3.1-8b", engine="vllm", gpu="RTX 4090", context_len=131_072)
    assert found.serving is not None
    assert found.fit.verdict == "does_not_fit"
    assert f"--max-model-len to at most {found.serving.max_len_possible:,}" in found.notes[0].why


def test_memory_that_others_hold_stops_the_start() -> None:
    found = answer(model="qwen2.5-0.5b", engine="vllm", gpu="RTX 4090", context_len=2048, reserved_by_others_gib=6)
    assert found.fit.verdict == "does_not_fit"
    assert found.notes[0].field == "serving.gpu_memory_utilization"


def test_requests_beyond_the_cache_wait() -> None:
    found = answer(model="llama-3.1-8b", engine="vllm", gpu="RTX 4090", context_len=8192, concurrency=50)
    assert found.notes[0].field == "concurrency"
    assert found.fit.verdict == "does_not_fit"


def test_layers_move_from_the_card_to_the_host() -> None:
    run = {
        "model": "llama-3.1-70b",
        "engine": "llama.cpp",
        "weight_format": "Q4_K_M",
        "context_len": 4096,
        "gpu": "24GB",
    }
    whole, part = answer(**run), answer(**run, serving={"n_gpu_layers": 30})
    assert whole.per_gpu is not None
    assert part.per_gpu is not None
    assert whole.serving is not None
    assert whole.fit.verdict == "does_not_fit"
    assert part.fit.verdict == "fits"
    assert whole.per_gpu.allocated_peak > part.per_gpu.allocated_peak
    assert part.host.ram > whole.host.ram
    assert 35 <= (whole.serving.layers_possible or 0) <= 45


def test_experts_on_the_host_leave_the_card() -> None:
    run = {"model": "qwen3-30b-a3b", "engine": "llama.cpp", "weight_format": "Q4_K_M", "context_len": 4096}
    whole, part = answer(**run), answer(**run, serving={"moe_on_cpu": True})
    assert whole.serving is not None
    assert part.serving is not None
    assert (part.serving.weights_bytes or 0) < (whole.serving.weights_bytes or 0) / 8
    assert part.host.ram > 15e9


def test_cards_share_the_layers() -> None:
    one, two = (
        answer(model="llama-3.1-8b", engine="llama.cpp", weight_format="Q4_K_M", context_len=8192, gpu_count=count)
        for count in (1, 2)
    )
    assert one.serving is not None
    assert two.serving is not None
    assert one.per_gpu is not None
    assert two.per_gpu is not None
    assert one.serving.weights_bytes == two.serving.weights_bytes
    assert two.per_gpu.allocated_peak < 0.7 * one.per_gpu.allocated_peak


def test_slots_and_drafts_cost_tokens() -> None:
    plain = tokens()
    assert tokens(serving={"lora_slots": 4}) < plain
    assert tokens(serving={"draft_model": "llama-3.2-1b"}) < plain


def test_ollama_takes_gguf_and_its_own_context() -> None:
    found = answer(model="llama-3.1-8b", engine="ollama", gpu="RTX 3060 12GB", task="infer")
    assert found.run is not None
    assert found.run.weight_format == "Q4_K_M"
    assert found.run.context_len == 4096
    with pytest.raises(EstimatorError, match="GGUF"):
        answer(model="llama-3.1-8b", engine="ollama", weight_format="awq-4bit-g128")


def test_an_unknown_cache_type_is_refused() -> None:
    with pytest.raises(EstimatorError, match="not known"):
        answer(model="llama-3.1-8b", engine="vllm", kv_cache={"dtype": "int3"}, context_len=1024)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(EstimatorError, match="known are hf, vllm"):
        answer(model="llama-3.1-8b", engine="triton")


def test_layers_that_read_another_layers_cache_have_none() -> None:
    """Gemma 4 E2B: 15 of 35 layers, 3 of them over the whole context."""
    found = answer(model="google/gemma-4-E2B-it", engine="vllm", context_len=1024).serving
    assert found is not None
    assert found.kv_bytes_per_token == 3 * 2 * 512 * 2 + 12 * 2 * 256 * 2


def test_sglang_keeps_slots_for_states_apart() -> None:
    """Five a running request and one more, each of 48 layers' states of 48 x 128 x 128 in fp32 and a window."""
    run = {"model": "qwen3.6-27b", "engine": "sglang", "gpu": "H200", "context_len": 4096}
    few, many = (answer(**run, serving={"max_num_seqs": seqs}) for seqs in (4, 8))
    assert few.serving is not None
    assert many.serving is not None
    state = 48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2)
    assert (few.serving.kv_bytes or 0) - (many.serving.kv_bytes or 0) == 4 * 5 * state


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tgi", "llama.cpp"])
def test_engines_keep_no_fp32_unless_told(engine: str) -> None:
    found = answer(model="EleutherAI/gpt-j-6b", engine=engine, context_len=1024)
    told = answer(model="EleutherAI/gpt-j-6b", engine=engine, context_len=1024, precision="fp32")
    assert found.serving is not None
    assert told.serving is not None
    assert (told.serving.weights_bytes or 0) > 1.9 * (found.serving.weights_bytes or 0)
    assert any(one.field == "precision" and "16 bit" in one.why for one in found.assumptions)


def test_vllm_packs_the_experts_that_bitsandbytes_itself_leaves() -> None:
    run = {"model": "qwen3-30b-a3b", "weight_format": "nf4", "context_len": 1024}
    served, generated = answer(**run, engine="vllm").serving, answer(**run, engine="hf", task="infer").serving
    assert served is not None
    assert generated is not None
    assert (served.weights_bytes or 0) < 20e9 < 50e9 < (generated.weights_bytes or 0)


@pytest.mark.parametrize("engine", ["llama.cpp", "vllm", "exllama"])
def test_encoders_beside_decoders_are_dealt_out_too(engine: str) -> None:
    found = answer(model="google-t5/t5-base", engine=engine, context_len=512)
    assert found.serving is not None
    assert found.serving.weights_bytes


@pytest.mark.parametrize(("users", "cells"), [(1, 1536), (4, 4608)])
def test_llama_cpp_windows_have_the_cells_that_it_prints(users: int, cells: int) -> None:
    """Printed by llama.cpp b11549 for Gemma 3 27B's shape at a context of 32,768: 52 windowed layers of 62."""
    found = answer(
        model="gemma-3-27b", engine="llama.cpp", weight_format="Q4_0", context_len=32768 // users, concurrency=users
    ).serving
    assert found is not None
    assert found.kv_bytes == 2 * 16 * 128 * 2 * (10 * 32768 + 52 * cells)


def test_llama_cpp_keeps_a_latent_once() -> None:
    """36 MiB for two layers of DeepSeek-V3's shape and 16,384 tokens, as b11549 prints."""
    found = answer(model="deepseek-v3", engine="llama.cpp", weight_format="Q4_0", context_len=16384).serving
    assert found is not None
    assert found.kv_bytes == 61 * (36 << 20) // 2


@pytest.mark.parametrize(
    ("build", "model", "length", "ubatch", "mib"),
    [
        ("b5300", "gemma-3-27b", 32768, 512, 522.62),
        ("b5300", "command-r-v01", 4096, 512, 516.00),
        ("b5300", "qwen2.5-14b", 32768, 512, 307.00),
        ("b5300", "llama-3-8b", 32768, 1024, 517.00),
        ("b5300", "llama-3-8b", 98304, 512, 320.01),
        ("b5300", "llama-3.1-70b", 131072, 512, 448.01),
        ("b5300", "qwen3-30b-a3b", 4096, 512, 304.75),
        ("b9093", "glm-4-32b-0414", 8192, 512, 320.00),
        ("b9093", "qwen3-8b", 8192, 512, 312.75),
    ],
)
def test_llama_cpp_buffers_are_those_that_it_prints(
    build: str, model: str, length: int, ubatch: int, mib: float
) -> None:
    """Printed by llama-cpp-python 0.3.9 and 0.3.36 (all logits kept) for files of these shapes, flash attention on."""
    found = answer(
        model=model, engine="llama.cpp", weight_format="Q4_0", context_len=length, attention="flash2",
        serving={"ubatch": ubatch}, stack={"llama.cpp": build},
    ).serving  # fmt: skip
    assert found is not None
    assert (found.compute_buffer_bytes or 0) / 2**20 == pytest.approx(mib, abs=0.02)


def test_a_build_that_is_not_stated_is_between_old_and_new_ones() -> None:
    run = {"model": "llama-3.1-8b", "engine": "llama.cpp", "weight_format": "Q4_0", "context_len": 4096}
    old, new, unknown = (
        answer(**run, stack={"llama.cpp": build} if build else None).serving for build in ("b5300", "b9093", None)
    )
    assert old is not None
    assert new is not None
    assert unknown is not None
    assert (unknown.compute_buffer_bytes or 0) * 2 == (old.compute_buffer_bytes or 0) + (new.compute_buffer_bytes or 0)


def test_ollama_runs_gpt_oss_as_published_and_image_towers_with_their_models() -> None:
    oss, seeing, blind = (
        answer(model=model, engine=engine, task="infer", context_len=4096, weight_format=fmt)
        for model, engine, fmt in (
            ("gpt-oss-20b", "ollama", None), ("gemma-3-27b", "ollama", None), ("gemma-3-27b", "llama.cpp", "Q4_K_M"),
        )
    )  # fmt: skip
    assert oss.run is not None
    assert oss.run.weight_format == "mxfp4"
    assert seeing.per_gpu is not None
    assert blind.per_gpu is not None
    towers = [block.bytes for block in seeing.per_gpu.at_peak if block.item == "vision_tower"]
    assert towers == [seeing.per_gpu.allocated_peak - blind.per_gpu.allocated_peak]
    assert 0.8e9 < towers[0] < 0.9e9


def test_users_of_sglang_have_room_for_their_logits() -> None:
    run = {"model": "llama-3.1-8b", "engine": "sglang", "gpu": "48GB", "context_len": 100,
           "serving": {"gpu_memory_utilization": 0.95}}  # fmt: skip
    found = answer(**run)
    assert found.max is not None
    assert found.max.micro_batch > 1
    assert answer(**run, concurrency=found.max.micro_batch).fit.verdict == "fits"


@pytest.mark.parametrize(
    ("changed", "gib"),
    [
        ({}, 1.93),
        ({"gpu": "B200"}, 1.93),
        ({"stack": {"vllm": "0.16.0"}}, 0.55),
        ({"gpu": "A100 80GB"}, 0.55),
        ({"gpu": "H100 PCIe"}, 0.55),
        ({"serving": {"cuda_graphs": False}}, 0.55),
        ({"model": "dbrx"}, 0.55),
        ({"parallel": {"tensor": 2, "pipeline": 2}}, 0.55),
        ({"parallel": {"tensor": 2, "pipeline": 2}, "stack": {"vllm": "0.33.0"}}, 1.93),
    ],
)
def test_the_fused_all_reduce_keeps_a_workspace(changed: dict[str, Any], gib: float) -> None:
    """Two ranks: 0.55 GiB outside the allocator, 1.38 more where vLLM's compiled models fuse the all-reduce."""
    run = {"model": "llama-3.1-70b", "engine": "vllm", "gpu": "H100", "context_len": 4096, "parallel": {"tensor": 2},
           "stack": {"vllm": "0.18.0"}}  # fmt: skip
    found = answer(**(run | changed)).serving
    assert found is not None
    assert (found.non_torch_bytes or 0) / 2**30 == pytest.approx(gib, abs=0.001)


@pytest.mark.parametrize(
    ("model", "gpu"), [("gpt-oss-120b", "24GB"), ("qwen3-30b-a3b", "12GB"), ("deepseek-v2-lite", "8GB")]
)
def test_the_fewest_layers_keep_their_experts_on_the_host(model: str, gpu: str) -> None:
    run = {"model": model, "engine": "llama.cpp", "gpu": gpu, "context_len": 8192, "task": "infer"}
    run |= {} if model.startswith("gpt") else {"weight_format": "Q4_K_M"}
    kept = next(one.value for one in answer(**run).notes if one.field == "serving.moe_on_cpu")
    assert isinstance(kept, int)
    verdicts = [answer(**run, serving={"moe_on_cpu": count}).fit.verdict for count in (kept, kept - 1)]
    assert verdicts[0] == "fits"
    assert verdicts[1] != "fits"
    small = answer(**run, host_ram_gib=2)
    assert all(one.field != "serving.moe_on_cpu" for one in small.notes)


@pytest.mark.parametrize(
    ("model", "version", "layers"),
    [("gpt-oss-20b", None, 12 + 0.8 * 12), ("gpt-oss-20b", "0.4.10", 24), ("gemma-3-4b", None, 34)],
)
def test_sglang_has_a_pool_for_windows(model: str, version: str | None, layers: float) -> None:
    """SGLang 0.5.23 gives windowed layers of gpt-oss 0.8 of the tokens that the others have."""
    found = answer(model=model, engine="sglang", gpu="H200", context_len=4096,
                   stack={"sglang": version} if version else None).serving  # fmt: skip
    arch = find_model(model).architecture
    assert found is not None
    assert found.kv_bytes_per_token == int(layers * 2 * arch.kv_heads * arch.head_dim * 2)
