"""What is traced of a run, and what is refused in one sentence; no torch needed."""

from typing import Any

import pytest

from bot.tracing import packages
from bot.tracing.plan import Plan, plan_of
from bot.tracing.trace import config_for
from estimator.catalogue import find_model
from estimator.errors import EstimatorError
from estimator.estimate import completed, definite
from estimator.schema import Run

LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000}  # fmt: skip

BERT = {"model_type": "bert", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 1000, "max_position_embeddings": 512}  # fmt: skip


def planned(**fields: Any) -> Plan:
    run = Run.model_validate({"model": LLAMA, "task": "train", "framework": "transformers"} | fields)
    model = find_model(run.model)
    complete = completed(run, model, None)[0]
    return plan_of(complete, definite(complete, model, None).regime, config_for(run.model))


def test_types_follow_precision_and_autocast() -> None:
    assert (planned(precision="amp-bf16").dtype, planned(precision="amp-bf16").autocast) == ("float32", "bfloat16")
    assert (planned(precision="bf16", autocast=False).dtype, planned(precision="bf16").scaler) == ("bfloat16", False)
    assert planned(precision="amp-fp16").scaler
    assert planned(method="lora", precision="bf16", adapter={"dtype": "fp32", "rank": 8}).adapter_dtype == "float32"


def test_the_shape_of_the_step() -> None:
    plan = planned(micro_batch=3, seq_len=77, grad_accum=2, gradient_checkpointing="every-2")
    assert (plan.batch, plan.length, plan.micro_steps, plan.checkpointing, plan.every) == (3, 77, 2, True, 2)
    served = planned(task="infer", engine="hf", context_len=50, new_tokens=4, concurrency=3, micro_batch=2)
    assert (served.training, served.batch, served.length, served.new_tokens) == (False, 6, 50, 4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"optimizer": "lion-pytorch"}, "optimizer lion-pytorch: use adamw"),
        ({"method": "galore"}, "method galore: use full"),
        ({"gpu_count": 2}, "one card"),
        ({"stage": "dpo"}, "stage dpo"),
        ({"attention": "flash2"}, "attention flash2: use sdpa"),
        ({"seq_len": {"mean": 10, "max": 20}, "micro_batch": 2}, "unequal length"),
        ({"offload": {"optimizer": "cpu"}}, "one card"),
        ({"compile": True}, "torch.compile"),
        ({"model": BERT, "loss": "chunked", "details": {"objective": "mlm"}}, "masked language models"),
        ({"fused_kernels": ["norm"]}, "fused kernels"),
        ({"stack": {"transformers": "4.57.0"}}, "leave stack out"),
        ({"stack": {"torch": "2.0"}}, "leave stack out"),
        ({"framework": "unsloth", "gradient_checkpointing": "none"}, "unsloth"),
        ({"method": "lora", "weight_format": "int8"}, "weight_format int8"),
        ({"task": "infer", "engine": "hf", "weight_format": "nf4"}, "weight_format"),
    ],
)
def test_what_cannot_be_traced_is_said(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(EstimatorError, match=words) as error:
        planned(**fields)
    assert error.value.message_zh != error.value.message


def test_a_model_of_the_catalogue_has_its_config() -> None:
    config = config_for("qwen2.5-0.5b")
    assert (config["model_type"], config["num_hidden_layers"]) == ("qwen2", 24)


def test_only_the_packages_that_run_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packages.needed(planned()) == ["torch", "transformers"]
    assert packages.needed(planned(method="qlora")) == ["torch", "transformers", "peft", "bitsandbytes"]
    assert "trl" in packages.needed(planned(loss="chunked"))
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "peft" else object())
    with pytest.raises(
        EstimatorError, match=r"this trace runs peft, not installed here: pip install 'vram-bot\[trace\]'"
    ):
        packages.check(planned(method="lora"))
