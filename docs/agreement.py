"""Traces random runs next to their estimates: ``python -m docs.agreement`` (needs the extra ``trace``).

Appends rows to ``tests/data/traced_random.jsonl`` (a seed's draws go on where they stopped) and writes the table
``docs/agreement.md``; with ``--again NAMES`` rows of that file are traced anew and replaced; with ``--page`` only the
table is made.
"""

import argparse
import json
import random
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from estimator.errors import EstimatorError
from estimator.estimate import estimate
from estimator.schema import Estimate, Run
from tests.estimator.cases import DATA, Outcome, cases, outcome

ROWS = DATA / "traced_random.jsonl"
PAGE = Path(__file__).with_suffix(".md")
AROUND = ("workspace", "allocator_rounding")
DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
LIKE_LLAMA = ("llama", "qwen2", "qwen3", "mistral", "gemma", "olmo2", "phi3", "granite", "seed_oss", "smollm3", "arcee")
ENCODERS = ("bert", "roberta")
OPTIMIZERS = {
    "adamw": 60, "adamw-8bit": 6, "adamw-32bit": 3, "sgd": 4, "sgd-momentum": 5, "adafactor": 8, "lion": 3,
    "lion-8bit": 3, "ademamix": 3, "ademamix-8bit": 2, "muon": 6,
}  # fmt: skip
HEAD = """# Analytic and traced peaks

`python -m docs.agreement` draws random runs, runs the real training step of each on fake tensors (`vram-bot trace`) and
sets the peak of live tensor bytes next to the estimate's. The rows lie in `tests/data/traced_random.jsonl`; the test
`tests/estimator/test_agreement.py` holds every later estimate to them. *Equal* means within 0.001 %. The models are
small (one to four layers, most have two), so that a trace takes seconds: what is told apart is code paths. Largest:
a gated delta net over a single chunk (r11-002, 23 tokens), where the scan keeps its first state only when a second
chunk follows; the estimate counts it always. Stages after SFT (DPO and so on), GaLore and the like and several cards
are traced by other scripts: `tests/data/traced_stages.jsonl`, `traced_more.jsonl` and `traced_parallel*.jsonl`.

"""


def configs() -> list[dict[str, Any]]:
    """The smallest config of every family that was ever traced."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("traced.jsonl", "traced_more.jsonl"):
        for case in cases(name):
            config = case["run"]["model"]
            kind = config["model_type"]
            if kind not in found or _size(config) < _size(found[kind]):
                found[kind] = config
    return list(found.values())


def _size(config: dict[str, Any]) -> float:
    try:
        return live(estimate(Run(model=config, task="train", method="full", micro_batch=1, seq_len=32)))
    except EstimatorError:
        return float("inf")


def live(answer: Estimate) -> int:
    """Live bytes at the peak of an estimate, analytic or traced."""
    assert answer.per_gpu is not None
    return answer.per_gpu.allocated_peak - sum(one.bytes for one in answer.per_gpu.at_peak if one.item in AROUND)


def draws(seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and random runs without an end; every family comes once before any comes again."""
    rng, known = random.Random(seed), configs()  # noqa: S311 - no secret
    for number in count():
        if number % len(known) == 0:
            rng.shuffle(known)
        yield f"r{seed}-{number:03d}", drawn(rng, known[number % len(known)])


def drawn(rng: random.Random, config: dict[str, Any]) -> dict[str, Any]:
    """A random run of a family as fields."""
    config, encoder = shallow(config), config["model_type"] in ENCODERS
    if config["model_type"] in LIKE_LLAMA and rng.random() < 0.8:
        config |= _dimensions(rng)
    fields = {"model": config, "framework": "transformers", "attention": "eager" if rng.random() < 0.2 else "sdpa"}
    if rng.random() < 0.15 and not encoder:
        return fields | _generation(rng)
    fields |= _training(rng)
    if encoder:
        fields |= {"details": fields.get("details", {}) | {"objective": "mlm"}, "loss": "standard"}
    elif rng.random() < 0.1:
        fields |= _packed(rng, fields)
    return fields


def _packed(rng: random.Random, fields: dict[str, Any]) -> dict[str, Any]:
    """The same tokens as documents of one row."""
    lengths, left = [], int(fields["seq_len"])
    while left:
        lengths.append(min(left, rng.randint(8, 200)))
        left -= lengths[-1]
    details = fields.get("details", {}) | {"document_lengths": lengths}
    return {"packing": True, "micro_batch": 1, "attention_mask_4d": False, "details": details}


def shallow(config: dict[str, Any]) -> dict[str, Any]:
    """The config with two layers, where its layers are all alike."""
    alike = not {"layer_types", "attention_types"} & config.keys() and "linear_num_key_heads" not in config
    return {name: 2 if alike and name in DEPTH and value > 2 else value for name, value in config.items()}


def _dimensions(rng: random.Random) -> dict[str, Any]:
    heads, width = rng.choice((2, 4, 6, 8)), rng.choice((16, 32, 64))
    return {
        "hidden_size": heads * width,
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([one for one in (1, 2, heads) if heads % one == 0]),
        "head_dim": width,
        "intermediate_size": 32 * rng.randint(2, 40),
        "num_hidden_layers": rng.randint(1, 2),
        "vocab_size": 8 * rng.randint(50, 6000),
        "tie_word_embeddings": rng.random() < 0.5,
        "pad_token_id": 0,
    }


def _generation(rng: random.Random) -> dict[str, Any]:
    return {
        "task": "infer", "engine": "hf", "precision": rng.choice(("bf16", "fp32")), "context_len": rng.randint(8, 400),
        "micro_batch": rng.randint(1, 6), "new_tokens": rng.choice((1, 2, 3)), "logits": rng.choice(("last", "all")),
    }  # fmt: skip


def _training(rng: random.Random) -> dict[str, Any]:
    method = rng.choices(("full", "freeze", "lora", "dora", "qlora"), (40, 8, 25, 7, 20))[0]
    whole = method in ("full", "freeze")
    precision = rng.choice(("bf16", "amp-bf16", "fp32", "amp-fp16") if whole else ("bf16",))
    fields: dict[str, Any] = {
        "task": "train", "stage": "sft", "method": method, "precision": precision,
        "autocast": precision.startswith("amp") or (precision == "bf16" and rng.random() < 0.5),
        "micro_batch": rng.randint(1, 4), "seq_len": rng.randint(16, 400), "grad_accum": rng.choice((1, 1, 1, 2)),
        "gradient_checkpointing": rng.choice(("none", "full", "full", "every-2")),
        "loss": rng.choices(("standard", "chunked", "fused"), (75, 15, 10))[0], "outputs_kept": rng.random() < 0.15,
        "gradient_clipping": rng.random() < 0.8, "attention_mask_4d": rng.random() < 0.1,
        "optimizer": rng.choices(tuple(OPTIMIZERS), tuple(OPTIMIZERS.values()))[0],
    }  # fmt: skip
    if fields["optimizer"] == "adamw":
        fields["optimizer_impl"] = rng.choice(("fused", "fused", "foreach", "for-loop"))
    if method == "freeze":
        fields["details"] = {"freeze_trainable_layers": 1}
    return fields | ({} if whole else _adapter(rng, method))


def _adapter(rng: random.Random, method: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "adapter": {
            "rank": rng.choice((4, 8, 16, 64)), "targets": rng.choice(("all-linear", "qv", "attention")),
            "dtype": rng.choice(("fp32", "bf16")), "dropout": rng.choice((0.0, 0.0, 0.05)),
        }
    }  # fmt: skip
    if method == "qlora":
        found |= {"weight_format": rng.choice(("nf4-dq", "nf4", "fp4-dq")), "kbit_prepare": rng.random() < 0.4}
    return found


def traced(fields: dict[str, Any]) -> dict[str, Any]:
    """What the tracer measures, in the shape of a case."""
    from bot.tracing.trace import trace

    answer = trace(Run.model_validate(fields))
    assert answer.per_gpu is not None and answer.run is not None
    around = sum(one.bytes for one in answer.per_gpu.at_peak if one.item in AROUND)
    phases = {one.phase: one.allocated_peak - around for one in answer.per_gpu.phases}
    return {
        "run": fields | {"stack": {name: value for name, value in (answer.run.stack or {}).items() if value}},
        "measured": {"metric": "live", "bytes": live(answer)},
        "phase": answer.per_gpu.peak_phase,
        "phases": phases,
        "steady_bytes": answer.per_gpu.steady - around,
    }


def add(wanted: int, seed: int, minutes: float) -> None:
    """Trace until there are so many rows of this seed or the time is up; what was drawn before is not drawn again."""
    before = [case["id"] for case in cases(ROWS.name) if case["id"].startswith(f"r{seed}-")]
    made, last, end = len(before), max(before, default=""), time.monotonic() + 60 * minutes
    with ROWS.open("a", encoding="utf-8") as rows:
        for name, fields in draws(seed):
            if made >= wanted or time.monotonic() > end:
                return
            if name <= last:
                continue
            start = time.monotonic()
            try:
                found = {"id": name, "arch": fields["model"]["model_type"], **traced(fields)}
            except EstimatorError as error:
                print("left out:", name, error.message[:250], json.dumps(fields), flush=True)
                continue
            rows.write(json.dumps(found, separators=(",", ":")) + "\n")
            rows.flush()
            made += 1
            print(f"{name} {found['arch']} {_error(found)} in {time.monotonic() - start:.0f} s", flush=True)


def _error(case: dict[str, Any]) -> str:
    try:
        return f"{outcome(case).error:+.4%}"
    except EstimatorError as error:
        return error.message


def again(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Trace rows anew; one line of JSON each, and all of them by name."""
    rows, found = {case["id"]: case for case in cases(ROWS.name)}, {}
    for name in names:
        found[name] = {"id": name, **traced(rows[name]["run"])}
        print(json.dumps(found[name]), flush=True)
    return found


def replace(found: dict[str, dict[str, Any]]) -> None:
    """Put what was traced anew in the rows' place."""
    rows = [case | found.get(case["id"], {}) for case in cases(ROWS.name)]
    ROWS.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows), "utf-8")


def page() -> str:
    """The table by method, by family, the worst rows, and every row."""
    outcomes = [outcome(case) for case in cases(ROWS.name)]
    parts = [HEAD, *_table("method", outcomes, lambda run: run.get("method") or run["task"])]
    parts += _table("optimizer", outcomes, lambda run: run.get("optimizer") or "none (inference)")
    parts += _table("family", outcomes, lambda run: run["model"]["model_type"])
    parts += ["\n## Every row\n\n| row | run | traced bytes | estimated | error |\n| --- | --- | --- | --- | --- |\n"]
    for one in sorted(outcomes, key=lambda one: -abs(one.error)):
        measured = one.case["measured"]["bytes"]
        parts.append(
            f"| {one.case['id']} | {_told(one.case['run'])} | {measured:,} | {one.estimated:,} | {one.error:+.3%} |\n"
        )
    return "".join(parts)


def _table(title: str, outcomes: list[Outcome], key: Any) -> Iterator[str]:
    groups: dict[str, list[float]] = defaultdict(list)
    for one in outcomes:
        groups[key(one.case["run"])].append(abs(one.error))
    groups["all"] = [abs(one.error) for one in outcomes]
    yield f"\n| {title} | runs | equal | median | 95th percentile | worst |\n| --- | --- | --- | --- | --- | --- |\n"
    for name, errors in sorted(groups.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        errors.sort()
        equal, high = sum(error <= 1e-5 for error in errors), errors[int(0.95 * (len(errors) - 1))]
        yield f"| {name} | {len(errors)} | {equal} | {median(errors):.4%} | {high:.4%} | {errors[-1]:.3%} |\n"


def _told(run: dict[str, Any]) -> str:
    names = (
        "method",
        "task",
        "precision",
        "optimizer",
        "optimizer_impl",
        "gradient_checkpointing",
        "attention",
        "loss",
    )
    words = [run["model"]["model_type"], *(str(run[name]) for name in names if run.get(name) not in (None, "train"))]
    return " ".join([*words, f"{run['micro_batch']}x{run.get('seq_len') or run.get('context_len')}"])


def main() -> None:
    """Read the flags and do it."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=160, help="rows of this seed in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--again", nargs="+", metavar="NAME")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.again:
        replace(again(given.again))
    elif not given.page:
        add(given.count, given.seed, given.minutes)
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
