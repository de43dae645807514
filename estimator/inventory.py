"""Every parameter tensor of a model, from its architecture, under the names transformers 5.24.0 gives them."""

from functools import lru_cache

from estimator.architecture import UNPACKED, Architecture, Inventory, LayerKind, Weight
from estimator.parameters import Blocks, Weights


@lru_cache(maxsize=256)
def inventory(arch: Architecture) -> Inventory:
    """Stem, layer kinds in order and top of ``arch``."""
    blocks = Blocks(arch)
    if arch.kind == "encoder-decoder":
        return _encoder_decoder(blocks) if arch.relative_buckets else _layer_normed(blocks)
    found = [layer(blocks, *pair) for pair in zip(arch.layer_types, arch.mlp_types, strict=True)]
    if found and blocks.family.get("first_norm") is False:
        found[0] = without(found[0], "pre_attention")
    kinds = tuple(dict.fromkeys(found))
    return Inventory(stem(blocks), kinds, tuple(kinds.index(kind) for kind in found), top(blocks))


@lru_cache(maxsize=256)
def active_parameters(arch: Architecture) -> int:
    """Parameters that one token passes through: all of them but the routed experts it is not sent to."""
    found = inventory(arch)
    if arch.experts is None:
        return found.numel
    idle = arch.experts.experts - arch.experts.per_token
    routed = (
        weight.numel for index in found.layers for weight in found.kinds[index].weights if weight.role == "expert"
    )
    return found.numel - sum(numel // arch.experts.experts * idle for numel in routed)


def layer(blocks: Blocks, attention: str, mlp: str) -> LayerKind:
    """One layer: what mixes tokens, feed-forward, norms."""
    weights = blocks.attention(attention) + blocks.mlp(mlp) + blocks.norms() + blocks.table("layer")
    return LayerKind(attention, mlp, weights)


def without(kind: LayerKind, part: str) -> LayerKind:
    """The layer less one of its parts (ModernBERT's first layer has no norm before attention)."""
    return LayerKind(kind.attention, kind.mlp, tuple(weight for weight in kind.weights if weight.part != part))


def stem(blocks: Blocks) -> Weights:
    """Embeddings and what follows them before the first layer."""
    arch = blocks.arch
    width = arch.embedding_dim or arch.hidden
    found = blocks.embedding("embedding", arch.vocab, width)
    if arch.positions == "learned":
        found += blocks.embedding("positions", arch.max_positions + arch.position_offset, arch.hidden)
    if arch.type_vocab:
        found += blocks.embedding("token_types", arch.type_vocab, arch.hidden)
    if width != arch.hidden:
        found += blocks.linear("project_in", arch.hidden, width, bias=False)
    if arch.embedding_norm:
        found += blocks.norm("embedding_norm", arch.hidden)
    found += blocks.table("stem")
    unmodelled = dict(arch.extra).get("unmodelled")
    return found + ((Weight("unmodelled", (int(unmodelled),), "other"),) if unmodelled else ())


def top(blocks: Blocks) -> Weights:
    """The final norm, and the head where it is not the embedding itself."""
    arch = blocks.arch
    width = arch.embedding_dim or arch.hidden
    found: Weights = blocks.norm("final_norm", arch.hidden) if "final_norm" in blocks.names and arch.norm_first else ()
    if arch.kind == "encoder":
        return found + _encoder_head(blocks)
    if arch.head_kind == "score":
        return (*found, Weight("score.weight", (1, arch.hidden), "other", "score"))
    if width != arch.hidden:
        found += blocks.linear("project_out", width, arch.hidden, bias=False)
    if not arch.tied:
        return found + blocks.linear("head", arch.vocab, width, arch.head_bias)
    return found + ((_bias(blocks, "head"),) if arch.head_bias else ())


def _encoder_head(blocks: Blocks) -> Weights:
    arch = blocks.arch
    if arch.head_kind == "pooler":
        return blocks.linear("pooler", arch.hidden, arch.hidden, bias=True)
    if arch.head_kind != "mlm":
        return ()
    found = blocks.linear("mlm_dense", arch.hidden, arch.hidden, bias=bool(blocks.family.get("mlm_bias", True)))
    found += blocks.norm("mlm_norm", arch.hidden)
    return found + ((_bias(blocks, "head"),) if arch.tied else blocks.linear("head", arch.vocab, arch.hidden, True))


def _bias(blocks: Blocks, part: str) -> Weight:
    return Weight(f"{blocks.names[part]}.bias", (blocks.arch.vocab,), "bias", part)


def _encoder_decoder(blocks: Blocks) -> Inventory:
    """T5: an encoder and a decoder that share the embedding; each stack has tables of relative positions.

    T5's first layers have them for their stack, UMT5's every layer its own.
    """
    arch = blocks.arch
    norm = arch.hidden
    attention = blocks.heads("full")
    mlp = tuple(
        weight._replace(part=UNPACKED) if weight.part == "down_proj" else weight for weight in blocks.mlp("dense")
    )
    encoder = attention + mlp + blocks.norm("pre_attention", norm) + blocks.norm("pre_mlp", norm)
    cross = tuple(_renamed(weight, "layer.0.SelfAttention", "layer.1.EncDecAttention") for weight in attention)
    mlp_norms = tuple(_renamed(weight, "layer.1.", "layer.2.") for weight in mlp + blocks.norm("pre_mlp", norm))
    cross += blocks.norm("pre_cross", norm, "layer.1.layer_norm")
    decoder = attention + blocks.norm("pre_attention", norm) + cross + mlp_norms
    table = Weight(
        "layer.0.SelfAttention.relative_attention_bias.weight", (arch.relative_buckets, arch.heads), "embedding"
    )
    head = () if arch.tied else blocks.linear("head", arch.vocab, arch.hidden, bias=False)
    counts = arch.layers, arch.decoder_layers or arch.layers
    every = bool(blocks.family.get("tables_in_every_layer"))
    return Inventory(
        stem=blocks.embedding("embedding", arch.vocab, arch.hidden) + blocks.norm("encoder_norm", norm),
        kinds=tuple(
            LayerKind(word, "dense", weights + extra)
            for word, weights in (("full", encoder), ("cross", decoder))
            for extra in ((table,), ())
        ),
        layers=tuple(
            2 * stack + int(index > 0 and not every) for stack, count in enumerate(counts) for index in range(count)
        ),
        top=blocks.norm("decoder_norm", norm) + head,
    )


def _layer_normed(blocks: Blocks) -> Inventory:
    """BART and its kin: the decoder's positions and norms stand with the top."""
    arch = blocks.arch
    attention = blocks.heads("full") + blocks.norm("pre_attention", arch.hidden)
    mlp = blocks.mlp("dense") + blocks.norm("pre_mlp", arch.hidden)
    cross = tuple(_renamed(weight, "self_attn", "encoder_attn") for weight in attention)
    head = () if arch.tied else blocks.linear("head", arch.vocab, arch.hidden, bias=False)
    return Inventory(
        stem=blocks.embedding("embedding", arch.vocab, arch.hidden) + _ends(blocks, "encoder"),
        kinds=(LayerKind("full", "dense", attention + mlp), LayerKind("cross", "dense", attention + cross + mlp)),
        layers=(0,) * arch.layers + (1,) * (arch.decoder_layers or arch.layers),
        top=_ends(blocks, "decoder") + head,
    )


def _ends(blocks: Blocks, stack: str) -> Weights:
    """Positions and norms around the layers of one stack."""
    arch = blocks.arch
    found: Weights = ()
    if arch.positions == "learned":
        shape = arch.max_positions + arch.position_offset, arch.hidden
        found += (Weight(f"{stack}.embed_positions.weight", shape, "embedding", "positions"),)
    if arch.embedding_norm:
        found += blocks.norm("embedding_norm", arch.hidden, f"{stack}.layernorm_embedding")
    return found + (blocks.norm(f"{stack}_norm", arch.hidden) if arch.norm_first else ())


def _renamed(weight: Weight, old: str, new: str) -> Weight:
    return Weight(weight.name.replace(old, new, 1), weight.shape, weight.role, weight.part)
