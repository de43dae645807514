"""What a message says about online and preference stages and about images: the sections of a run that are theirs."""

from typing import Any

from bot.intake import quantities
from bot.intake.sheet import Sheet
from estimator.catalogue.names import sees

Fields = dict[str, Any]

ONLINE = ("grpo", "ppo")
SMALLEST_SIDE, LARGEST_SIDE = 64, 20_000
"""Pixels of an image's side."""


def read_image_sizes(sheet: Sheet) -> None:
    """``1024x768`` beside a word for images or the name of a model that sees."""
    if not (sheet.has("pictured") or sees(sheet.text.lower())):
        return
    for index in sheet.free_starts():
        wide = quantities.signed(sheet.tokens, index)
        at = wide.end if wide else len(sheet.tokens)
        if wide is None or at + 1 >= len(sheet.tokens) or sheet.tokens[at].text not in quantities.TIMES:
            continue
        tall = quantities.signed(sheet.tokens, at + 1)
        if tall and all(SMALLEST_SIDE <= one.value <= LARGEST_SIDE for one in (wide, tall)):
            size = int(wide.value), int(tall.value)
            sheet.read("image_size", size, index, tall.end, "width and height of an image in pixels")


def stage_fields(sheet: Sheet) -> Fields:
    """Sections ``rl``, ``preference``, ``vision`` and what of ``details`` belongs to a stage."""
    fields: Fields = {}
    stages = sheet.values("stage")
    online = _last(sheet, {"num_generations": "num_generations", "max_completion_len": "max_completion_len"})
    if any(stage in ONLINE for stage in stages):
        online |= _last(sheet, {"engine": "engine", "colocated_share": "colocated_share"})
        if sheet.values("sleep"):
            online["sleep"] = True
    if online:
        fields["rl"] = online
    if sheet.values("reference"):
        fields["preference"] = {"precomputed_logps": True}
    if stages and sheet.values("beta"):
        fields["details"] = {"beta": sheet.values("beta")[-1]}
    return fields | _vision(sheet)


def _last(sheet: Sheet, names: dict[str, str]) -> Fields:
    return {name: values[-1] for field, name in names.items() if (values := sheet.values(field))}


def _vision(sheet: Sheet) -> Fields:
    counts, sizes = sheet.values("images"), sheet.values("image_size")
    if not counts and not sizes:
        return {}
    vision: Fields = {"images": counts[-1]} if counts else {}
    if sizes:
        vision |= {"width": sizes[-1][0], "height": sizes[-1][1]}
    return {"vision": vision}
