"""GGUF mixes against llama.cpp's own table of bits per weight (tools/quantize/README.md, Llama-3.1-8B)."""

import pytest

from estimator.architecture import from_config
from estimator.gguf import stored
from estimator.inventory import inventory

LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}  # fmt: skip
TABLE = {
    "IQ1_S": 2.0042, "IQ2_XXS": 2.3824, "IQ2_S": 2.7403, "IQ2_M": 2.9294, "IQ3_XXS": 3.2548, "IQ3_XS": 3.4977,
    "IQ3_M": 3.7628, "IQ4_XS": 4.4597, "IQ4_NL": 4.6818, "Q2_K": 3.1593, "Q2_K_S": 2.9697, "Q3_K_S": 3.6429,
    "Q3_K_M": 3.996, "Q3_K_L": 4.2979, "Q4_K_S": 4.6672, "Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036,
    "Q6_K": 6.5633, "Q8_0": 8.5008, "F16": 16.0005,
}  # fmt: skip


@pytest.mark.parametrize(("name", "bits"), TABLE.items())
def test_bits_per_weight(name, bits):
    arch = from_config(LLAMA_8B)
    parts = inventory(arch)
    size = sum(tensor.bytes for tensor in stored(arch, parts, name))
    assert size * 8 / parts.numel == pytest.approx(bits, abs=2e-4)
