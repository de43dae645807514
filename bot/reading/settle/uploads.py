"""What a model's own name says of its weights: -AWQ, -GPTQ-Int4, -bnb-4bit, Q4_K_M."""

import re

from bot.reading.draft import Draft
from bot.reading.facts import NAMED, Fact
from estimator.catalogue.names import normalised, split_upload

MIX = re.compile(r"[-_.:](?:UD-)?(I?Q\d_K_XL)(?:\.gguf)?$", re.IGNORECASE)
"""unsloth's larger mixes: told as they are called, counted by the estimator as the type they start from."""
MARK = re.compile(r"[-_.]gguf$", re.IGNORECASE)
PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
"""One file of a model that is kept in several."""


def note_upload(draft: Draft) -> None:
    """The format that a stated model's name ends in."""
    found = draft.facts.stated("model")
    if found is None or not isinstance(found.value, str):
        return
    form = format_of(found.value)
    if form:
        draft.facts.put("upload_format", Fact(form, f"{found.key} {found.value[:80]}", found.line, NAMED, found.source))


def format_of(name: str) -> str | None:
    """The format in the name of an upload or file."""
    name = PART.sub(".gguf", name)
    inner = split_upload(normalised(MARK.sub("", name))) if MARK.search(name) else None
    if inner and inner.weight_format and inner.weight_format.startswith(("Q", "IQ")):
        return inner.weight_format  # the type before the mark: …-Q8_0-GGUF
    mix = MIX.search(name)
    return mix[1].upper() if mix else split_upload(normalised(name)).weight_format
