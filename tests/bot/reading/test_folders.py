"""Models that are named by a folder of somebody's disk."""

import pytest

from bot import service
from bot.intake.understand import understand
from bot.reading.read import read_paste


@pytest.mark.parametrize(
    ("folder", "model"),
    [
        ("/data/models/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("./Qwen2.5-7B-Instruct/", "Qwen2.5-7B-Instruct"),
        ("../weights/Mistral-7B-v0.3", "Mistral-7B-v0.3"),
        ("~/models/Meta-Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B-Instruct"),
        (r"D:\llm\gemma-2-9b-it", "gemma-2-9b-it"),
        ("/root/.cache/modelscope/hub/Qwen/Qwen2___5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("/hf/hub/models--google--gemma-2-9b-it/snapshots/1a2b3c4d", "google/gemma-2-9b-it"),
        ("/ckpt/llama-3.1-8b/checkpoint-1200", "llama-3.1-8b"),
        ("/data/models/qwen2.5-7b-mine-v3", "qwen2.5-7b-mine-v3"),
        ("google/gemma-2-9b-it", "google/gemma-2-9b-it"),
    ],
)
def test_the_folder_names_the_model(folder: str, model: str) -> None:
    reading = read_paste(f"vllm serve {folder} --max-model-len 8192 --tensor-parallel-size 2")
    assert reading.run["model"] == model


@pytest.mark.parametrize("folder", ["/data/models/mine", "./output/v0-2024/checkpoint-12", "/data1/exp2/last"])
def test_a_folder_that_names_none_stays_as_it_is(folder: str) -> None:
    assert read_paste(f"vllm serve {folder} --max-model-len 8192").run["model"] == folder


def test_the_format_of_an_upload_is_kept() -> None:
    run = read_paste("vllm serve /models/Qwen2.5-7B-Instruct-AWQ --max-model-len 8192").run
    assert run["model"].startswith("Qwen2.5-7B-Instruct") and "awq" in str(run.get("weight_format"))


def test_a_folder_is_estimated_as_the_model_in_it() -> None:
    answer = service.ask("vllm serve /data/models/Qwen2.5-7B-Instruct --max-model-len 8192 -tp 2\non 2x4090")
    assert not answer.estimates[0].error


def test_words_with_modelscopes_dots_name_one_model() -> None:
    (run,) = understand("/root/.cache/modelscope/hub/Qwen/Qwen2___5-7B-Instruct vllm 4090").runs
    assert run["resolved_model"] == "Qwen/Qwen2.5-7B"
