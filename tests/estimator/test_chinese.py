"""Chinese sentences of the estimator: full-width punctuation throughout, and no English words among the weights."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from estimator.catalogue import all_gpus, find_gpu, find_model, weight_format
from estimator.defaults import rules
from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Block, Estimate, Run

ESTIMATOR = Path(__file__).parent.parent.parent / "estimator"
CHINESE = "[\u3400-\u9fff“”]"
HALF_WIDTH = re.compile(rf"{CHINESE} ?[,;:(?!]|{CHINESE}\)|[,;:(?!] ?{CHINESE}|\){CHINESE}")
"""A bracket that ends a card's own name may stand before a space and Chinese."""
PATTERN = re.compile(r"\(\?|\\[sdw]|\|")
"""What shows that a string is a regular expression rather than a sentence."""

LLAMA = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 6400,
}  # fmt: skip
NAMES: list[Any] = [
    "0.5b", "7b", "qwen", "千问", "llama", "TheBloke/Llama-2-7B-GPTQ", "unsloth/Qwen2.5-7B-bnb-4bit",
    "qwen2.5-7b-Q4_K_M", "lama 3 8b", "qwen2.5 7b instructt", "no such model at all", "", "../x", "123456b",
    "google/gemma-4-E4B", 5,
    LLAMA, LLAMA | {"model_type": "brand_new"}, LLAMA | {"hidden_size": "x"}, LLAMA | {"hidden_size": -1},
    {"model_type": "t5000"}, {"model_type": "llama"}, {},
    LLAMA | {"vision_config": {"model_type": "odd_tower", "hidden_size": 64}},
]  # fmt: skip
CARDS = [
    "3090", "8GB", "V100", "T4", "A100", "a100 48g", "4090 48g", "7000 gb", "0 gb", "no such card", "", "M3 Max",
    "M3 Max 64GB", "MI250", "MI300X", "910B", "Max 1550", "S4000", "K100", "A100 80GB 1g.10gb", "A100 9g.90gb",
    "0x 3090", "GTX 1080", "3060", "4060 Ti", "DGX Spark",
]  # fmt: skip
FORMATS = ["banana", "", "gptq-9bit"]
RUNS: list[dict[str, Any]] = [
    {"model": "0.5b", "method": "full", "gpu": "8GB"},
    {"model": "qwen2.5-7b", "method": "lora", "gpu": "V100", "precision": "bf16"},
    {"model": "qwen2.5-7b", "method": "qlora", "gpu": "3090", "grad_accum": 4},
    {"model": "qwen2.5-0.5b", "method": "full", "gpu": "3090", "gpu_count": 2, "gradient_checkpointing": "full"},
    {"model": "TheBloke/Llama-2-7B-GPTQ", "method": "lora", "gpu": "24GB"},
    {"model": "llama-3.1-8b", "task": "infer", "context_len": 4096, "weight_format": "q4 k m", "gpu": "4090"},
    {"model": "llama-3.1-8b", "task": "infer", "context_len": 4096, "new_tokens": 64},
    {"model": "gpt2", "method": "full", "optimizer": "sgd"},
    {"model": "qwen2.5-0.5b", "method": "full", "weight_format": "nf4"},
    {"model": "qwen2.5-0.5b", "method": "full", "precision": "fp8"},
    {"model": "qwen2.5-0.5b", "method": "full", "stage": "dpo"},
    {"model": "qwen2.5-0.5b", "method": "full", "gradient_checkpointing": "odd"},
    {"model": "qwen2.5-0.5b", "method": "full", "optimizer": "odd"},
    {"model": "qwen2.5-0.5b", "method": "full", "parallel": {"engine": "fsdp2"}},
    {"model": "qwen2.5-0.5b", "method": "full", "offload": {"optimizer": "cpu"}},
    {"model": "qwen2.5-0.5b", "task": "serve", "engine": "vllm"},
]


def said(call: Callable[[], Any]) -> list[str]:
    """The Chinese of a match, an estimate or a refusal."""
    try:
        found = call()
    except EstimatorError as error:
        return [error.message_zh]
    return list(of_estimate(found)) if isinstance(found, Estimate) else [getattr(found, "note_zh", "")]


def of_estimate(found: Estimate) -> Iterator[str]:
    for one in found.assumptions + found.notes:
        yield one.why_zh
    yield from of_blocks(found.per_gpu.at_peak if found.per_gpu else [])


def of_blocks(blocks: list[Block]) -> Iterator[str]:
    for block in blocks:
        yield block.why_zh
        yield from of_blocks(block.parts or [])


def checked(sentences: list[str]) -> None:
    assert not [sentence for sentence in sentences if HALF_WIDTH.search(sentence)]


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_models(name: Any) -> None:
    checked(said(lambda: find_model(name)))


@pytest.mark.parametrize("name", CARDS)
def test_cards(name: str) -> None:
    checked(said(lambda: find_gpu(name)))


def test_every_card_of_the_catalogue() -> None:
    for name in (card if isinstance(card, str) else card.name for card in all_gpus()):
        checked(said(lambda name=name: find_gpu(name)))


@pytest.mark.parametrize("name", FORMATS)
def test_weight_formats(name: str) -> None:
    checked(said(lambda: weight_format(name)))


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_estimates(run: dict[str, Any]) -> None:
    sentences = said(lambda: estimate(Run.model_validate(run)))
    assert all(sentences)
    checked(sentences)


def test_defaults() -> None:
    checked([rule.said.why_zh for rules_of_field in rules().values() for rule in rules_of_field])


def sentences_in(path: Path) -> Iterator[str]:
    """Every string with Chinese in a source file, placeholders as x."""
    tree = ast.parse(path.read_text("utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if re.search("[\u3400-\u9fff]", text) and not PATTERN.search(text):
            yield text


@pytest.mark.parametrize("path", sorted(ESTIMATOR.rglob("*.py")), ids=lambda path: path.stem)
def test_sources(path: Path) -> None:
    checked(list(sentences_in(path)))


@pytest.mark.parametrize(
    ("run", "english", "chinese"),
    [
        (
            {"model": "qwen2.5-0.5b", "method": "full", "precision": "bf16"},
            "494,032,768 parameters x 2 B",
            "494,032,768 个参数 x 2 字节",
        ),
        (
            {"model": "qwen2.5-7b", "method": "qlora", "weight_format": "nf4", "kbit_prepare": False},
            "linear layers 6,525,288,448 in nf4, embeddings and head 1,089,994,752 x 2 B, "
            "norms and biases 333,312 x 2 B",
            "线性层 6,525,288,448（nf4），词嵌入与输出层 1,089,994,752 x 2 字节，归一化与偏置 333,312 x 2 字节",
        ),
        (
            {"model": "llama-3.1-8b", "task": "infer", "context_len": 1024, "weight_format": "Q4_K_M"},
            "linear layers 6,979,321,856 x 4.8 bit, embeddings and head 525,336,576 in Q6_K, "
            "norms and biases 266,240 x 4 B",
            "线性层 6,979,321,856 x 4.8 位，词嵌入与输出层 525,336,576（Q6_K），归一化与偏置 266,240 x 4 字节",
        ),
    ],
    ids=["plain", "nf4", "gguf"],
)
def test_the_weights_in_one_line(run: dict[str, Any], english: str, chinese: str) -> None:
    found = estimate(Run.model_validate(run))
    assert found.per_gpu is not None
    weights = next(block for block in found.per_gpu.at_peak if block.item == "weights")
    assert (weights.why, weights.why_zh) == (english, chinese)
    words = " ".join(part.why_zh for part in weights.parts or [])
    assert not re.search(r"parameters|scale|per|tables| in ", words)


def test_a_packed_part_says_how() -> None:
    found = estimate(Run.model_validate({"model": "qwen2.5-7b", "method": "qlora", "weight_format": "nf4"}))
    assert found.per_gpu is not None
    weights = next(block for block in found.per_gpu.at_peak if block.item == "weights")
    assert weights.parts is not None
    assert weights.parts[0].why == "linear layers: 6,525,288,448 in nf4: 4 bit + fp32 scale per 64"
    assert weights.parts[0].why_zh == "线性层：6,525,288,448（nf4：4 位 + 每 64 个一个 fp32 缩放）"
