"""Every tensor of a tower and its projector, under the names of transformers 5.24 (models/clip, siglip, qwen*_vl)."""

from functools import lru_cache

from estimator.architecture import Architecture, Inventory, LayerKind, Weight
from estimator.vision.tower import Tower, tower_of

Weights = tuple[Weight, ...]


def linear(name: str, out: int, inner: int, bias: bool = True) -> Weights:
    """A linear with its bias."""
    weight = Weight(f"{name}.weight", (out, inner), "linear", name.rsplit(".", 1)[-1])
    return (weight, Weight(f"{name}.bias", (out,), "bias")) if bias else (weight,)


def norm(name: str, width: int, bias: bool = True) -> Weights:
    """A norm's scale, and the shift of a layer norm."""
    weight = Weight(f"{name}.weight", (width,), "norm")
    return (weight, Weight(f"{name}.bias", (width,), "norm")) if bias else (weight,)


@lru_cache(maxsize=128)
def tower_parts(arch: Architecture) -> tuple[Inventory, Weights]:
    """The tower as stem, layers and what follows them, and the projector. Sums to the counts that are known.

    What a known count has beyond the described tensors (or a tower that is not described at all) is one tensor more.
    """
    vision, tower = arch.vision, tower_of(arch)
    known = (vision.params + vision.projector_params) if vision else 0
    if tower is None:
        rest = (Weight("unmodelled", (known,), "other"),) if known else ()
        return Inventory(rest, (), (), ()), ()
    kinds = (LayerKind("full", "dense", _layer(tower)),)
    parts = Inventory(_stem(tower), kinds, (0,) * tower.layers, _top(tower))
    projector = _projector(tower)
    beyond = known - parts.numel - sum(weight.numel for weight in projector)
    if beyond > 0:
        parts = Inventory((*parts.stem, Weight("unmodelled", (beyond,), "other")), kinds, parts.layers, parts.top)
    return parts, projector


def _stem(tower: Tower) -> Weights:
    patch = Weight("embeddings.patch_embedding.weight", (tower.hidden, tower.patch_values), "conv")
    bias = () if tower.form in ("clip", "qwen2", "qwen2_5") else (
        Weight("embeddings.patch_embedding.bias", (tower.hidden,), "bias"),
    )  # fmt: skip
    found: Weights = (patch, *bias)
    if tower.table:
        found += (Weight("embeddings.position_embedding.weight", (tower.table, tower.hidden), "embedding"),)
    if tower.form == "clip":
        found += (Weight("embeddings.class_embedding", (tower.hidden,), "other"),)
        found += norm("pre_layrnorm", tower.hidden)
    return found


def _layer(tower: Tower) -> Weights:
    width, wide = tower.hidden, tower.intermediate
    if tower.form.startswith("qwen"):
        norms = norm("norm1", width, tower.form != "qwen2_5") + norm("norm2", width, tower.form != "qwen2_5")
        found = norms + linear("attn.qkv", 3 * width, width) + linear("attn.proj", width, width)
        if tower.form == "qwen2_5":
            gated = linear("mlp.gate_proj", wide, width) + linear("mlp.up_proj", wide, width)
            return found + gated + linear("mlp.down_proj", width, wide)
        return found + linear("mlp.fc1", wide, width) + linear("mlp.fc2", width, wide)
    found = norm("layer_norm1", width) + norm("layer_norm2", width)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        found += linear(f"self_attn.{name}", width, width)
    return found + linear("mlp.fc1", wide, width) + linear("mlp.fc2", width, wide)


def _top(tower: Tower) -> Weights:
    return () if tower.form.startswith("qwen") else norm("post_layernorm", tower.hidden)


def _projector(tower: Tower) -> Weights:
    width, out = tower.hidden, tower.out
    if tower.projector == "pooled":
        scale = Weight("mm_soft_emb_norm.weight", (width,), "norm")
        return (scale, Weight("mm_input_projection_weight", (width, out), "other"))
    if tower.projector == "linear":
        return linear("linear", out, width)
    if tower.projector == "merger":
        merged = width * tower.merge**2
        found = norm("ln_q", width, tower.form != "qwen2_5") + linear("mlp.0", merged, merged)
        found += linear("mlp.2", out, merged)
        for name in (f"deep.{number}" for number in range(tower.deep)):
            found += norm(f"{name}.norm", merged) + linear(f"{name}.fc1", merged, merged)
            found += linear(f"{name}.fc2", out, merged)
        return found
    return linear("linear_1", out, width) + linear("linear_2", out, out)
