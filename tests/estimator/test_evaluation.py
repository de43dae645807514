"""Evaluation against traced forwards: transformers 5.24, a Llama of 4 layers, 8 rows of 512 tokens, with labels."""

import pytest

from estimator.architecture import from_config
from estimator.estimate import estimate
from estimator.evaluation import evaluation_bytes
from estimator.inventory import inventory
from estimator.schema import Run
from estimator.setting import peak_of, setting_of
from estimator.weights import weights

CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}


def run(**fields: object) -> Run:
    return Run.model_validate(
        {"model": CONFIG, "framework": "transformers", "method": "full", "seq_len": 512, "loss": "standard"} | fields
    )


@pytest.mark.parametrize(
    ("precision", "autocast", "beside_weights"),
    [
        ("bf16", False, 1_323_435_520),
        ("bf16", True, 1_323_435_520),
        ("fp32", False, 1_073_874_432),
        ("amp-bf16", True, 1_387_136_512),
    ],
)
def test_traced_evaluations(precision: str, autocast: bool, beside_weights: int) -> None:
    complete = estimate(run(precision=precision, autocast=autocast, optimizer="sgd")).run
    assert complete is not None
    setting = setting_of(complete, from_config(CONFIG))
    peak = peak_of(setting)
    held = weights(setting.arch, inventory(setting.arch), setting.regime).bytes
    assert evaluation_bytes(setting, peak, 8) - held == pytest.approx(beside_weights, rel=0.0002)


def test_a_larger_evaluation_is_told_of() -> None:
    told = estimate(run(precision="bf16", details={"eval_batch": 64})).notes
    assert any("evaluation with a batch of 64" in note.why and "批大小 64" in note.why_zh for note in told)
    assert not any("evaluation" in note.why for note in estimate(run(precision="bf16")).notes)
