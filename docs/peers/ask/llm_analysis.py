"""llm-analysis: weights, optimizer states, gradients and activations of one card; weights and cache for inference."""

from importlib import import_module
from typing import Any

from docs.peers.ask.lines import Row, answer, need, plain

GATED = ("llama", "mistral", "qwen2", "mixtral", "gemma", "phi3")


def ask(row: Row) -> float:
    """Bytes of one card."""
    run, config = row["run"], row["config"]
    plain(run, cards=1 << 20)
    need(not run.get("weight_format"), "quantised weights of some layers")
    need(config["model_type"] in GATED, f"the family {config['model_type']}")
    if run["task"] == "infer":
        found = _analysis(row).inference(batch_size_per_gpu=run["micro_batch"], seq_len=run["context_len"],
                                         num_tokens_to_generate=run.get("new_tokens") or 1)  # fmt: skip
        return float(found["weight_memory_per_gpu"] + found["kv_cache_memory_per_gpu"])
    need(run["method"] == "full", f"the method {run['method']}")
    analysis, stage = _analysis(row), (run.get("parallel") or {}).get("zero") or 0
    module = import_module("llm_analysis.analysis")
    mixed = run["precision"] != "bf16"
    found = analysis.training(
        batch_size_per_gpu=run["micro_batch"],
        gradient_accumulation_steps=run.get("grad_accum") or 1,
        seq_len=run["seq_len"],
        activation_recomputation=module.ActivationRecomputation(
            2 if run.get("gradient_checkpointing") == "full" else 0
        ),
        ds_zero=module.DSZeRO(stage),
        flash_attn=run.get("attention") != "eager",
        mlp_gated_linear_units=True,
        # one field stands for master weights and gradients: pure bf16 has no masters, 2 B gradients and 4 B of moments
        **({} if mixed else {"master_weights_dtype_bytes": 2, "other_op_bytes": 2}),
    )
    return float(found["(weight+op_state+grad+act)_memory_per_gpu"])


def _analysis(row: Row) -> Any:
    config, parallel = row["config"], row["run"].get("parallel") or {}
    sizes, analysis = import_module("llm_analysis.config"), import_module("llm_analysis.analysis")
    longest = max(config.get("max_position_embeddings") or 0, row["run"].get("seq_len") or 0)
    model = sizes.ModelConfig(
        name="row",
        num_layers=config["num_hidden_layers"],
        n_head=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        vocab_size=config["vocab_size"],
        max_seq_len=longest,
        num_key_value_heads=config["num_key_value_heads"],
        ffn_embed_dim=config["intermediate_size"],
        expansion_ratio=config["intermediate_size"] / config["hidden_size"],
        model_type=config["model_type"],
        moe_num_experts=config.get("num_local_experts") or 1,
        moe_top_k=config.get("num_experts_per_tok") or 1,
    )
    tensor = parallel.get("tensor") or 1
    layout = sizes.ParallelismConfig(tp_size=tensor, dp_size=parallel.get("data") or 1,
                                     sp_size=tensor if parallel.get("sequence") else 1)  # fmt: skip
    card = sizes.GPUConfig("card", 4096, 2039, 600, 8e-6, 312)
    return analysis.LLMAnalysis(model, card, sizes.DtypeConfig(), layout)


if __name__ == "__main__":
    answer(ask)
