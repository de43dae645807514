"""Falcon: multi-query or grouped heads, blocks in parallel or one after the other, rotary positions or alibi.

It calls the attention kernel itself, always with a mask: with one head of keys for all queries PyTorch writes the
attention out in fp32, otherwise the memory-efficient kernel runs.
"""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.activations import activation
from estimator.step.attention import additive, efficient, rotate, safe_softmax
from estimator.step.families.bloom import dropout_add
from estimator.step.families.bloom import top as top
from estimator.step.families.classic import Around, normed, shared
from estimator.step.families.llama import rotary
from estimator.step.masks import positions, tokens_so_far, written_out_mask
from estimator.step.model import Layer, Model, embedded
from estimator.step.tape import BOOL, FULL, LONG, Tensor
from estimator.step.written import ROWS_OF_SCORES, by_token, folded, rate, scores_of, unfolded, weighted

__all__ = ["layer", "shared", "stem", "top"]


def stem(model: Model, ids: Tensor) -> Tensor:
    """Embeddings, a mask in any case (with alibi in it, where the model has that), rotary tables."""
    tokens = embedded(model, "word_embeddings.weight", ids)
    model.held.append(tokens)
    bias = alibi(model, tokens.itemsize) if has_alibi(model) else None
    position_ids, mask = positions(model), made_mask(model, tokens)
    if bias is not None and mask is not None:
        mask = biased_mask(model, mask, bias)
    tables = rotary(model, tokens.itemsize)
    model.around = Around(position_ids, mask, *tables, *([bias] if bias is not None else []))
    return tokens


def has_alibi(model: Model) -> bool:
    """Whether distances are added to the scores."""
    return bool(dict(model.arch.extra).get("alibi"))


def made_mask(model: Model, hidden: Tensor) -> Tensor | None:
    """Additive for written-out attention, boolean for the kernels; the class does not leave it to them."""
    if model.given_mask is not None or model.regime.attention == "eager":
        return written_out_mask(model, hidden)
    return Tensor(model.tape, model.tape.new("ss", 1, BOOL).storage, "bss", 1, BOOL)


def alibi(model: Model, itemsize: int) -> Tensor:
    """Slopes times the positions of every sequence."""
    tape = model.tape
    ones = tape.new(tokens_so_far(model), 1, LONG)
    out = tape.new(ones.rows, model.arch.heads, 2)
    model.held.append(ones)
    return ops.cast(out, itemsize)


def biased_mask(model: Model, mask: Tensor, bias: Tensor) -> Tensor:
    """Alibi where a token may look, the lowest number elsewhere: one matrix a head."""
    if mask.itemsize == BOOL:
        mask = model.tape.new("bss", 1, bias.itemsize)
    scaled = model.tape.like(bias)
    hidden_from = model.tape.like(mask, BOOL)
    out = model.tape.new("bss", model.arch.heads, bias.itemsize)
    del scaled, hidden_from
    return out


def layer(model: Model, layer: Layer, x: Tensor, around: Around) -> Tensor:
    """One block; its weights live until the next block has returned."""
    layer.bias_added = True
    residual = x
    names = dict(model.arch.norm_names)
    norm = normed(model, layer, x, names["pre_attention"])
    if not model.arch.parallel_residual:
        return in_turn(model, layer, norm, residual, around)
    own = normed(model, layer, x, names["pre_mlp"]) if "pre_mlp" in names else norm
    attended, weights = attention(model, layer, norm, around)
    changed = mlp(model, layer, own)
    changed = add_in_place(changed, attended)
    out = dropout_add(model, changed, residual)
    keep_weights(model, weights)
    return out


def in_turn(model: Model, layer: Layer, norm: Tensor, residual: Tensor, around: Around) -> Tensor:
    """Attention first, then the feed-forward block (Falcon-RW)."""
    attended, weights = attention(model, layer, norm, around)
    attended_out = ops.dropout(attended, rate(model, model.arch.attention_dropout))
    residual = ops.add(residual, attended_out)
    del attended_out
    own = normed(model, layer, residual, "post_attention_layernorm")
    changed = mlp(model, layer, own)
    out = dropout_add(model, changed, residual)
    del norm
    keep_weights(model, weights)
    return out


def keep_weights(model: Model, weights: Tensor | None) -> None:
    """What a block returns beside the residual stream."""
    first = 2 if has_alibi(model) else 1
    model.held[first:] = [weights] if weights is not None else []


def add_in_place(x: Tensor, y: Tensor) -> Tensor:
    """``x += y``."""
    out = x.detach()
    return x.tape.attach(out, (x, y), (), lambda g: (g, g)) if x.needs or y.needs else out


def mlp(model: Model, layer: Layer, x: Tensor) -> Tensor:
    """Up, activation, down."""
    with model.tape.inside("mlp"):
        x = activation(model.arch.activation)(layer.linear(x, "mlp.dense_h_to_4h"))
        return layer.linear(x, "mlp.dense_4h_to_h")


def attention(model: Model, layer: Layer, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
    """Fused projection cut by heads, rotary positions (but with alibi), attention, output projection."""
    with model.tape.inside("attention"):
        fused = layer.linear(x, "self_attention.query_key_value")
        q, k, v = cut_heads(model, fused)
        biased = has_alibi(model)
        if not biased:
            cos, sin = around.tables[:2]
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        groups = q.width // k.width
        k, v = layer.cached(k, v)
        weights: Tensor | None = None
        between: list[Tensor] = []
        if model.regime.attention != "eager":
            out = kernel(model, q, k, v, groups, around.mask)
        elif biased:
            out, weights, between = with_alibi(model, q, k, v, around)
        else:
            out, weights = without_alibi(model, q, k, v, groups, around.mask, x.itemsize)
        out = layer.linear(out, "self_attention.dense")
        del fused, between
        return out, weights


def cut_heads(model: Model, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Slices for the queries, looked-up copies for shared keys and values; the newer layout spreads those at once."""
    arch = model.arch
    if arch.kv_heads == arch.heads:
        q, k, v = (ops.part(fused, fused.width // 3) for _ in range(3))
        return q, k, v
    q = ops.part(fused, arch.heads * arch.head_dim)
    k, v = looked_up(fused, arch.kv_width), looked_up(fused, arch.kv_width)
    if arch.kv_heads == 1 and "ln_attn" not in dict(arch.norm_names).values():
        return q, k, v
    groups = arch.heads // arch.kv_heads
    return ops.copy(q), ops.repeat(k, groups), ops.repeat(v, groups)


def looked_up(x: Tensor, width: int) -> Tensor:
    """``x[..., [i], :]``: a copy; the backward fills a tensor of the whole size, and puts into a second one."""
    tape = x.tape
    index = tape.new("1", 1, LONG)
    kept = [tape.save(index)] if x.needs else []
    out = tape.new(x.rows, width, x.itemsize)
    if not x.needs:
        return out
    rows, whole, size = ops.shape_of(x)

    def backward(g: Tensor) -> Sequence[Tensor | None]:
        zeros = tape.new(rows, whole, size)
        result = tape.like(zeros)
        del zeros
        return (result,)

    return tape.attach(out, (x,), kept, backward)


def kernel(model: Model, q: Tensor, k: Tensor, v: Tensor, groups: int, mask: Tensor | None) -> Tensor:
    """``scaled_dot_product_attention`` with a mask; what is written out comes back by heads and is copied."""
    arch = model.arch
    dropout = rate(model, arch.attention_dropout) if has_alibi(model) else 0.0
    if groups == 1:
        return masked_kernel(q, k, v, arch.heads, mask)
    return ops.copy(written_kernel(q, k, v, arch.heads, groups, mask, dropout))


def masked_kernel(q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None) -> Tensor:
    """The memory-efficient kernel."""
    q, k, v = ops.autocast(q), ops.autocast(k), ops.autocast(v)
    if mask is not None and mask.itemsize != BOOL:
        mask = ops.autocast(mask)
    return efficient(q, k, v, heads, additive(mask, q.itemsize), v.width // heads)


def written_kernel(
    q: Tensor, k: Tensor, v: Tensor, heads: int, groups: int, mask: Tensor | None, dropout: float
) -> Tensor:
    """PyTorch's own written-out attention in fp32: the products spread the one head of keys and values."""
    half = [ops.autocast(q), ops.autocast(k), ops.autocast(v)]
    half.reverse()
    mask = additive(mask, half[0].itemsize)
    return broadcast_math(half.pop(), half.pop(), half.pop(), heads, groups, mask, dropout)


def broadcast_math(
    q: Tensor, k: Tensor, v: Tensor, heads: int, groups: int, mask: Tensor | None, dropout: float
) -> Tensor:
    """Scores of scaled fp32 queries and keys, the mask added in place, softmax, dropout, product with the values."""
    itemsize = q.itemsize
    q, k, v = ops.cast(q, FULL), ops.cast(k, FULL), ops.cast(v, FULL)
    q = ops.scale(q)
    scores = broadcast_product(q, ops.scale(k), ROWS_OF_SCORES[str(q.rows)], heads, groups)
    if mask is not None:
        ops.cast(mask, scores.itemsize)
    scores = safe_softmax(scores)
    scores = ops.dropout(scores, dropout)
    half_v = ops.autocast(v)
    out = ops.matmul(scores, spread(half_v, groups), q.rows, q.width)
    del half_v
    return ops.cast(out if q.tape.single else by_token(out), itemsize)


def broadcast_product(q: Tensor, k: Tensor, rows: str, heads: int, groups: int) -> Tensor:
    """``matmul(q, k^T)``: several sequences' queries are copied, keys spread."""
    half_k = ops.autocast(k)
    half_q = ops.autocast(q)
    left = half_q if q.tape.single else ops.copy(half_q)
    return ops.matmul(left, spread(half_k, groups), rows, heads)


def without_alibi(
    model: Model, q: Tensor, k: Tensor, v: Tensor, groups: int, mask: Tensor | None, itemsize: int
) -> tuple[Tensor, Tensor]:
    """Scores divided in place, softmax in the residual stream's type, no dropout."""
    scores = scores_by_groups(model, q, k, groups)
    scores = scaled_in_place(scores)
    scores = ops.softmax(ops.add(scores, mask) if mask is not None else scores, itemsize)
    return unfolded(model, weighted(model, scores, spread(v, groups), groups > 1)), scores


def with_alibi(model: Model, q: Tensor, k: Tensor, v: Tensor, around: Around) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Scores in fp32 plus alibi, scaled in place, softmax in the residual stream's type, dropout.

    Returns the result, the weights, and what the class's code holds until its end.
    """
    product = scores_of(model, q, k)
    scores = ops.cast(product, FULL)
    bias = around.tables[2]
    logits = scaled_in_place(ops.add(scores, bias))
    masked = ops.add(logits, around.mask) if around.mask is not None else logits
    weights = ops.softmax(masked, bias.itemsize)
    del masked
    weights = ops.dropout(weights, rate(model, model.arch.attention_dropout))
    return unfolded(model, weighted(model, weights, v)), weights, [product, scores, logits]


def scores_by_groups(model: Model, q: Tensor, k: Tensor, groups: int) -> Tensor:
    """``q @ k^T``, keys spread over the queries' heads."""
    if groups == 1:
        return scores_of(model, q, k)
    half_k = ops.autocast(k)
    half_q = ops.autocast(q)
    left = folded(model, half_q)
    return ops.matmul(left, spread(half_k, groups), ROWS_OF_SCORES[str(q.rows)], model.arch.heads)


def spread(x: Tensor, groups: int) -> Tensor:
    """One head for all queries: of one sequence a view, of several a copy; the gradient is summed."""
    if groups == 1 or not x.tape.single:
        return ops.repeat(x, groups)
    tape = x.tape
    out = Tensor(tape, x.storage, x.rows, x.width * groups, x.itemsize)
    if x.needs:
        rows, width, size = ops.shape_of(x)
        tape.attach(out, (x,), (), lambda g: (tape.new(rows, width, size),))
    return out


def scaled_in_place(x: Tensor) -> Tensor:
    """``x /= number``; its gradient is a new tensor."""
    return ops.fresh_gradient(x)
