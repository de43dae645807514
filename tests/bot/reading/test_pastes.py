"""Shell scripts, container files and scripts of people's own: how real pastes are written."""

from typing import Any

import pytest

from bot.reading.read import flat, read_paste


def read(text: str) -> dict[str, Any]:
    return flat(read_paste(text).run)


def test_variables_hold_over_lines_that_run_nothing() -> None:
    run = read(
        'GPUS=4\nTOTAL=64\nACCUM=$((TOTAL / GPUS / 2))\necho "training on $GPUS cards"\nif [ ! -d out ]; then\n'
        "  mkdir -p out\nfi\naccelerate launch --num_processes $GPUS my_train.py --model_name_or_path gpt2 "
        "--per_device_train_batch_size 2 --gradient_accumulation_steps $ACCUM"
    )
    assert (run["gpu_count"], run["grad_accum"], run["micro_batch"]) == (4, 8, 2)


def test_a_program_in_a_variable() -> None:
    run = read('BIN="${BIN:-./llama-server}"\n"$BIN" -m "${M:-x/phi-4-Q4_K_M.gguf}" -ngl "${NGL:-20}" -c 8192')
    assert (run["engine"], run["weight_format"], run["serving.n_gpu_layers"]) == ("llama.cpp", "Q4_K_M", 20)


@pytest.mark.parametrize(
    "program",
    ["/opt/conda/bin/python -m vllm.entrypoints.openai.api_server --model", "./.venv/bin/vllm serve",
     "~/envs/a/bin/python3.11 -m sglang.launch_server --model-path",
     "C:\\env\\Scripts\\python.exe -m vllm.entrypoints.openai.api_server --model"],
)  # fmt: skip
def test_a_program_with_its_folder(program: str) -> None:
    run = read(f"{program} Qwen/Qwen3-8B --port 8000")
    assert (run["task"], run["model"]) == ("serve", "Qwen/Qwen3-8B")


def test_folders_that_only_the_shell_knows() -> None:
    run = read("MODEL=$HOME/models/phi-4-Q4_K_M.gguf\n./llama-server -m $MODEL -ngl 20 -c 4096")
    assert (run["model"], run["weight_format"]) == ("phi-4-Q4_K_M", "Q4_K_M")
    run = read(
        "deepspeed --num_gpus 4 run.py --deepspeed ${CONFIGS}/zero3_offload.json --model_name_or_path $ROOT/gpt2-xl"
    )
    assert (run["model"], run["parallel.zero"], run["offload.optimizer"]) == ("gpt2-xl", 3, "cpu")
    assert "model" not in read("vllm serve $MODEL --max-model-len 4096")


def test_a_script_of_the_trainers_with_flags_of_its_own() -> None:
    found = read_paste(
        "torchrun --nproc_per_node 2 my.py --model_name_or_path gpt2 --train_dataset a.json --lora_alfa 3"
    )
    assert (flat(found.run)["framework"], found.unknown_keys) == ("transformers", ["--lora_alfa"])
    assert read_paste("python my.py --bar 3").error


def test_cards_of_a_container_in_one_string() -> None:
    text = COMPOSE.format(
        image="vllm/vllm-openai:latest", entrypoint="[]", command="--model gpt2 --tensor-parallel-size 4"
    )
    found = read_paste(text.replace("count: 2", "device_ids: ['0,1,2,3']"))
    assert found.contradictions == [] and flat(found.run)["gpu_count"] == 4


def test_slurm_says_how_many_nodes() -> None:
    run = read(
        "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:a100:8\nsrun torchrun --nnodes $SLURM_NNODES "
        "--nproc_per_node $SLURM_GPUS_ON_NODE train.py --model_name_or_path gpt2 --per_device_train_batch_size 1"
    )
    assert (run["gpu_count"], run["nodes"]) == (32, 4)


def test_a_job_is_submitted_to_ray() -> None:
    run = read(
        'ray job submit --address="http://localhost:8265" --runtime-env-json=\'{"a": 1}\' -- python3 -m '
        "openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen2.5-7B --zero_stage 3 --n_samples_per_prompt 4 --bf16"
    )
    assert (run["framework"], run["parallel.zero"]) == ("openrlhf", 3)


def test_windows_paths_and_continuation() -> None:
    run = read('.\\llama-server.exe `\n  -m "D:\\gguf\\Qwen3-8B-Q6_K.gguf" `\n  -c 4096 `\n  -ngl 30')
    assert (run["model"], run["weight_format"], run["context_len"]) == ("Qwen3-8B-Q6_K", "Q6_K", 4096)


COMPOSE = """
services:
  llm:
    image: {image}
    entrypoint: {entrypoint}
    command: {command}
    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, count: 2}}]}}}}}}
"""


def test_compose_fills_in_its_defaults_and_leaves_what_it_does_not_know() -> None:
    run = read(COMPOSE.format(
        image="vllm/vllm-openai:latest", entrypoint="[]",
        command="--model ${MODEL:-gpt2} --max-model-len ${LEN} --tensor-parallel-size ${TP-2}",
    ))  # fmt: skip
    assert (run["model"], run["parallel.tensor"]) == ("gpt2", 2)
    assert "context_len" not in run


def test_an_entrypoint_names_the_program() -> None:
    run = read(COMPOSE.format(
        image="registry.example/own:1", entrypoint="python3 -m sglang.launch_server",
        command="--model-path Qwen/Qwen3-8B --context-length 8192",
    ))  # fmt: skip
    assert (run["engine"], run["model"], run["context_len"]) == ("sglang", "Qwen/Qwen3-8B", 8192)


MANIFEST = """
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: server
          image: vllm/vllm-openai:v0.9.0
          {how}
          resources: {{limits: {{nvidia.com/gpu: "4"}}}}
"""


@pytest.mark.parametrize(
    "how",
    [
        'args: ["--model", "Qwen/Qwen3-14B", "--max-model-len", "16384", "-tp", "4"]',
        'command: ["/bin/sh", "-c"]\n          args: ["vllm serve Qwen/Qwen3-14B --max-model-len 16384 -tp 4"]',
        'command: ["vllm", "serve", "Qwen/Qwen3-14B", "--max-model-len", "16384", "-tp", "4"]',
    ],
)
def test_a_manifest_of_kubernetes(how: str) -> None:
    run = read(MANIFEST.format(how=how))
    assert (run["model"], run["context_len"], run["gpu_count"]) == ("Qwen/Qwen3-14B", 16384, 4)


@pytest.mark.parametrize(
    ("model", "name", "form"),
    [
        ("-m a/Big-70B-Q5_K_S-00001-of-00003.gguf", "Big-70B-Q5_K_S", "Q5_K_S"),
        ("-hf someone/Model-7B-Q8_0-GGUF", "someone/Model-7B-Q8_0-GGUF", "Q8_0"),
        ("-hf someone/Model-7B-GGUF -hff model-7b-q6_k.gguf", "someone/Model-7B-GGUF", "Q6_K"),
    ],
)
def test_names_of_files(model: str, name: str, form: str) -> None:
    run = read(f"llama-server {model} -c 2048 -ngl 99")
    assert (run["model"], run["weight_format"]) == (name, form)


def test_a_modelfile_with_prose_in_quotes() -> None:
    run = read('FROM qwen3:8b\nSYSTEM """Answer\nFROM files only.\nPARAMETER num_ctx 1\n"""\nPARAMETER num_ctx 8192')
    assert (run["model"], run["context_len"]) == ("qwen3:8b", 8192)


@pytest.mark.parametrize(
    ("line", "framework"),
    [
        ("python train_lora.py --model_name_or_path gpt2 --per_device_train_batch_size 4 --fp16", "transformers"),
        ("python finetune.py --model_name_or_path gpt2 --use_flash_attn --max_seq_length 512 --bf16", "transformers"),
        ("python train_lora.py --lora_name x --hidden_size 512 --batch_size 8", "minimind"),
        ("accelerate launch swift/cli/sft.py --model gpt2 --train_type lora --max_length 512", "ms-swift"),
        (
            "python my.py --stage sft --finetuning_type lora --model_name_or_path gpt2 --lora_target all",
            "llama-factory",
        ),
    ],
)
def test_whose_script_it_is(line: str, framework: str) -> None:
    assert read(line)["framework"] == framework


def test_as_many_devices_as_there_are() -> None:
    run = read("model_name: pythia-160m\ndevices: auto\ntrain:\n  global_batch_size: 64\n  micro_batch_size: 8\n"
               "  max_tokens: 1000000\nprecision: bf16-mixed\n")  # fmt: skip
    assert "grad_accum" not in run
    assert "gpu_count" not in run


def test_trl_loads_a_name_in_float32() -> None:
    text = 'trainer = GRPOTrainer(model="gpt2", args=GRPOConfig(num_generations=4, per_device_train_batch_size=4))'
    assert read(text)["precision"] == "amp-bf16"


def test_fsdp_by_the_launcher_is_its_first_version() -> None:
    text = "accelerate launch --num_processes 2 --use_fsdp --fsdp_sharding_strategy FULL_SHARD sft.py --max_length 512"
    assert read(text + " --model_name_or_path gpt2")["parallel.engine"] == "fsdp1"


def test_cards_in_the_words_around() -> None:
    text = "my launch line, 4x L40S 48GB:\n\ntrl sft --model_name_or_path gpt2 --per_device_train_batch_size 2"
    assert read(text)["gpu"] == "L40S"


def test_a_trainers_file_that_only_generates() -> None:
    run = read("model_name_or_path: Qwen/Qwen3-8B\ntemplate: qwen\ninfer_backend: vllm\nvllm_maxlen: 4096\n")
    assert (run["task"], run["engine"], run["context_len"]) == ("infer", "vllm", 4096)


def test_arguments_of_an_older_release() -> None:
    run = read("swift deploy --model Qwen/Qwen3-8B --infer_backend vllm --max_model_len 4096 --tensor_parallel_size 2")
    assert (run["context_len"], run["parallel.tensor"], run["gpu_count"]) == (4096, 2, 2)
