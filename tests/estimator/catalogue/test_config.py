import json
from pathlib import Path
from typing import Any

import pytest

from estimator.architecture import Architecture, from_config
from estimator.catalogue.models import find_model
from estimator.errors import EstimatorError
from estimator.inventory import inventory

DATA = Path(__file__).parents[2] / "data"
TRACED = [json.loads(line) for line in (DATA / "traced.jsonl").read_text(encoding="utf-8").splitlines()]

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def read(**changes: Any) -> Architecture:
    return from_config({**LLAMA, **changes})


@pytest.mark.parametrize("case", TRACED, ids=lambda case: str(case["id"]))
def test_traced_configs_count_as_the_tracer_counted(case: dict[str, Any]) -> None:
    if "params" not in case:
        pytest.skip("the row has no count")
    adapters = case["trainable"] if case["run"].get("method") in ("lora", "qlora", "dora") else 0
    assert case["params"] - inventory(from_config(case["run"]["model"])).numel in (0, adapters)


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"]
)
def test_a_missing_dimension_is_named(key: str) -> None:
    config = {name: value for name, value in LLAMA.items() if name != key}
    with pytest.raises(EstimatorError, match=key):
        from_config(config)


def test_a_missing_type_is_named() -> None:
    with pytest.raises(EstimatorError, match="model_type"):
        from_config({"hidden_size": 8})


@pytest.mark.parametrize("value", [-1, "many", 10**12, 2.5, True, [4]])
def test_an_impossible_dimension_is_refused(value: Any) -> None:
    with pytest.raises(EstimatorError, match="hidden_size"):
        read(hidden_size=value)


def test_a_million_layers_are_refused_at_once() -> None:
    with pytest.raises(EstimatorError, match="num_hidden_layers"):
        read(num_hidden_layers=10**6)


def test_what_is_left_out_takes_the_class_default() -> None:
    arch = read()
    assert (arch.head_dim, arch.kv_heads, arch.max_positions, arch.tied) == (64, 8, 2048, False)
    assert not arch.qkv_bias


def test_other_spellings_are_understood() -> None:
    arch = from_config({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257})
    assert (arch.hidden, arch.layers, arch.intermediate, arch.positions) == (768, 12, 3072, "learned")
    assert (arch.dropout, arch.attention_dropout, arch.embedding_dropout) == (0.1, 0.1, 0.1)


def test_opt_projects_its_embedding() -> None:
    config = {"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "vocab_size": 50272}
    arch = from_config({**config, "num_attention_heads": 16, "word_embed_proj_dim": 512, "do_layer_norm_before": False})
    assert (arch.embedding_dim, arch.norm_first, arch.dropout, arch.attention_dropout) == (512, False, 0.1, 0.0)
    assert inventory(arch).numel == 331_196_416


def test_falcon_says_multi_query_instead_of_a_count() -> None:
    base = {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_hidden_layers": 2,
        "num_attention_heads": 71,
        "vocab_size": 64,
    }
    assert from_config(base).kv_heads == 1
    assert from_config({**base, "multi_query": False}).kv_heads == 71
    newer = {
        **base,
        "hidden_size": 8192,
        "num_attention_heads": 128,
        "new_decoder_architecture": True,
        "num_kv_heads": 8,
    }
    assert from_config(newer).kv_heads == 8
    assert [place for place, _name in from_config(newer).norm_names] == ["pre_attention", "pre_mlp"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, ("sliding",) * 4),
        ({"model_type": "mistral", "sliding_window": None}, ("full",) * 4),
        ({"model_type": "gemma2"}, ("sliding", "full", "sliding", "full")),
        ({"model_type": "cohere2", "sliding_window_pattern": 2}, ("sliding", "full", "sliding", "full")),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 3}, ("full",) * 3 + ("sliding",)),
        ({"model_type": "qwen2"}, ("full",) * 4),
        ({"model_type": "gpt_oss", "layer_types": ["full_attention"] * 4, "num_local_experts": 4,
          "num_experts_per_tok": 2}, ("full",) * 4),
        ({"model_type": "qwen3_next", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
         ("linear", "linear", "linear", "full")),
    ],
)  # fmt: skip
def test_layer_patterns(changes: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert read(num_hidden_layers=4, head_dim=64, **changes).layer_types == expected


def test_an_unknown_layer_kind_is_refused() -> None:
    with pytest.raises(EstimatorError, match="layer_types"):
        read(layer_types=["full_attention"] * 15 + ["telepathy"])


def test_nested_text_configs_are_read_through() -> None:
    text = {key: value for key, value in LLAMA.items() if key != "num_attention_heads"}
    arch = from_config(
        {"model_type": "llava", "text_config": text, "vision_config": {"model_type": "clip_vision_model"}}
    )
    assert (arch.model_type, arch.heads) == ("llama", 32)


def test_gemma3_takes_its_class_defaults_inside_a_multimodal_config() -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    arch = from_config({"model_type": "gemma3", "text_config": {**text, "sliding_window": 1024}})
    assert (arch.heads, arch.kv_heads, arch.head_dim, arch.vocab, arch.tied) == (8, 4, 256, 262208, True)
    assert inventory(arch).numel == 3_880_263_168


def test_a_type_that_is_not_described_is_counted_like_a_llama_and_says_so() -> None:
    arch = read(model_type="brand_new")
    assert "not described" in (arch.approximate or "")
    assert inventory(arch).numel == inventory(read(tie_word_embeddings=arch.tied)).numel


def test_a_type_that_is_not_described_needs_its_dimensions() -> None:
    with pytest.raises(EstimatorError, match="nearest known ones"):
        from_config({"model_type": "lama", "hidden_size": 8})


def test_dtype_is_kept_in_either_spelling() -> None:
    assert read(torch_dtype="bfloat16").default_dtype == "bfloat16"
    assert read(dtype="float16").default_dtype == "float16"


def test_a_llava_config_counts_its_tower() -> None:
    text = {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24}
    text |= {"num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}
    tower = {"model_type": "clip_vision_model", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    tower |= {"intermediate_size": 4096, "image_size": 336, "patch_size": 14, "projection_dim": 768}
    match = find_model({"model_type": "llava", "text_config": text, "vision_config": tower})
    # As transformers 5.24.0 builds the model: 494,032,768 + 303,507,456 + 1,722,112.
    assert match.params_total == 799_262_336
    assert match.architecture.vision is not None
    assert match.architecture.vision.tokens_per_image == 576
