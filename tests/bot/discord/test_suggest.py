"""What the boxes offer: at most 25, never too long, each one a thing that the estimator knows."""

from hypothesis import given
from hypothesis import strategies as st

from bot.discord import suggest
from bot.intake.typed import typed_question
from estimator.catalogue import find_gpu, find_model, rows


@given(st.text(max_size=40))
def test_whatever_is_typed_the_list_is_within_discords_limits(typed: str) -> None:
    for offer in (suggest.models, suggest.gpus):
        found = offer(typed)
        assert len(found) <= 25 and len({one.value for one in found}) == len(found)
        assert all(1 <= len(one.label) <= 100 and 1 <= len(one.value) <= 100 for one in found)


def test_every_model_is_offered_and_means_itself() -> None:
    offered = {one.value for one in suggest._models()}
    assert len(offered) >= len(rows.model_ids()) - 1
    for model_id in offered:
        assert find_model(model_id).id == model_id
        assert suggest.models(model_id)[0].value == model_id


def test_every_card_that_is_offered_is_the_card_that_is_counted() -> None:
    for value in (one.value for one in suggest._cards()):
        run = typed_question({"model": "7b", "method": "lora", "gpu": value}).spoken[0]
        assert find_gpu(run["gpu"]).name == find_gpu(value).name and run.get("gpu_count") is None


def test_every_card_that_is_offered_is_known() -> None:
    values = {one.value for one in suggest._cards()}
    assert {find_gpu(value).vendor for value in values} >= {"NVIDIA", "AMD", "Apple"}
    assert {"RTX 4090", "Quadro RTX 6000 24GB", "Apple M4 16GB", "H100 SXM5 80GB"} <= values


def test_the_likeliest_comes_first() -> None:
    assert suggest.models("qwen2.5 7b")[0].value == "Qwen/Qwen2.5-7B"
    assert suggest.models("llama3 8b")[0].value == "meta-llama/Meta-Llama-3-8B"
    assert suggest.models("0.5b")[0].value == "Qwen/Qwen2.5-0.5B"
    assert suggest.models("qwn2.5-7b")[0].value == "Qwen/Qwen2.5-7B"
    assert suggest.gpus("24gb")[0].value == "24GB"
    assert suggest.gpus("a100 80")[0].value == "A100 PCIe 80GB"


def test_a_size_offers_every_card_that_has_it() -> None:
    assert {"24GB", "RTX 3090", "RTX 4090"} <= {one.value for one in suggest.gpus("24")}


def test_nothing_typed_offers_what_is_common() -> None:
    assert [one.value for one in suggest.gpus("")][:4] == ["8GB", "12GB", "16GB", "24GB"]
    assert any("7B" in one.label for one in suggest.models(" "))
