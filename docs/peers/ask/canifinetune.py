"""canifinetune: its total without the safety margin, and without the CUDA overhead for allocated peaks."""

from importlib import import_module

from docs.peers.ask.lines import Row, answer, need, plain

GIB = 1 << 30
SCOPES = {"attention": "attention", "qv": "conservative", "all-linear": "all_linear"}
FAMILIES = ("llama", "mistral", "qwen2", "mixtral", "phi", "gemma", "gpt2", "phi3")
FORMATS = {None: "none", "nf4": "nf4", "nf4-dq": "nf4_double_quant"}


def ask(row: Row) -> float:
    """Bytes of one card."""
    run, config = row["run"], row["config"]
    plain(run)
    need(run["task"] == "train", "inference")
    need(config["model_type"] in FAMILIES, f"the family {config['model_type']}")
    need(run.get("weight_format") in FORMATS, f"the format {run.get('weight_format')}")
    need(run["precision"] in ("bf16", "fp16", "fp32"), f"the precision {run['precision']}")
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size",
             "vocab_size", "tie_word_embeddings")  # fmt: skip
    adapter, memory = run.get("adapter") or {}, import_module("canifinetune.estimator.memory")
    attention = run.get("attention") or "sdpa"
    request = memory.EstimateRequest(
        model_id=run["model"],
        method=run["method"],
        seq_len=run["seq_len"],
        micro_batch_size=run["micro_batch"],
        base_dtype=run["precision"],
        quantization=FORMATS[run.get("weight_format")],
        lora_rank=adapter.get("rank") or 16,
        lora_target_scope=SCOPES[adapter.get("targets") or "attention"],
        optimizer="adamw_torch",
        gradient_checkpointing=run.get("gradient_checkpointing") == "full",
        attention_implementation="flash_attention_2" if attention.startswith("flash") else attention,
        gpu_vram_gb=row["card_gib"],
        use_network=False,
        override={name: config[name] for name in names}
        | {"family": config["model_type"], "total_params": row["parameters"]},
    )
    found = memory.estimate(request).memory
    total = found.total_estimated_gb - found.safety_margin_gb
    return float((total - (found.cuda_overhead_gb if row["metric"] == "allocated" else 0)) * GIB)


if __name__ == "__main__":
    answer(ask)
