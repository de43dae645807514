"""Words around a config: the cards that a question names, and nothing that the config says itself."""

from bot.reading.draft import Draft


def note_prose(draft: Draft, words: str) -> None:
    """``gpu`` and ``gpu_count`` from the words, where the config leaves them open."""
    if not words or not draft.run or "gpu" in draft.run:
        return
    from bot.intake.runs import spoken_runs
    from bot.intake.understand import words_around

    spoken = spoken_runs(words_around(words))
    if not spoken or not spoken[0].get("gpu"):
        return
    found = spoken[0]
    draft.put("gpu", found["gpu"], "the words around it")
    if "gpu_count" in found and "gpu_count" not in draft.run:
        draft.put("gpu_count", found["gpu_count"], "the words around it")
