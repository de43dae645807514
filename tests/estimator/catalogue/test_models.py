import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.catalogue import aliases
from estimator.catalogue.models import find_model, model_names
from estimator.errors import EstimatorError

QWEN = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}


@pytest.mark.parametrize(
    ("name", "model_id", "how"),
    [
        ("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B", "exact"),
        ("qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", "exact"),
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B", "exact"),
        ("Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", "exact"),
        ("QWEN 2.5 0.5B", "Qwen/Qwen2.5-0.5B", "squeezed"),
        ("tiny-llama-1.1b", "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T", "squeezed"),
        ("deepseek-r1:14b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "exact"),
        ("lama 3 8b", "meta-llama/Meta-Llama-3-8B", "fuzzy"),
        ("mistal 7b", "mistralai/Mistral-7B-v0.3", "fuzzy"),
        ("vicuna-7b-v1.5-16k", "lmsys/vicuna-7b-v1.5", "fuzzy"),
        ("llama 33b", "huggyllama/llama-30b", "fuzzy"),
        ("bloom 7b", "bigscience/bloom-7b1", "fuzzy"),
        ("llama 70b", "meta-llama/Llama-3.1-70B", "fuzzy"),
        ("deepseek 7b", "deepseek-ai/deepseek-llm-7b-base", "fuzzy"),
        ("百川13b", "baichuan-inc/Baichuan-13B-Base", "fuzzy"),
        ("深度求索 7b", "deepseek-ai/deepseek-llm-7b-base", "fuzzy"),
        ("phi 3.8b", "microsoft/Phi-4-mini-instruct", "fuzzy"),
        ("qwen", "Qwen/Qwen2.5-7B", "ambiguous"),
        ("千问", "Qwen/Qwen2.5-7B", "ambiguous"),
        ("qwen2.5", "Qwen/Qwen2.5-7B", "ambiguous"),
        ("0.5b", "Qwen/Qwen2.5-0.5B", "bare size"),
        ("7B", "Qwen/Qwen2.5-7B", "bare size"),
        ("500M", "Qwen/Qwen2.5-0.5B", "bare size"),
        ("model:70b", "meta-llama/Llama-3.1-70B", "bare size"),
        ("13B模型", "meta-llama/Llama-2-13b-hf", "bare size"),
        ("8x7b", "mistralai/Mixtral-8x7B-v0.1", "bare size"),
    ],
)
def test_names_are_found_as_said(name: str, model_id: str, how: str) -> None:
    match = find_model(name)
    assert (match.id, match.how) == (model_id, how)


@pytest.mark.parametrize(
    ("name", "model_id", "weight_format"),
    [
        ("TheBloke/Mistral-7B-v0.1-GPTQ", "mistralai/Mistral-7B-v0.1", "gptq-4bit-g128"),
        ("TheBloke/Llama-2-7B-GPTQ-4bit-32g", "meta-llama/Llama-2-7b-hf", "gptq-4bit-g32"),
        ("TheBloke/Llama-2-13B-chat-GGUF", "meta-llama/Llama-2-13b-hf", "Q4_K_M"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B", "gptq-4bit-g128"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "Qwen/Qwen2.5-7B", "gptq-8bit-g128"),
        ("Qwen/Qwen2.5-Coder-7B-Instruct-AWQ", "Qwen/Qwen2.5-Coder-7B", "awq-4bit-g128"),
        ("Qwen-72B-Chat-Int4", "Qwen/Qwen-72B", "gptq-4bit-g128"),
        ("Qwen/Qwen3-32B-FP8", "Qwen/Qwen3-32B", "fp8"),
        ("nvidia/Llama-3.1-8B-Instruct-NVFP4", "meta-llama/Llama-3.1-8B", "nvfp4"),
        ("gpt-oss-20b-MXFP4", "openai/gpt-oss-20b", "mxfp4"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "meta-llama/Llama-3.1-8B", "nf4-dq"),
        ("unsloth/Qwen3-14B-Base-unsloth-bnb-4bit", "Qwen/Qwen3-14B", "nf4-dq"),
        ("unsloth/Qwen3-0.6B", "Qwen/Qwen3-0.6B", None),
        ("Llama-3.2-3B-Instruct-Q8_0.gguf", "meta-llama/Llama-3.2-3B", "Q8_0"),
        ("qwen2.5:7b-instruct-q4_K_M", "Qwen/Qwen2.5-7B", "Q4_K_M"),
        ("llama3.1:70b-instruct-q4_0", "meta-llama/Llama-3.1-70B", "Q4_0"),
        ("llama-3-8b@iq4_xs", "meta-llama/Meta-Llama-3-8B", "IQ4_XS"),
        ("turboderp/Llama-3-8B-exl2-4.0bpw", "meta-llama/Meta-Llama-3-8B", "exl2-4bpw"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B", "gptq-4bit-g128"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", None),
    ],
)
def test_quantised_uploads_mean_their_base_and_a_format(name: str, model_id: str, weight_format: str | None) -> None:
    match = find_model(name)
    assert (match.id, match.weight_format) == (model_id, weight_format)


def test_a_format_that_was_read_from_a_name_is_said() -> None:
    assert "Q4_K_M" in find_model("TheBloke/Llama-2-13B-chat-GGUF").note


def test_a_stand_in_is_said_in_both_languages() -> None:
    match = find_model("0.5b")
    assert "stands in" in match.note
    assert "代表" in match.note_zh
    assert match.candidates[0] == match.id


def test_an_ambiguous_name_lists_its_candidates() -> None:
    match = find_model("qwen")
    assert "several models" in match.note
    assert len(match.candidates) > 10


def test_a_misspelling_asks_back() -> None:
    match = find_model("lama 3 8b")
    assert "did you mean" in match.note
    assert match.did_you_mean == (match.id,)


@pytest.mark.parametrize("name", ["5.5b", "76B"])
def test_a_size_without_a_stand_in_names_its_neighbours(name: str) -> None:
    with pytest.raises(EstimatorError, match="nearest sizes are") as caught:
        find_model(name)
    assert caught.value.message_zh != caught.value.message


@pytest.mark.parametrize("name", ["banana", "../../etc/passwd", "", "   ", "/etc/passwd", "C:\\x", "~root", "a" * 5000])
def test_unknown_names_are_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(EstimatorError, match=r"config\.json") as caught:
        find_model(name)
    assert "\n" not in str(caught.value)
    assert caught.value.field == "model"


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen3.9-27B", "DeepSeek-V3 16B", "glm-4v-9b", "Llama2-1B", "answerdotai/ModernBERT-large"]
)
def test_another_size_or_kind_is_not_taken_for_a_misspelling(name: str) -> None:
    with pytest.raises(EstimatorError, match="nearest are"):
        find_model(name)


def test_a_config_is_a_model() -> None:
    match = find_model(QWEN)
    assert (match.how, match.params_total) == ("config", 494_032_768)


@pytest.mark.parametrize(
    ("stated", "weight_format"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq-4bit-g32"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq-4bit-g128"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
        ({"load_in_4bit": True, "quant_method": "bitsandbytes", "bnb_4bit_use_double_quant": True}, "fp4-dq"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "unheard of"}, None),
    ],
)
def test_a_config_states_its_format(stated: dict[str, Any], weight_format: str | None) -> None:
    assert find_model({**QWEN, "quantization_config": stated}).weight_format == weight_format


def test_every_alias_is_found() -> None:
    for key in [*aliases.all_squeezed()][::97]:
        assert aliases.squeezed_key(key) is not None


def test_the_alias_tables_are_whole() -> None:
    assert len(aliases.names()) + len(aliases._readings()) == 5976


def test_completion_prefers_what_begins_so() -> None:
    names = model_names("qwen2.5-0", 5)
    assert names[0] == "Qwen/Qwen2.5-0.5B"
    assert len(model_names("q", 25)) == 25
    assert model_names("no such model", 25) == []


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_answered_or_refused(text: str) -> None:
    try:
        match = find_model(text)
    except EstimatorError as error:
        assert str(error)
    else:
        assert match.params_total > 0


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(["qwen", "llama", "7b", "-", "/", "..", "gguf", "awq", "q4_k_m", "x", "2.5", " "]), max_size=12
    )
)
def test_any_mixture_of_name_parts_is_answered_or_refused(parts: list[str]) -> None:
    try:
        find_model("".join(parts))
    except EstimatorError as error:
        assert error.field == "model"


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*QWEN, "head_dim", "text_config", "layer_types", "num_experts", "sliding_window"]),
        st.one_of(
            st.none(), st.booleans(), st.integers(-5, 10**12), st.floats(), st.text(string.ascii_letters, max_size=5),
            st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
        ),
    )
)  # fmt: skip
def test_any_config_is_counted_or_refused(changes: dict[str, Any]) -> None:
    try:
        match = find_model({**QWEN, **changes})
    except EstimatorError as error:
        assert str(error)
    else:
        assert match.params_total >= 0


def test_models_of_the_same_size_are_told() -> None:
    assert "meta-llama/Meta-Llama-3-70B" in find_model("llama 70b").note
