"""Image towers of multimodal configs: CLIP and SigLIP vision transformers and a two-layer projector.

Counts follow transformers 5.24.0 (models/clip, models/siglip, models/llava); for other towers only what the config
states is kept, and the count is marked as approximate.
"""

from typing import Any

from estimator.architecture import Architecture, Vision
from estimator.vision.parts import tower_parts
from estimator.vision.tower import FORMS

DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "patch_size": 32,
    "image_size": 224,
}
"""Class defaults of CLIPVisionConfig; SiglipVisionConfig differs in its patch of 16."""


QWEN = {"hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16, "patch_size": 14}
"""Class defaults of Qwen2VLVisionConfig and Qwen2_5_VLVisionConfig, whose images have their own sizes."""


def with_tower(arch: Architecture, config: dict[str, Any]) -> Architecture:
    """``arch`` with the image tower that the config describes, unchanged where it describes none."""
    stated = config.get("vision_config")
    if not isinstance(stated, dict):
        return arch
    tower, family = str(stated.get("model_type", "")), str(config.get("model_type", ""))
    sizes = _qwen_sizes(stated) if "depth" in stated else {k: _size(stated, k, v) for k, v in DEFAULTS.items()}
    vision = Vision(
        model_type=tower,
        hidden=sizes["hidden_size"],
        layers=sizes["num_hidden_layers"],
        heads=sizes["num_attention_heads"],
        intermediate=sizes["intermediate_size"],
        patch=sizes["patch_size"],
        image_size=sizes["image_size"],
        params=0,
        projector_params=0,
        tokens_per_image=(sizes["image_size"] // max(sizes["patch_size"], 1)) ** 2 or None,
        family=family,
    )
    seeing = arch._replace(vision=vision)
    parts, projector = tower_parts(seeing)
    counted = vision._replace(params=parts.numel, projector_params=sum(weight.numel for weight in projector))
    known = family in FORMS or tower in ("clip_vision_model", "siglip_vision_model")
    note = None if known else f"image tower {tower or 'of unnamed type'} counted like a plain vision transformer"
    if arch.approximate or note is None:
        return arch._replace(vision=counted)
    note_zh = f"图像塔 {tower or '（未注明类型）'} 按普通视觉 Transformer 计数"
    return arch._replace(vision=counted, approximate=note, approximate_zh=note_zh)


def _qwen_sizes(stated: dict[str, Any]) -> dict[str, int]:
    """Sizes in Qwen's spelling: depth, num_heads, and in Qwen 2 an embed_dim beside the language model's width."""
    width = _size(stated, "embed_dim" if "embed_dim" in stated else "hidden_size", QWEN["hidden_size"])
    return {
        "hidden_size": width,
        "num_hidden_layers": _size(stated, "depth", QWEN["num_hidden_layers"]),
        "num_attention_heads": _size(stated, "num_heads", QWEN["num_attention_heads"]),
        "intermediate_size": _size(stated, "intermediate_size", width * _size(stated, "mlp_ratio", 4)),
        "patch_size": _size(stated, "patch_size", QWEN["patch_size"]),
        "image_size": 0,
    }


def _size(stated: dict[str, Any], key: str, default: int) -> int:
    value = stated.get(key, default)
    return value if isinstance(value, int) and 0 < value <= 10**6 else default
