"""fitcheck-llm: the sum of its tensors (weights, adapter, optimizer, gradients, activations), without its overhead."""

from importlib import import_module

from docs.peers.ask.lines import Row, answer, need, plain

MIB = 1 << 20
TARGETS = {
    "attention": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "qv": ["q_proj", "v_proj"],
    "all-linear": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
}
CARDS = {"A100 80GB": "a100-80", "A100 40GB": "a100-40", "RTX 3090": "3090", "RTX A6000": "a6000"}


def ask(row: Row) -> float:
    """Bytes of one card."""
    run = row["run"]
    plain(run)
    fitcheck, model = import_module("fitcheck"), _model(row)
    need(run["precision"] in ("bf16", "fp16"), f"the precision {run['precision']}")
    quantised = {"quantization": "nf4" if run.get("weight_format") else "none",
                 "double_quant": run.get("weight_format") == "nf4-dq"}  # fmt: skip
    need(run.get("weight_format") in (None, "nf4", "nf4-dq"), f"the format {run.get('weight_format')}")
    card = fitcheck.get_gpu(CARDS.get(run["gpu"], "a100-80"))
    if run["task"] == "infer":
        tokens = run["context_len"] + (run.get("new_tokens") or 0)
        serving = fitcheck.ServingConfig(precision=run["precision"], seq_len=tokens, num_concurrent=run["micro_batch"])
        found = fitcheck.estimate_inference(model, serving, card)
        return float((found.total_mib - found.overhead_mib) * MIB)
    adapter = run.get("adapter") or {}
    training = fitcheck.TrainingConfig(
        precision=run["precision"],
        optimizer="adamw",
        optimizer_dtype="fp32" if adapter.get("dtype") != "bf16" and run["method"] != "full" else "bf16",
        batch_size=run["micro_batch"],
        seq_len=run["seq_len"],
        lora_rank=adapter.get("rank"),
        lora_targets=TARGETS[adapter.get("targets") or "attention"],
        grad_checkpoint=run.get("gradient_checkpointing") == "full",
        flash_attn=run.get("attention") != "eager",
        **quantised,
    )
    found = fitcheck.estimate(model, training, card)
    return float((found.total_mib - found.overhead_mib) * MIB)


def _model(row: Row) -> object:
    """What its parser makes of the hub's config.json, with the hub's parameter count."""
    parser = import_module("fitcheck.config_parser")
    parser._reject_unsupported(row["config"], row["run"]["model"])
    fields = parser._parse_fields(row["config"])
    derived = parser._count_params(fields)
    counted = row["parameters"]
    need(abs(derived / counted - 1) <= parser._PARAM_COUNT_TOLERANCE, "a model that is not Llama's shape")
    names = ("hidden_size", "num_layers", "num_attention_heads", "num_kv_heads", "intermediate_size", "vocab_size",
             "head_dim", "tie_word_embeddings")  # fmt: skip
    return parser.ModelConfig(
        name=row["run"]["model"], num_params=counted, **{name: getattr(fields, name) for name in names}
    )


if __name__ == "__main__":
    answer(ask)
