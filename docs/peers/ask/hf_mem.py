"""hf-mem: weights by the safetensors header plus its key/value cache; it knows inference only."""

from importlib import import_module

from docs.peers.ask.lines import Row, answer, need, plain


def ask(row: Row) -> float:
    """Bytes of one card."""
    run = row["run"]
    plain(run)
    need(run["task"] == "infer", "training")
    need(not run.get("weight_format"), "a cache beside AWQ weights")
    metadata, cache = import_module("hf_mem.safetensors.metadata"), import_module("hf_mem.safetensors.kv_cache")
    header = {name: {"dtype": "BF16", "shape": shape} for name, shape in row["tensors"]}
    weights = metadata.parse_safetensors_metadata({"Transformer": header})
    tokens = run["context_len"] + (run.get("new_tokens") or 0)
    kept = cache.compute_safetensors_kv_cache_size(row["config"], "BF16", tokens, run["micro_batch"])
    return float(weights.bytes_count + kept)


if __name__ == "__main__":
    answer(ask)
