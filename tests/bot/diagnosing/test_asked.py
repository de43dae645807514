"""Questions that entries answer, and questions why a run failed."""

import pytest

from bot import service


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("why does vllm take all my memory", "vllm_prealloc_by_design"),
        ("how come lora uses as much memory as full finetuning", "lora_activation_bound"),
        ("does batch size or seq len matter more for memory?", "batch_seq_activations"),
        ("why does my vram keep going up during training", "faq_surge_midrun"),
        ("why does mixtral need so much memory if only 2 experts are active", "moe_total_params"),
        ("what can i do to lower the vram of 7b lora on a 3090, seq 8k?", "claim_order"),
        ("batch 和序列长度哪个更占显存", "batch_seq_activations"),
    ],
)
def test_an_entry_answers(text: str, entry: str) -> None:
    assert service.ask(text).entries == [entry]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("why is the first step fine and the second one oom, 8b full bf16 a100 80", "optimizer_first_step"),
        ("7b dpo ooms on an a100 40g where sft was fine, why", "rl_extra_models"),
        ("为什么vllm把显存占满了", "vllm_prealloc_by_design"),
    ],
)
def test_why_a_run_failed_is_diagnosed(text: str, cause: str) -> None:
    answer = service.ask(text)
    assert answer.question in ("explain", "diagnose")
    assert answer.diagnosis and answer.diagnosis.causes[0].id == cause


def test_talk_is_no_question() -> None:
    assert service.ask("my batch of cookies is out of the oven, second one next").reply == "ignore"


@pytest.mark.parametrize(
    ("text", "question", "cause"),
    [
        ("pod was OOMKilled (exit code 137) while the base model loaded, gpu at 3%", "diagnose", "host_ram_killed"),
        ("ERROR: Unexpected bus error encountered in worker, docker, num_workers=4", "diagnose", "shm_too_small"),
        ("zero3 offload 微调 70B，加载的时候进程直接 Killed，显存没怎么用", "diagnose", "host_ram_killed"),
        ("训练到五千步左右突然 OOM，有几条样本特别长", "diagnose", "long_sample_spike"),
        ("PPO 要同时放 actor critic ref reward，4 张 A100 40G 爆显存", "diagnose", "rl_extra_models"),
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 "
         "GPU has compute capability 7.5.", "diagnose", "dtype_unsupported"),
        ("vllm serving a 3b takes 68GB of my 80GB card", "explain", "vllm_prealloc_by_design"),
        ("DDP on two 3090s needs the same memory per gpu as one, still OOM", "diagnose", "full_copy_per_gpu"),
        ("P40 上没装 flash-attn，24k 长文本一次申请 40 多 GiB", "explain", "attention_quadratic"),
        ("实验室公共服务器，别人上来跑程序之后我的训练就 OOM 了", "diagnose", "other_process"),
        ("lora 开了 gradient checkpointing，显存一点没降", "diagnose", "grad_ckpt_ineffective"),
        ("allocated memory is 30 GiB on my 24 GiB card, Windows, each step takes a minute", "diagnose",
         "windows_wsl_memory"),
    ],
)  # fmt: skip
def test_a_wreck_is_told_of_without_a_question(text: str, question: str, cause: str) -> None:
    answer = service.ask(text)
    assert (answer.reply, answer.question) == ("answer", question)
    assert answer.diagnosis and cause in [one.id for one in answer.diagnosis.causes[:2]]


@pytest.mark.parametrize(
    "text", ["my phone died again", "the meeting crashed, use the other link", "this cafe is full", "车又挂了",
             "服务器重启了，大家重新登录", "somebody started the dishwasher again",
             "I killed it at the gym today", "I got killed by the boss again lol",
             "RuntimeError: expected scalar type Half but found Float",
             "DistStoreError: Timed out after 601 seconds waiting for clients"],
)  # fmt: skip
def test_failures_of_other_things_are_talk(text: str) -> None:
    assert service.ask(text).reply == "ignore"


@pytest.mark.parametrize("text", ["7b lora 4090, 2GiB 被其他程序占用", "qwen2.5 7b full ft a100 80g", "13b qlora 3090"])
def test_a_run_alone_asks_whether_it_fits(text: str) -> None:
    answer = service.ask(text)
    assert answer.question == "fit" and not answer.diagnosis
