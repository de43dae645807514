"""Model names and sizes in a message: a catalogue name, a family with a size elsewhere, or a bare size."""

from bot.intake import quantities
from bot.intake.keyed import LIMITS
from bot.intake.names import (
    KnownModel,
    begins_model,
    card_named,
    may_begin_model,
    model_meant,
    model_named,
    nearest_sized,
)
from bot.intake.sheet import Sheet
from estimator.catalogue import model_names

LONGEST_NAME = 20
SHORTEST_MISSPELLED = 4
MOST_MEMBERS = 40
HIGHEST_VERSION = 10
MOST_GUESSES = 6
"""Misspelled names that are looked for in one message: each costs a search through all names."""
INSIDE_NAMES = frozenset("-_/.:+")
EVERYDAY_WORDS = frozenset(
    {
        "opt",
        "beam",
        "phi",
        "yi",
        "falcon",
        "arctic",
        "command",
        "sky",
        "base",
        "large",
        "small",
        "hermes",
        "orca",
        "aya",
    }
)
"""Model families that are also plain words: alone they name a model only next to a size or the word model."""

UNCLEAR_WORDS = frozenset({"beam", "command", "sky", "base", "large", "small"})
"""Those that say nothing of a model even where the talk is of models."""


def read_models(sheet: Sheet) -> None:
    """Names first, then sizes, which join a family named elsewhere in the message."""
    for index in sheet.free_starts():
        _read_name(sheet, index)
    _read_hub_ids(sheet)
    for index in sheet.free_starts():
        _read_size(sheet, index)


def _read_name(sheet: Sheet, start: int) -> None:
    end = _name_end(sheet, start)
    if not end:
        return
    name = sheet.words(start, end)
    known = model_named(name) or model_meant(name)
    if known is None or known.size:
        return
    before = next((one for one in sheet.readings if one.field == "model" and one.end == start), None)
    if before and _is_family(before.value) and model_named(before.value) and " " in sheet.words(before.start, end):
        sheet.readings.remove(before)  # "llama 4 scout" is the Scout of that family
    why = f'"{name}" is a family; its usual size is meant' if known.family else f'"{name}" is {known.hub_id}'
    sheet.read("model", name, start, end, why)


def _name_end(sheet: Sheet, start: int) -> int:
    """Index after the longest catalogue name that begins at ``start``; 0 when none does."""
    first = sheet.tokens[start]
    if first.kind == "sign" or not may_begin_model(first.text):
        return 0
    before = sheet.tokens[start - 1] if first.glued and start else None
    if before and before.kind == first.kind and before.text not in quantities.SIZE_UNITS:
        return 0
    furthest = _furthest(sheet, start)
    whole = _glued_end(sheet, start, furthest)
    for end in range(furthest, start, -1):
        if end == whole and begins_model(sheet.words(start, end)):
            return end
        if _may_end(sheet, start, end) and model_named(sheet.words(start, end)):
            return 0 if sheet.words(start, end).lower() in EVERYDAY_WORDS else end
    return 0


def _glued_end(sheet: Sheet, start: int, furthest: int) -> int:
    """Where a name of several pieces that touch each other ends; 0 where there is one piece, or the last is a sign."""
    end = start + 1
    while end < furthest and sheet.tokens[end].glued and sheet.tokens[end].kind != "han":
        end += 1
    hyphens = any(token.text in "-_" for token in sheet.tokens[start:end])
    return end if hyphens and sheet.tokens[end - 1].kind != "sign" else 0


def read_shy_models(sheet: Sheet) -> None:
    """A family whose name is also a plain word, once a method or a format says that the talk is of models."""
    fields = {reading.field for reading in sheet.readings}
    if fields & {"model", "size"} or not fields & {"method", "weight_format", "engine", "parallelism"}:
        return
    for index in sheet.free_starts():
        word = sheet.tokens[index].text
        if word in EVERYDAY_WORDS - UNCLEAR_WORDS and model_named(word):
            sheet.read("model", word, index, index + 1, f'"{word}" is a family; its usual size is meant')


def _furthest(sheet: Sheet, start: int) -> int:
    """How far a name that begins here can reach: free tokens, no sign but those inside names."""
    end = start
    while end < min(len(sheet.tokens), start + LONGEST_NAME) and not sheet.taken[end]:
        if sheet.tokens[end].kind == "sign" and sheet.tokens[end].text not in INSIDE_NAMES:
            break
        end += 1
    return end


def _may_end(sheet: Sheet, start: int, end: int) -> bool:
    """A name ends at a sign, a space, or where its size does; never inside "4bit" or on a sign."""
    last = sheet.tokens[end - 1]
    if last.kind == "sign":
        return False
    after = sheet.tokens[end] if end < len(sheet.tokens) else None
    if after is None or not after.glued or after.kind in ("sign", "han") or last.kind == "han":
        return True
    return last.kind == "word" and after.kind == "number" and _is_size_end(sheet, end) and start < end


def _is_size_end(sheet: Sheet, end: int) -> bool:
    """Whether a size begins at ``end``, as in "llama7b": the family may be named without it."""
    return quantities.billions(sheet.tokens, end) is not None


def _read_hub_ids(sheet: Sheet) -> None:
    """``owner/name`` that the catalogue does not know: both parts spelled like names, the second with a digit."""
    tokens = sheet.tokens
    for index in sheet.free_starts():
        slash = index
        while slash < len(tokens) and (slash == index or tokens[slash].glued) and tokens[slash].text != "/":
            slash += 1
        end = slash + 1
        while end < len(tokens) and tokens[end].glued and tokens[end].text not in "/,;()":
            end += 1
        if slash < len(tokens) and tokens[slash].text == "/" and _is_hub_id(sheet, index, slash, end):
            sheet.read("model", sheet.words(index, end), index, end, "an owner/name of a model hub")


def _is_hub_id(sheet: Sheet, start: int, slash: int, end: int) -> bool:
    if not sheet.is_free(start, end) or end - slash < 3 or sheet.tokens[start].kind != "word":
        return False
    kinds = {token.kind for token in sheet.tokens[slash + 1 : end]}
    dashed = any(token.text in "-_" for token in sheet.tokens[slash + 1 : end])
    return kinds <= {"word", "number", "sign"} and "number" in kinds and dashed


def _read_size(sheet: Sheet, start: int) -> None:
    size = quantities.billions(sheet.tokens, start)
    if size is None or not sheet.is_free(start, size.end) or _is_card(sheet, start, size.end):
        return
    if sheet.tokens[start].text == "-" and _behind_a_word(sheet, start):
        return
    experts = start - 2 if start > 1 and sheet.words(start - 1, start) in quantities.TIMES else start
    if sheet.is_free(experts, start) and model_named(sheet.words(experts, size.end)) and experts < start:
        sheet.read("model", sheet.words(experts, size.end), experts, size.end, "a mixture of experts")  # 8x7b
        return
    low, high = LIMITS["params_b"]
    if not low <= size.value <= high:
        sheet.invalid.append("params_b")
        sheet.read("params_b", size.value, start, size.end, "a number of parameters that no model has")
        return
    if _read_misspelled(sheet, start, size.end):
        return
    spelled = sheet.tokens[size.end - 1].text in (*quantities.BILLION, "亿")
    text = f"{size.value:g}b" if spelled else sheet.words(start, size.end).replace(" ", "")
    sheet.read("size", (size.value, text), start, size.end, f'"{text}" is a number of parameters')


def _is_card(sheet: Sheet, start: int, end: int) -> bool:
    """Whether a card goes by this number and letter, and no model: the 910B is an Ascend."""
    if model_named(sheet.words(start, end)) is not None:
        return False
    return any(card_named(sheet.words(start, last)) for last in (end, end + 1) if last <= len(sheet.tokens))


def _behind_a_word(sheet: Sheet, start: int) -> bool:
    """Whether a hyphen sets a size off from the name before it, so that it is no minus."""
    return start > 0 and sheet.tokens[start - 1].kind != "sign" and sheet.phrase(start - 1, "key") is None


def _read_misspelled(sheet: Sheet, start: int, end: int) -> bool:
    """A word right before a size that together are nearly a name: "mistal 7b"; with a hyphen it must be a name."""
    hyphen = start > 0 and sheet.tokens[start - 1].text in "-_" and sheet.tokens[start].glued
    last = start - 1 - hyphen
    for first in (last, last - 1 if _is_version(sheet, last) else -1):
        if first < 0 or not sheet.is_free(first, start) or not _may_be_name(sheet, first):
            continue
        name = sheet.words(first, end)
        if sheet.tokens[end - 1].text in quantities.BILLION:
            name = f"{sheet.words(first, start)}-{sheet.tokens[end - 2].text}b"
        sheet.guesses += 1
        meant = model_meant(name) if sheet.guesses <= MOST_GUESSES else None
        if meant:
            sheet.read("model", name, first, end, f'"{name}" is near {meant.hub_id}')
            return True
        _note_unknown_family(sheet, first, start - hyphen)
    return False


def _is_version(sheet: Sheet, index: int) -> bool:
    """Whether a small number stands there, as in "lama 3 8b"."""
    return index > 0 and sheet.tokens[index].kind == "number" and sheet.tokens[index].number < HIGHEST_VERSION


def _note_unknown_family(sheet: Sheet, first: int, end: int) -> None:
    """A word that nothing else reads, right before a size: a family that is not known, whose size is answered for."""
    before = (sheet.word_at(at, "question", "key") for at in range(max(0, first - 2), first))
    asks = any(word is not None and word.end > first for word in before)  # the "time" of "training time 70b"
    if not asks and not sheet.has_at(first, "cue", "question", "against"):
        word = sheet.words(first, end)
        sheet.read("family", word, first, end, f'no family is known as "{word}"')


def _may_be_name(sheet: Sheet, index: int) -> bool:
    token = sheet.tokens[index]
    plain = token.kind == "word" and token.text.isascii() and len(token.text) >= SHORTEST_MISSPELLED
    return plain and sheet.phrase(index) is None


def named_models(sheet: Sheet) -> list[str]:
    """The models that names and sizes mean together: "qwen … 7b/14b" is two models of one family."""
    names: list[str] = sheet.values("model")
    sizes: list[tuple[float, str]] = sheet.values("size")
    if len(names) != 1 or not sizes:
        return names or [text for _, text in sizes]
    members = [_of_family(names[0], value, text) for value, text in sizes]
    sized = _stem(names[0]) != names[0].lower().replace("_", "-").replace(" ", "-")
    own = names if sized else [] if _is_family(names[0]) or _is_another_size(names[0], sizes) else names
    if own:
        return list(dict.fromkeys(own + [name for name in members if name]))
    return [name or _unlisted(names[0], *size) for name, size in zip(members, sizes, strict=True)]


def _unlisted(family: str, size: float, text: str) -> str:
    """A size that the family is not known with: the usual model of about that size when there is one."""
    return text if model_named(text) or nearest_sized(size) else f"{family}-{text}"


def _is_family(name: str) -> bool:
    known = model_named(name)
    return known is not None and known.family


def _is_another_size(name: str, sizes: list[tuple[float, str]]) -> bool:
    """Whether the name alone means a size that the message does not mention, and a member of that size is known."""
    known = model_named(name)
    fits = known is None or any(_is_near(known, value) for value, _ in sizes)
    return not fits and any(_of_family(name, value, text) for value, text in sizes)


def _of_family(name: str, size: float, text: str) -> str | None:
    """The family's member of that size, under the name or its stem."""
    stem = _stem(name)
    for candidate in (f"{name}-{text}", f"{stem}-{text}", name):
        known = model_named(candidate)
        if known and not known.size and _is_near(known, size):
            return candidate
    meant = model_meant(f"{stem} {text}")
    if meant and not meant.size and _is_near(meant, size):
        return f"{stem} {text}"
    return _listed_member(stem, size)


def _listed_member(stem: str, size: float) -> str | None:
    """The first model of the catalogue whose name begins with the family's and that has about that size."""
    ids = model_names(stem, MOST_MEMBERS) if len(stem) >= SHORTEST_MISSPELLED else []
    known = ((name, model_named(name)) for name in ids if name.split("/")[-1].lower().startswith(stem))
    return next((name.split("/")[-1] for name, member in known if member and _is_near(member, size)), None)


def _stem(name: str) -> str:
    """The name without its own size."""
    kept: list[str] = []
    for piece in name.lower().replace("_", "-").replace(" ", "-").split("-"):
        if not piece[:1].isdigit() or not piece.endswith(("b", "m")):
            kept.append(piece)
    return "-".join(kept)


def _is_near(known: KnownModel, size: float) -> bool:
    return known.params_b is None or abs(known.params_b / size - 1) < 0.35
