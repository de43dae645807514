"""What is typed for a change, per framework."""

import re
import tomllib
from importlib.resources import files
from typing import Any

import pytest

from bot.reading.tables import known
from estimator.downgrades import applied, commands, commands_elsewhere
from estimator.downgrades.flags import offered
from estimator.downgrades.moves import INFERENCE, TRAINING
from estimator.estimate import estimate
from estimator.frameworks import KNOWN
from estimator.schema import Run

ASKED = Run(model="llama-3.1-8b", method="full", gpu="24GB", micro_batch=4)
FRAMEWORKS = ("transformers", "trl", "llama-factory", "axolotl", "unsloth", "torchtune", "ms-swift")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_batch_is_typed_in_the_frameworks_own_words(framework: str) -> None:
    change = {"micro_batch": 1, "grad_accum": 4}
    lines = commands(applied(ASKED, change), change, framework)
    assert len(lines) == 2
    assert any("1" in line for line in lines)
    assert any("4" in line for line in lines)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_lora_is_typed_once(framework: str) -> None:
    found = estimate(ASKED.model_copy(update={"framework": framework, "method": "full"}))
    step = next(one for one in found.downgrades if one.id == "lora")
    text = "\n".join(step.commands)
    assert "16" in text
    assert len(step.commands) == len(set(step.commands))


def test_prompts_are_typed_as_completions_where_trl_counts_those() -> None:
    run = Run.model_validate({"model": "7b", "stage": "grpo", "task": "train", "rl": {"num_generations": 8}})
    change = {"micro_batch": 2}
    assert commands(applied(run, change), change, "trl") == ["--per_device_train_batch_size 16"]


def test_a_framework_of_which_nothing_is_known_has_no_flags() -> None:
    change = {"micro_batch": 1}
    assert commands(applied(ASKED, change), change, "mylab") == []
    assert offered(applied(ASKED, {"framework": "mylab", "task": "train"}), ("micro_batch",))


def test_the_tables_name_fields_and_frameworks_that_exist() -> None:
    fields = set(Run.model_fields)
    assert set(tables()) <= {*KNOWN, "hf"}
    keys = {key for table in tables().values() for key in table if key not in ("like", "without")}
    assert {key.split("=")[0].split(",")[0].split(".")[0] for key in keys} <= fields


@pytest.mark.parametrize("move", [move for move in (*TRAINING, *INFERENCE) if move.needs], ids=lambda move: move.name)
def test_every_move_can_be_typed_somewhere(move: object) -> None:
    for field in move.needs:  # type: ignore[attr-defined]
        assert any(key.split("=")[0] == field for table in tables().values() for key in table), field


TARGETS: dict[str, tuple[str, ...]] = {
    "sdpa": ("attention=sdpa",), "flash2": ("attention=flash2",), "fused-loss": ("loss=fused",),
    "chunked-loss": ("loss=chunked",), "fused-optimizer": ("optimizer_impl=fused",),
    "precomputed-reference": ("preference.precomputed_logps=true",), "sleep": ("rl.sleep=true",),
    "share": ("rl.colocated_share",), "shard": ("parallel.engine=fsdp2|parallel.engine=deepspeed",),
    "adamw-8bit": ("optimizer=adamw-8bit",), "paged": ("optimizer=paged-adamw-8bit",), "bf16": ("precision=bf16",),
    "lora": ("method=lora",), "qlora": ("method=qlora",), "checkpointing": ("gradient_checkpointing=full",),
    "offload-inputs": ("gradient_checkpointing=offload",), "offload-activations": ("offload.activations=cpu",),
    "offload-optimizer": ("offload.optimizer=cpu",),
    "offload-parameters": ("offload.parameters=cpu|offload.parameters=cpu,fsdp",),
    "galore": ("method=galore",), "lomo": ("method=lomo",), "last-logits": ("logits=last",),
    "half": ("precision=bf16",),
    "ubatch": ("serving.ubatch",), "batched-tokens": ("serving.max_num_batched_tokens",),
    "no-graphs": ("serving.cuda_graphs=false",), "kv-8bit": ("kv_cache.dtype=fp8|kv_cache.dtype",),
    "kv-4bit": ("kv_cache.dtype",), "users": ("concurrency|micro_batch",), "int8": ("weight_format=int8",),
    "fp8": ("weight_format=fp8",), "4bit": ("weight_format=nf4|weight_format=awq-4bit-g128",),
    "gguf": ("weight_format",), "low-bits": ("weight_format",), "experts-on-cpu": ("serving.moe_on_cpu=true",),
    "layers-on-cpu": ("serving.n_gpu_layers",),
    "cards": ("parallel.engine=fsdp2|parallel.engine=deepspeed|parallel.engine=device_map|parallel.tensor",),
}  # fmt: skip
"""The switches that a move needs, alternatives apart by |; of the others the fields themselves."""
ENGINES = ("hf", "vllm", "sglang", "tgi", "exllama", "autoawq", "llama.cpp", "ollama")


def tables() -> dict[str, dict[str, Any]]:
    """Every framework's own table, without what it falls back to."""
    return tomllib.loads(files("estimator").joinpath("data/flags.toml").read_text("utf-8"))


def switches(framework: str) -> dict[str, Any]:
    """A framework's switches with those of the table that it falls back to; false ones left out."""
    own = tables()[framework]
    inherited = switches(own["like"]) if "like" in own else {}
    return {key: lines for key, lines in {**inherited, **own}.items() if isinstance(lines, list)}


def reasons(framework: str) -> list[str]:
    """The moves that a framework has no switch for, as its table says."""
    own = tables()[framework]
    named = own["without"] if "without" in own else tables()[own["like"]]["without"]
    return [move for moves in named.values() for move in moves]


@pytest.mark.parametrize("framework", sorted(tables()))
def test_every_move_has_a_switch_or_a_reason_why_not(framework: str) -> None:
    moves = INFERENCE if framework in ENGINES else TRAINING
    there, excused = switches(framework), reasons(framework)
    assert len(excused) == len(set(excused))
    for name in dict.fromkeys(move.name for move in moves if move.needs):
        has = _has(there, name)
        assert has is not (name in excused), f"{name}: {'a switch and a reason' if has else 'neither'}"


def _has(there: dict[str, Any], move: str) -> bool:
    needed = TARGETS.get(move) or next(one.needs for one in (*TRAINING, *INFERENCE) if one.name == move)
    return all(any(key in there for key in alternatives.split("|")) for alternatives in needed)


KEY_LISTS = {
    "minimind": ("minimind",), "megatron": ("megatron",), "fsdp_qlora": ("fsdp_qlora",),
    "deepspeed": ("deepspeed-chat",), "tgi": ("tgi",), "ollama": ("ollama",),
}  # fmt: skip
"""Of tools that are no packages, the lists of their own keys (bot/reading/data/known); of the others see flags.json."""
NOT_LISTED = {
    "ollama": {"OLLAMA_NUM_PARALLEL", "OLLAMA_FLASH_ATTENTION", "OLLAMA_KV_CACHE_TYPE"},  # its envconfig
}
OTHER_WORDS = re.compile(r"torchrun |deepspeed |FROM |\{visible\}=")
"""Lines that begin with a program rather than with a flag."""
FLAG = re.compile(r"(?:PARAMETER |--?)?([A-Za-z][\w.-]*)")


@pytest.mark.parametrize("framework", sorted(KEY_LISTS))
def test_every_flag_is_one_of_the_release(framework: str) -> None:
    listed = {_plain(word) for name in KEY_LISTS[framework] for word in known(name)}
    listed |= {_plain(word) for word in NOT_LISTED.get(framework, ())}
    for lines in tables()[framework].values():
        for line in lines if isinstance(lines, list) else ():
            if OTHER_WORDS.match(line):
                continue
            flag = FLAG.match(line)
            assert flag, line
            name = _plain(flag[1])
            assert name in listed or name.rsplit(".", 1)[-1] in listed, line


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def test_a_plan_is_told_in_another_frameworks_words_only_as_a_whole() -> None:
    found = estimate(Run(model="qwen2.5-7b", method="full", gpu="24GB", micro_batch=4, seq_len=2048))
    assert found.plan is not None
    assert found.plan.run is not None
    lines = commands_elsewhere(found.plan.run, found.plan.change, "axolotl")
    assert "adapter: lora" in lines
    change = {"offload": {"optimizer": "cpu"}, "micro_batch": 1}
    assert commands_elsewhere(applied(found.plan.run, change), change, "llama-factory")
    assert commands_elsewhere(applied(found.plan.run, change), change, "unsloth") == []


@pytest.mark.parametrize(
    ("framework", "first", "last"),
    [
        ("axolotl", "axolotl train config.yaml --launcher torchrun", "offload_params: true}"),
        ("transformers", "torchrun --nproc_per_node 2", '{"cpu_offload": true}'),
        ("torchtune", "tune run --nproc_per_node 2 lora_finetune_distributed", "fsdp_cpu_offload=True"),
        ("trl", "accelerate launch --config_file fsdp2.yaml", "fsdp_offload_params: true"),
    ],
)
def test_sharding_with_offload_is_typed_as_a_whole(framework: str, first: str, last: str) -> None:
    change = {
        "parallel": {"engine": "fsdp2", "data": 2, "zero": 3},
        "offload": {"optimizer": "cpu", "parameters": "cpu"},
    }
    run = applied(Run(model="llama-3.1-8b", task="train", method="lora", gpu_count=2, framework=framework), change)
    lines = commands(run, change)
    assert lines[0].startswith(first)
    assert lines[-1].endswith(last)
