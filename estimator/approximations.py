"""Why the timeline of an architecture is only near the real one, in Chinese (in English: ``step.families``)."""

import re

NEAREST = "按 {} 的结构组合，未逐步跟踪其自身代码"
PHRASES = {
    "Llama's attention and experts behind a softmax router": "Llama 注意力 + softmax 路由专家",
    "DeepSeek-V3's latent attention and experts behind a softmax router": "DeepSeek-V3 潜在注意力 + softmax 路由专家",
    "Mamba-2 and Llama's attention side by side": "Mamba-2 与 Llama 注意力并行",
    "its multipliers left out": "未计其缩放系数",
    "the sparse-attention indexer is left out": "未计稀疏注意力索引器",
    "alibi biases left out": "未计 ALiBi 偏置",
    "a Llama with one fused projection of queries, keys and values": "Llama（q、k、v 合并为一个投影）",
    "a GLM with one fused projection of queries, keys and values": "GLM（q、k、v 合并为一个投影）",
    "a decoder with layer norms and a plain feed-forward block": "使用 LayerNorm 与普通前馈层的解码器",
    "a Llama": "Llama",
    "a Qwen 3": "Qwen 3",
    "a Qwen 2 without its extra prediction layers": "Qwen 2（不含额外的预测层）",
    "a Phi-3 with dense attention in place of its block-sparse one": "Phi-3（以稠密注意力代替块稀疏注意力）",
    "the language model of Apertus 1": "Apertus 1 的语言模型",
    "a Llama, without its per-layer inputs and its shared keys and values": "Llama（不含逐层输入与共享的键值）",
    "a decoder with four norms a layer, without per-layer inputs, shared keys and values, and experts": (
        "每层四个归一化的解码器（不含逐层输入、共享的键值与专家）"
    ),
    "a GLM-4-0414 with positions of one kind": "GLM-4-0414（只用一种位置编码）",
    "a Llama, without its attention sinks and multipliers": "Llama（不含注意力汇聚与缩放系数）",
    "a Llama, without its cross-attention layers": "Llama（不含交叉注意力层）",
    "a Llama of equal layers": "各层相同的 Llama",
    "its own code is that of DeepSeek-V3, which is traced in its place": "其代码与 DeepSeek-V3 相同，以后者的跟踪代替",
    "its chunked attention is counted without the mask that rows longer than a chunk need": (
        "分块注意力未计入超过一个分块的行所需的掩码"
    ),
}
"""Parts of the English sentences."""

FORMS = (
    (re.compile(r"composed of (.+) in place of its own code, which is not followed step by step"), NEAREST),
    (
        re.compile(r"the code of .+ is not part of transformers; it is counted as (.+)"),
        "不在 transformers 中，按 {} 计算",
    ),
    (re.compile(r"\S+ is counted as (.+)"), "按 {} 计算"),
    (
        re.compile(r"followed and traced in training without the (.+) kernels, which keep less; .+"),
        "训练已跟踪验证（不含占用更少的 {} 内核）；生成未跟踪",
    ),
)
UNTRANSLATED = "该架构的时间线按相近结构估算，区间相应放宽"


def in_chinese(reason: str) -> str:
    """The Chinese for an English reason; a general sentence where there is none."""
    return re.sub(r"(?<=[\u3400-\u9fff）]) (?=[\u3400-\u9fff（])", "", _sentence(reason) or UNTRANSLATED)


def _sentence(reason: str) -> str | None:
    sentence, _, bracket = reason.partition(" (")
    extra = PHRASES.get(bracket.rstrip(")")) if bracket else ""
    body = PHRASES.get(sentence) or _formed(sentence)
    if body is None or extra is None:
        return None
    return f"{body}（{extra}）" if extra else body


def _formed(sentence: str) -> str | None:
    for pattern, text in FORMS:
        found = pattern.fullmatch(sentence)
        what = found and (PHRASES.get(found[1]) or (found[1] if re.fullmatch(r"[\w-]+", found[1]) else None))
        if what:
            return text.format(what)
    return None
