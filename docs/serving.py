"""Writes docs/serving.md from the published start-ups: ``python -m docs.serving``."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import median

from tests.estimator.serving.test_published import ROWS, errors_of

PAGE = Path(__file__).with_suffix(".md")
SHOWN = (
    "weights_bytes", "kv_bytes", "kv_tokens", "concurrency", "compute_buffer_bytes", "activation_peak_bytes", "steady",
)  # fmt: skip
HEAD = """# How accurate serving estimates are

`python -m docs.serving` makes this page from the start-ups that engines printed
(`tests/data/serving_published.jsonl`, each with its source); `tests/estimator/serving/test_published.py` holds the
figures to their limits. Rows of low trust are left out, and of pools those whose run leaves out what decided the
pool: the card, SGLang's `--max-total-tokens` or share, vLLM's tokens a step. *steady* is what transformers holds
after a generation, the cache still there.

"""
TAIL = """
## What is known to differ, and why

**transformers' Qwen3 rows (63, H20, transformers 4.51.3).** They print weights, the cache of prompt and answer and
33 to 48 MiB at every length. A peak would hold more: one layer's keys are there twice while a token is appended
(64 MiB at 32,768 tokens), and the prompt's feed-forward takes gigabytes (Qwen2.5's table, a peak by its script,
has them). They were read after the generation, so `steady` is what answers them; `allocated_peak` means
`torch.cuda.max_memory_allocated` and stays 0.2 % (a prompt of 1 token) to 24 % (30,720 tokens) above. Nothing in
such a run says which of the two was read.

- FP8 of the models whose head is tied (0.6B, 1.7B, 4B): 297, 594 and 742 MiB more than we say, to the MiB a second
  copy of the table. A tied FP8 model of that shape loads tied in transformers 4.51.3 and 5.24 on the CPU, so we
  leave it.
- AWQ: 512 B a layer and token more than we say; not explained (they ran in another environment, without flash
  attention).

**ExLlama on two cards (exl009 to exl012).** The README adds both cards up; `allocated_peak` is one card's.

**vLLM**

- llmd002 (gpt-oss-120b, H100): its own parts add up to 0.95 of the card, the run states 0.90, with which it would
  not start.
- vllm008 (Llama 3.2 Vision, 0.7): the first engine profiled 128 images of four tiles at once, 36 GiB; not
  modelled.
- vllm015: two unlike cards and layers split by hand (16 and 32), which the run does not say.
- unsl rows: their LoRA rank, and linears that dynamic uploads keep in 16 bit, are not stated: weights to 0.25 GiB
  apart.
- DeepSeek-R1 and Qwen3-235B under 0.11.0: one published environment sampled with FlashInfer (16 B an entry of the
  vocabulary), another with PyTorch's sort (38.3 B); the version alone does not tell.
- The workspace of the fused all-reduce (1.4 GiB a rank from 0.17 on) is there only for classes that are compiled:
  Sarvam's was not in 0.18.0.

**SGLang.** sgl014 ran 0.4.3, whose default share is another, and does not say so; sgl004 was told 0.80.

**llama.cpp.** The build decides, and published runs seldom state it (`stack: {"llama.cpp": "b5300"}` does).

- Compute buffer. Where logits are the largest part, builds to mid-2025 have one row of the hidden size beside them
  and newer ones two; a build that is not stated gets the middle, at most 2 % off. The newest server keeps logits
  of its sequences only: the range reaches down to that. Layouts at some lengths cost a few rows more (GLM-4-32B:
  353 MiB at 32,768 tokens, 308 at 24,576 in one and the same build); that is left out.
- ll005, ll006 (Qwen3-Coder-Next): the file type and which experts lay on the card are not stated. Their recurrent
  state is that of four slots, the server's default; we keep one for each user asked for.
- ll072 (DeepSeek-V3, 2025): builds that had no flash attention for its latent, and a copy of one expert tensor.
  The range of runs with experts on the host reaches up to such a copy, which the fork of most published runs does
  not make.
- Weights and cache where no file type is stated are an F16 file's (ll005, ll006, ll062 and others).
- ll027, ll036: a fork without a latent cache, and one that keeps whole windows.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(HEAD + table() + TAIL, "utf-8")


def table() -> str:
    """Errors by quantity and engine."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for text in ROWS.read_text("utf-8").splitlines():
        row = json.loads(text)
        if row["trust"] != "low":
            for name, error in errors_of(row):
                found[name, row["run"]["engine"]].append(error)
    shown = sorted((key for key in found if key[0] in SHOWN), key=lambda key: (SHOWN.index(key[0]), key[1]))
    head = "| quantity | engine | rows | median error | 90th percentile |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(line(*key, sorted(found[key])) for key in shown)


def line(name: str, engine: str, errors: list[float]) -> str:
    """One line of the table."""
    ninth = errors[int(0.9 * (len(errors) - 1))]
    return f"| {name} | {engine} | {len(errors)} | {median(errors):.2%} | {ninth:.2%} |\n"


if __name__ == "__main__":
    main()
