"""Image towers of multimodal configs: CLIP and SigLIP vision transformers and a two-layer projector.

Counts follow transformers 5.24.0 (models/clip, models/siglip, models/llava); for other towers only what the config
states is kept, and the count is marked as approximate.
"""

from dataclasses import replace
from typing import Any

from estimator.architecture import Architecture, Vision

DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "patch_size": 32,
    "image_size": 224,
}
"""Class defaults of CLIPVisionConfig; SiglipVisionConfig differs in its patch of 16."""


def with_tower(arch: Architecture, config: dict[str, Any]) -> Architecture:
    """``arch`` with the image tower that the config describes, unchanged where it describes none."""
    stated = config.get("vision_config")
    if not isinstance(stated, dict):
        return arch
    tower = str(stated.get("model_type", ""))
    sizes = {key: _size(stated, key, default) for key, default in DEFAULTS.items()}
    known = tower in ("clip_vision_model", "siglip_vision_model")
    tokens = (sizes["image_size"] // max(sizes["patch_size"], 1)) ** 2
    vision = Vision(
        model_type=tower,
        hidden=sizes["hidden_size"],
        layers=sizes["num_hidden_layers"],
        heads=sizes["num_attention_heads"],
        intermediate=sizes["intermediate_size"],
        patch=sizes["patch_size"],
        image_size=sizes["image_size"],
        params=tower_parameters(tower, sizes),
        projector_params=projector_parameters(sizes["hidden_size"], arch.hidden),
        tokens_per_image=tokens,
        family=str(config.get("model_type", "")),
    )
    note = None if known else f"image tower {tower or 'of unnamed type'} counted like a plain vision transformer"
    if arch.approximate or note is None:
        return replace(arch, vision=vision)
    note_zh = f"图像塔 {tower or '（未注明类型）'} 按普通视觉 Transformer 计数"
    return replace(arch, vision=vision, approximate=note, approximate_zh=note_zh)


def _size(stated: dict[str, Any], key: str, default: int) -> int:
    value = stated.get(key, default)
    return value if isinstance(value, int) and 0 < value <= 10**6 else default


def tower_parameters(tower: str, sizes: dict[str, int]) -> int:
    """Parameters of a vision transformer: patch embedding, positions, layers with biases, norms."""
    hidden, width = sizes["hidden_size"], sizes["intermediate_size"]
    patches = (sizes["image_size"] // max(sizes["patch_size"], 1)) ** 2
    layer = 4 * (hidden * hidden + hidden) + 2 * hidden * width + width + hidden + 4 * hidden
    pixels = 3 * sizes["patch_size"] ** 2 * hidden
    layers = sizes["num_hidden_layers"] * layer
    if tower == "clip_vision_model":
        # A class token, its position, no patch bias, norms before and after the layers.
        return pixels + hidden + (patches + 1) * hidden + layers + 4 * hidden
    return pixels + hidden + patches * hidden + layers + 2 * hidden


def projector_parameters(width: int, hidden: int) -> int:
    """LLaVA's projector: two linears with biases (transformers 5.24.0 models/llava)."""
    return width * hidden + hidden + hidden * hidden + hidden
