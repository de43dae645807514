"""What DeepSpeed holds from the start on besides weights and states, as standing parts of the breakdown."""

from estimator.parallel.layout import Layout
from estimator.parallel.states import Stored
from estimator.stages.standing import Standing

HELD, HELD_ZH = "the engine's buffer of all gradients", "引擎持有的全部梯度的缓冲区"


def masters(shard: Stored, layout: Layout) -> tuple[Standing, ...]:
    """fp32 copies of what a rank optimises; with ZeRO-3 its gradients and the reduction's bucket too."""
    cards, count = layout.shards, shard.master // 4
    dealt, dealt_zh = (f", dealt out to {cards} cards", f"，由 {cards} 张卡分担") if cards > 1 else ("", "")
    share, share_zh = ("one card's share of the gradients", "本卡的一份梯度") if cards > 1 else (HELD, HELD_ZH)
    found = (
        Standing(
            "master_weights",
            shard.master,
            f"fp32 copies of the trainable parameters{dealt}: {count:,} x 4 B",
            f"可训练参数的 fp32 副本{dealt_zh}：{count:,} x 4 字节",
        ),
        Standing(
            "gradients",
            shard.gradients,
            f"{share}{dealt}",
            f"{share_zh}{dealt_zh}",
        ),
        Standing(
            "weights",
            shard.persistent,
            "small parameters that ZeRO-3 keeps whole (stage3_param_persistence_threshold)",
            "ZeRO-3 完整保留的小参数（stage3_param_persistence_threshold）",
        ),
        Standing(
            "communication",
            shard.bucket,
            f"the reduction's bucket of {shard.bucket // 2:,} elements x 2 B (reduce_bucket_size)",
            f"梯度归约桶：{shard.bucket // 2:,} 个元素 x 2 字节（reduce_bucket_size）",
        ),
    )
    return tuple(one for one in found if one.bytes)
