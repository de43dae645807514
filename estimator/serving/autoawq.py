"""AutoAWQ's own generation: packed linears, fused layers, a cache for the whole context made with the model.

Read in casper-hansen/AutoAWQ, awq/modules/fused/attn.py and block.py (0392a82, 077f39a): keys and values of
``max_seq_len`` positions in fp16 for every sequence of the batch. The prompt runs in one piece; its logits are made for
all positions and turned to fp32 by the models that do (transformers before 4.45). Temporaries of the prompt's attention
are left to the interval: that source writes them out, published peaks of Llama have no room for them, Falcon's has.
"""

from estimator.habits import HALF_LOSS
from estimator.serving.facts import gib
from estimator.serving.kv_sizes import layer_caches
from estimator.serving.memory import Cache, Memory, Share, Why
from estimator.serving.plan import Plan
from estimator.serving.rank_weights import rank_weights

UNSURE = 0.08
"""Share of everything below and above: prompts' temporaries, tables of fused layers, copies of what is being fused."""


def memory(plan: Plan) -> Memory:
    """What one card takes; several share the layers."""
    count = plan.run.gpu_count or 1
    weights = rank_weights(plan.arch, plan.fmt, plan.itemsize, 1, count, absorbs=False)
    token = sum(cache.layers * cache.token for cache in layer_caches(plan.arch, "fp16"))
    tokens = plan.length * plan.users
    held = -(-tokens * token // count)
    prompt = int(plan.run.context_len or 1) * plan.users
    sizes = "2" if plan.arch.model_type in HALF_LOSS else "2 + 4"
    logits = prompt * plan.arch.vocab * (2 if sizes == "2" else 6)
    unsure = int(UNSURE * (weights.bytes + held + logits))
    counted = Why(
        f"{tokens:,} tokens x {token:,} B, made with the model", f"{tokens:,} 个 token x {token:,} 字节，加载时即分配"
    )
    made = Why(
        f"{prompt:,} prompt tokens x vocabulary {plan.arch.vocab:,} x ({sizes}) B",
        f"{prompt:,} 个提示 token x 词表 {plan.arch.vocab:,} x ({sizes}) 字节",
    )
    return Memory(
        weights=weights,
        cache=Cache(held, held, float(token), tokens, float(plan.users), None, None, counted),
        shares=(Share("logits_loss", logits, made),),
        outside=(gib(0.25), gib(0.45), gib(0.75)),
        uncertain=(unsure, unsure),
        peak_phase="prefill",
    )
