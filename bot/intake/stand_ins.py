"""The models that stand in where a question makes sense without one."""

from bot.intake.runs import Fields
from bot.intake.settled import settled

STAND_INS: dict[str, tuple[str, ...]] = {
    "compare": ("7b",),
    "explain": ("7b",),
    "max_model": ("0.5b", "1.5b", "3b", "7b", "14b", "32b", "72b"),
}
"""The models shown where the question is understood without one."""
SMALL_MODELS, LARGE_MODELS = ("3b", "7b", "14b", "32b"), ("7b", "14b", "32b", "72b")
"""Those shown where running one, in inference as well as in training, is asked about."""
MOST_OF_A_DESKTOP = 24


def with_stand_ins(spoken: list[Fields], question: str, running: bool = False) -> list[Fields]:
    """Runs without a model get the usual ones for a question that makes sense without."""
    names = STAND_INS.get(question, ())
    if not names or any(run.get("model") for run in spoken):
        return spoken
    if question == "max_model" and running and not spoken[0].keys() & {"task", "method"}:
        sizes = LARGE_MODELS if (spoken[0].get("memory_gb") or 0) > MOST_OF_A_DESKTOP else SMALL_MODELS
        uses: tuple[Fields, ...] = ({"task": "infer"}, {"task": "train", "method": "lora"})
        return [settled({**spoken[0], **use, "model": name}, False) for use in uses for name in sizes]
    if question == "max_model":
        return [
            settled({"task": "train", "method": "lora", **run, "model": name}, False)
            for run in spoken[:1]
            for name in names
        ]
    return [{**run, "model": name} for name in names for run in spoken]
