"""vramcalc: ``estimate(config, …).total``, which its README holds against ``max_memory_allocated``."""

from importlib import import_module

from docs.peers.ask.lines import Row, answer, need, plain


def ask(row: Row) -> float:
    """Bytes of one card."""
    run = row["run"]
    plain(run)
    need(not run.get("weight_format"), "quantised weights")
    fields = {"dtype": "bf16", "batch": run["micro_batch"], "attn_impl": _attention(run)}
    estimate = import_module("vramcalc").estimate
    if run["task"] == "infer":
        tokens = run["context_len"] + (run.get("new_tokens") or 0)
        return float(estimate(row["config"], mode="inference", seq_len=tokens, **fields).total)
    need(run["method"] in ("full", "lora"), f"the method {run['method']}")
    adapter = run.get("adapter") or {}
    need(adapter.get("targets") in (None, "attention"), f"adapters of {adapter.get('targets')}")
    mixed = run["precision"].startswith("amp")
    need(mixed or run["precision"] == "bf16", f"the precision {run['precision']}")
    fields |= {"precision": "amp" if mixed else "pure", "lora_rank": adapter.get("rank"), "seq_len": run["seq_len"]}
    fields["grad_checkpoint"] = run.get("gradient_checkpointing") == "full"
    return float(estimate(row["config"], mode="train", optimizer="adamw", **fields).total)


def _attention(run: Row) -> str:
    return "flash" if str(run.get("attention")).startswith("flash") else str(run.get("attention") or "sdpa")


if __name__ == "__main__":
    answer(ask)
