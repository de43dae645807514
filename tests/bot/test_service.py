"""The one door."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot import service
from bot.service import ask, estimate, run_of, told
from estimator.errors import EstimatorError
from estimator.schema import Estimate, Run

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def forget_what_the_hub_said() -> None:
    service._config_on_hub.cache_clear()


def test_an_answer_carries_what_was_understood_and_why() -> None:
    found = ask("qwen2.5-0.5b lora 8GB seq 2k")
    assert found.reply == "answer"
    assert found.runs[0]["seq_len"] == 2048
    assert {one.field for one in found.readings} >= {"model", "method", "seq_len"}
    assert found.estimates[0].fit.verdict == "fits"


def test_every_number_of_the_text_comes_from_the_estimate() -> None:
    found = ask("qwen2.5-0.5b lora 8GB")
    data = json.loads(found.model_dump_json(by_alias=True))
    for figure in data["numbers"]:
        value = data
        for part in figure["from"].replace("[", ".").replace("]", "").split("."):
            value = value[int(part)] if part.isdigit() else value[part]
        scale = {"GiB": 2**30, "MiB": 2**20}.get(figure["unit"], 1)
        assert isinstance(value, str) or figure["value"] == pytest.approx(value / scale, abs=0.06)


def test_no_card_gives_the_smallest_that_holds_it() -> None:
    found = ask("how much vram for qwen2.5-7b qlora?")
    assert found.smallest_card_gb[0] in range(8, 17)
    assert f"{found.smallest_card_gb[0]} GB" in found.text


def test_the_largest_model_that_fits_is_looked_for() -> None:
    found = ask("what size model can I lora on a 3090?")
    verdicts = [one.fit.verdict for one in found.estimates]
    assert verdicts[0] == "fits"
    assert verdicts[-1] == "does_not_fit"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("/vram model:banana gpu:24GB", "model"),
        ("model: ../../etc/passwd gpu: 24GB", "model"),
        ("7b lora gpu:banana", "gpu"),
    ],
)
def test_what_nobody_knows_is_asked_about(text: str, missing: str) -> None:
    found = ask(text)
    assert found.reply == "clarify"
    assert found.missing[0] == missing
    assert "known as" in found.text


def test_no_mention_comes_back() -> None:
    assert "@" not in ask("/vram model:@everyone gpu:24GB").text


@pytest.mark.parametrize(
    ("fields", "model", "gpu"),
    [
        ({"model": "7b", "gpu": "4090", "memory_gb": 24.0}, "7b", "4090"),
        ({"model": "7b", "gpu": "V100S", "memory_gb": 22.0}, "7b", "V100S 22GB"),
        ({"model": "76b", "resolved_model": "Qwen/Qwen2.5-72B", "params_b": 76}, "Qwen/Qwen2.5-72B", None),
    ],
)
def test_the_run_behind_the_words(fields: dict[str, object], model: str, gpu: str | None) -> None:
    run = run_of(dict(fields))
    assert (run.model, run.gpu) == (model, gpu)


def test_a_hub_id_that_the_catalogue_lacks_is_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def fetch(name: str, cache: Path) -> SimpleNamespace:
        asked.append((name, cache))
        return SimpleNamespace(config=LLAMA)

    monkeypatch.setenv("VRAM_BOT_DATA", str(tmp_path))
    monkeypatch.setattr("bot.hub.fetch_model", fetch)
    run = Run(model="nobody/zzzz-unheard-of", method="full")
    assert estimate(run).per_gpu is not None
    assert estimate(run).per_gpu is not None
    assert asked == [("nobody/zzzz-unheard-of", tmp_path / "cache" / "hub")]


def test_what_the_hub_cannot_say_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(name: str, cache: Path) -> None:
        raise EstimatorError("paste its config.json", "请粘贴 config.json", "model")

    monkeypatch.setattr("bot.hub.fetch_model", fetch)
    with pytest.raises(EstimatorError, match=r"paste its config\.json"):
        estimate(Run(model="nobody/zzzz-unheard-of"))


def test_a_plain_unknown_name_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.hub.fetch_model", lambda *_: pytest.fail("looked up"))
    with pytest.raises(EstimatorError, match="known as"):
        estimate(Run(model="zzzzqqqq"))


def test_a_config_can_be_told() -> None:
    found = estimate(Run(model=LLAMA, method="full", gpu="8GB"))
    assert told({"model": LLAMA, "method": "full", "gpu": "8GB"}, found, "en").startswith("config.json · full")


def test_an_estimate_without_figures_tells_its_problem(estimate: Estimate) -> None:
    failed = Estimate.model_validate(
        {"error": {"field": "stage", "message": "not estimated yet", "message_zh": "暂不支持"}}
    )
    assert told({"model": "7b"}, failed, "zh").endswith("暂不支持")
    assert estimate.per_gpu is not None


def test_a_model_of_the_catalogue_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.hub.fetch_model", lambda *_: pytest.fail("looked up"))
    assert estimate(Run(model="google-t5/t5-base")).per_gpu is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpt-4 lora", "weights of GPT-4 are not published"),
        ("GPT-4 要多少显存", "GPT-4 的权重没有公开"),
        ("foobar 7b lora", 'No model family is known as "foobar"'),
        ("gemma-3-27b-it lora", "gemma-3-27b-it (same architecture as gemma-3-27b-pt)"),
        ("7b qlora 8bit", "QLoRA r16 int8"),
        ("llama 70b lora", 'read "llama 70b" as meta-llama/Llama-3.1-70B'),
        ("/vram model:7b metod:lora", 'no option "metod"; did you mean method'),
        ("/vram model:7b method:foo", "write one of full, freeze, lora"),
        ("/vram model:7b method:lora rank:99999999999", "from 1 to 1,000,000"),
    ],
)
def test_what_is_said(text: str, words: str) -> None:
    assert words in ask(text).text


@pytest.mark.parametrize("text", ["7b lora V100", "7b lora bf16 T4"])
def test_that_a_card_has_no_bf16_is_said_once(text: str) -> None:
    assert ask(text).text.count("no bf16") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("how big is the KV cache of llama 3 8b at 32k", "4.0 GiB for 33,023 tokens, 131,072 B each"),
        ("mistral 7b 8k 上下文的kv缓存多大", "个 token，共 1.0 GiB（每个 131,072 字节）"),
    ],
)
def test_a_cache_that_is_asked_about_is_told(text: str, words: str) -> None:
    found = ask(text)
    assert [run["task"] for run in found.runs] == ["infer"]
    assert words in found.text


def test_a_cache_in_passing_does_not_stop_a_training() -> None:
    assert {run["task"] for run in ask("lora finetune qwen2.5 7b with kv cache off, 24gb").runs} == {"train"}


@pytest.mark.parametrize(("word", "engine"), [("kv fp8", "vllm"), ("kv q8_0", "llama.cpp")])
def test_a_type_of_cache_names_the_engine_that_has_it(word: str, engine: str) -> None:
    (run,) = ask(f"qwen2.5 7b 32k {word} on a 4090").runs
    assert run["engine"] == engine


@pytest.mark.parametrize("text", ["pretrain 1.5b from scratch on 24gb", "从头预训练1.5b，24G显存够吗"])
def test_nothing_is_adapted_before_it_is_trained(text: str) -> None:
    (run,) = ask(text).runs
    assert (run["stage"], run["method"]) == ("pretrain", "full")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("full finetune 7b on 24gb offload activations cpu", {"activations": "cpu"}),
        ("7b全参，激活值卸载，24G", {"activations": "cpu"}),
        ("7b full zero3 cpu offload, activation offloading too, 24gb",
         {"optimizer": "cpu", "parameters": "cpu", "activations": "cpu"}),
    ],
)  # fmt: skip
def test_activations_that_wait_on_the_host_are_understood(text: str, places: dict[str, str]) -> None:
    assert ask(text).runs[0]["offload"] == places


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("full finetune llama3 8b fsdp bf16 4x a100 80gb", "bf16 (fp32 shards)"),
        ("llama3 8b全参 fsdp 4张a100 80g", "bf16（分片为 fp32）"),
        ("bge-m3 lora 8gb", "bge-m3 (same architecture as xlm-roberta-large)"),
    ],
)
def test_the_headline_says_what_is_counted(text: str, words: str) -> None:
    assert words in ask(text).text.splitlines()[0]


def test_adapters_over_shards_are_not_told_as_fp32() -> None:
    assert "fp32" not in ask("lora llama3 8b fsdp bf16 4x a100 80gb").text.splitlines()[0]


def test_whether_something_fits_a_named_card_asks_for_the_model_and_not_an_entry() -> None:
    answer = ask("lora要多少显存，3*4090能跑起来吗")
    assert (answer.reply, answer.missing, answer.entries) == ("clarify", ["model"], [])


def test_the_least_count_is_told_whatever_count_is_named() -> None:
    answer = service.ask("8b lora runs on one 3090, how many for full fine-tuning?")
    counts = {run["method"]: one.gpu_count for run, one in zip(answer.runs, answer.fewest, strict=True) if one}
    assert counts["lora"] == 1 < counts["full"]


def test_of_several_methods_each_row_names_a_card_that_holds_it_as_it_is() -> None:
    answer = service.ask("cheapest way to finetune llama 3.1 8b on 50k samples of 1k tokens")
    full, first = answer.estimates[0], answer.text.split("full fine-tuning")[1].splitlines()[0]
    assert full.cost is not None and full.cost.offers[0].steps
    held = next(one for one in full.cost.offers if not one.steps)
    assert held.gpu in first and full.cost.offers[0].gpu not in first


def test_a_model_that_no_single_card_serves_gets_several() -> None:
    answer = service.ask("what gpus to serve llama 3.1 405b fp8?")
    offers = answer.estimates[0].cost.offers if answer.estimates[0].cost else []
    assert offers and all(offer.gpu_count > 1 for offer in offers)
