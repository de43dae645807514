"""ftuneai: its total; for allocated peaks without the 20 % that it adds for context and fragmentation."""

from importlib import import_module

from docs.peers.ask.lines import Row, answer, need, plain

GIB = 1 << 30
TARGETS = {"attention": "attention_all", "qv": "attention", "all-linear": "all_linear"}


def ask(row: Row) -> float:
    """Bytes of one card."""
    run, config = row["run"], row["config"]
    parallel = run.get("parallel") or {}
    plain(run, cards=1 << 20)
    need(run["task"] == "train", "inference")
    need(not parallel.get("tensor") and parallel.get("engine") != "ddp", "this layout")
    need(run.get("weight_format") in (None, "nf4", "nf4-dq"), f"the format {run.get('weight_format')}")
    models, memory = import_module("ftuneai.core.models"), import_module("ftuneai.core.memory")
    experts = config.get("num_local_experts")
    spec = models.ModelSpec(
        name=run["model"],
        parameters=row["parameters"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"],
        intermediate_size=config["intermediate_size"],
        vocab_size=config["vocab_size"],
        max_seq_length=max(config.get("max_position_embeddings") or 0, run["seq_len"]),
        is_moe=bool(experts),
        num_experts=experts,
        num_active_experts=config.get("num_experts_per_tok"),
    )
    adapter = run.get("adapter") or {}
    chosen = models.TrainingConfig(
        model=run["model"],
        method=models.FineTuneMethod(run["method"]),
        quantization=models.Quantization("4bit" if run.get("weight_format") else "none"),
        batch_size=run["micro_batch"],
        seq_length=run["seq_len"],
        gradient_checkpointing=run.get("gradient_checkpointing") == "full",
        optimizer=models.OptimizerType("adamw"),
        lora_rank=adapter.get("rank") or 16,
        lora_target=models.LoRATarget(TARGETS[adapter.get("targets") or "attention"]),
        flash_attention=run.get("attention") != "eager",
        sharding=models.ShardingStrategy(_sharding(parallel)),
        num_gpus=run.get("gpu_count") or 1,
    )
    found = memory.MemoryEstimator(spec, chosen).estimate()
    share = 1 + memory.CUDA_OVERHEAD_FRACTION if row["metric"] == "allocated" else 1
    return float(found.total_gb / share * GIB)


def _sharding(parallel: Row) -> str:
    if not parallel:
        return "none"
    return "zero_3" if parallel["engine"] == "deepspeed" else "fsdp"


if __name__ == "__main__":
    answer(ask)
