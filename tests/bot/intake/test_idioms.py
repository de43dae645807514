import pytest

from bot.intake.understand import understand


@pytest.mark.parametrize(
    "text",
    ["my laptop runs out of battery so fast", "vllm 升级以后快多了", "这模型太强了，炸裂", "显卡群里又有人爆料了"],
)
def test_idioms_ask_nothing(text: str) -> None:
    assert understand(text).reply == "ignore"


@pytest.mark.parametrize(
    "text",
    [
        "llama 8b lora ran out of gpu memory at step 500 on a 4090",
        "qwen 7b lora runs out of the 24GB on my 3090",
        "llama 8b qlora ran out at step 500 on a 4090",
        "7B lora 3090 跑到一半又爆",
    ],
)
def test_memory_that_runs_out_is_a_failure(text: str) -> None:
    assert understand(text).question == "diagnose"


@pytest.mark.parametrize(("text", "users"), [("qwen 32b 给 3 位同事同时用，4090 够吗", 3), ("7b 8位用户 3090", 8)])
def test_people_are_no_bits(text: str, users: int) -> None:
    run = understand(text).runs[0]
    assert run["concurrency"] == users and "weight_format" not in run
