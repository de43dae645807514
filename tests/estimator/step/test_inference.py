"""Inference against traced runs (torch 2.13, transformers 5.24 on fake CUDA tensors): equal to the byte."""

import pytest

from estimator.architecture import from_config
from estimator.inventory import inventory
from estimator.step.inference import trace_inference
from estimator.step.program import Dimensions, walk
from estimator.step.regime import Regime
from estimator.weights import weights

QWEN25_7B = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}  # fmt: skip
QWEN3_8B = {
    "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "tie_word_embeddings": False, "max_position_embeddings": 40960,
}  # fmt: skip
TINY = {
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 2048,
}  # fmt: skip
WINDOW = {**TINY, "model_type": "mistral", "sliding_window": 256}


def peaks(config, batch, prompt, steps, **regime):
    arch = from_config(config)
    parts = inventory(arch)
    window = arch.sliding_window or 0
    run = Regime(training=False, trainable="none", single=batch == 1, windowed=0 < window <= prompt, **regime)
    walked = walk(trace_inference(arch, parts, run), Dimensions(batch, prompt, steps, window))
    base = weights(arch, parts, run).bytes
    return {phase: base + moment.live for phase, moment in walked.peaks.items()}


@pytest.mark.parametrize(
    ("config", "batch", "prompt", "steps", "regime", "prefill", "decode"),
    [
        (QWEN25_7B, 1, 4096, 2, {}, 16051286016, 15470490624),
        (QWEN3_8B, 4, 2048, 2, {}, 18462995456, 17607629824),
        ({**TINY, "model_type": "llama"}, 2, 200, 4, {"logits": "all"}, 8672256, 6698496),
        ({**TINY, "model_type": "llama"}, 2, 384, 4, {"attention": "eager"}, 22174208, 8178688),
        ({**TINY, "model_type": "llama"}, 2, 384, 4, {"itemsize": 4}, 36277248, 17089024),
        ({**TINY, "model_type": "llama"}, 2, 384, 4, {"quantised": "nf4-dq"}, 7930368, 4118528),
        ({**TINY, "model_type": "llama"}, 2, 384, 4, {"cache": "static"}, 11379200, 7358464),
        (WINDOW, 2, 381, 4, {}, 11465216, 7585792),
        (WINDOW, 2, 200, 4, {"logits": "all"}, 8674304, 6804480),
    ],
)
def test_equals_the_trace(config, batch, prompt, steps, regime, prefill, decode):
    assert peaks(config, batch, prompt, steps, **regime) == {"prefill": prefill, "decode": decode}


def test_the_cache_is_an_item_of_its_own():
    arch = from_config({**TINY, "model_type": "llama"})
    program = trace_inference(arch, inventory(arch), Regime(training=False))
    assert any(item == "kv_cache" for _, _, item, _ in program.kinds)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_encoders_whose_layers_differ_run(attention: str) -> None:
    """ModernBERT: every layer is handed the mask and the tables of its own kind; no cache, no second phase."""
    config = {**TINY, "model_type": "modernbert", "global_attn_every_n_layers": 2, "local_attention": 64}
    short, long = (peaks(config, 2, length, 0, attention=attention) for length in (128, 512))
    assert list(short) == ["prefill"]
    assert short["prefill"] < long["prefill"]
