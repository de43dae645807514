"""The image tower of an architecture as the step needs it: its form, its sizes, and what is done with its result."""

from functools import lru_cache
from typing import NamedTuple

from estimator.architecture import Architecture


class Tower(NamedTuple):
    """A vision transformer and its projector.

    ``form``: clip | siglip | qwen2 | qwen2_5 | qwen3 | plain (a SigLIP in place of what is not described).
    ``projector``: mlp (two linears) | linear | pooled (Gemma 3's averages) | merger (Qwen's, of ``merge`` x ``merge``
    patches). ``frames``: images that one patch spans (Qwen repeats a still one). ``idle``: layers at the end whose
    result nobody reads. ``table``: rows of the learned table of positions. ``deep``: mergers of inner layers.
    """

    form: str
    projector: str
    layers: int
    hidden: int
    heads: int
    intermediate: int
    patch: int
    out: int
    activation: str = "gelu_pytorch_tanh"
    frames: int = 1
    merge: int = 1
    classes: int = 0
    table: int = 0
    idle: int = 0
    deep: int = 0

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.hidden // self.heads

    @property
    def patch_values(self) -> int:
        """Values of one patch: three channels, ``frames`` times."""
        return 3 * self.frames * self.patch**2


FORMS = {
    "llava": "clip",
    "llava_next": "clip",
    "vipllava": "clip",
    "gemma3": "siglip",
    "paligemma": "siglip",
    "llava_onevision": "siglip",
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2_5",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3",
    "qwen3_5": "qwen3",
    "qwen3_5_moe": "qwen3",
}
"""Model type to the form of its tower; every other is counted as a plain one."""

TRACED = ("clip", "qwen2", "qwen2_5")
"""Forms whose steps were compared with traced ones to the byte; Qwen 3's is within one per cent, SigLIP's is read."""

PROJECTORS = {"gemma3": "pooled", "paligemma": "linear"}
CLIP_LIKE = ("clip", "CLIP")


@lru_cache(maxsize=128)
def tower_of(arch: Architecture) -> Tower | None:
    """The tower of ``arch``; None where it has none or nothing is known of it but its size."""
    vision = arch.vision
    if vision is None or not (vision.layers and vision.hidden and vision.heads and vision.patch):
        return None
    form = FORMS.get(vision.family, "plain")
    if form == "clip" and not vision.model_type.startswith(CLIP_LIKE):
        form = "siglip"
    qwen = form.startswith("qwen")
    side = vision.image_size // vision.patch
    sizes = {
        "layers": vision.layers, "hidden": vision.hidden, "heads": vision.heads, "intermediate": vision.intermediate,
        "patch": vision.patch, "out": arch.hidden,
    }  # fmt: skip
    if qwen:
        return _qwen(form, vision.family, sizes)
    return Tower(
        form,
        PROJECTORS.get(vision.family, "mlp"),
        **sizes,
        activation="quick_gelu" if form == "clip" else "gelu_pytorch_tanh",
        classes=int(form == "clip"),
        table=side**2 + int(form == "clip"),
        idle=int(form == "clip"),
    )


def _qwen(form: str, family: str, sizes: dict[str, int]) -> Tower:
    activation = {"qwen2": "quick_gelu", "qwen2_5": "silu"}.get(form, "gelu_pytorch_tanh")
    newer = form == "qwen3"
    deep = 3 if newer and family.startswith("qwen3_vl") else 0
    return Tower(
        form, "merger", **sizes, activation=activation, frames=2, merge=2, table=2304 if newer else 0, deep=deep
    )
