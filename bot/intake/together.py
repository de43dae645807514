"""Parts of one set of cards that stand apart in the message: "H100 NVL … 4 cards", "A100 … on 2 nodes"."""

from bot.intake.hardware import ALSO, Hardware
from bot.intake.names import card_named
from bot.intake.sheet import Reading, Sheet

ACROSS = frozenset({"across", "over", "between", "spread"})
"""Words before nodes that say that the cards counted before are of all of them."""
IN_USE = frozenset("用占涨到降升减加调开改") | {"up", "down", "to", "at", "from", "about", "around", "set"}
"""Words between "memory" and a number that is of what is in use."""
EACH = frozenset({"各", "每", "每张", "每块", "每卡", "张", "each", "apiece", "per", "自"})
MOST_IN_A_NODE = 8
SAME_SIZE = 0.05


def join_parts(sheet: Sheet) -> None:
    """Give counts, nodes and memory that stand alone to the cards they belong to."""
    _read_stated_memory(sheet)
    found = [one for one in sheet.readings if one.field == "hardware"]
    for one in found:
        _join_nodes(sheet, one, found)
    _join_keyed(sheet)
    _join_counts(sheet)
    for one in _sets(sheet):
        _join_memory(sheet, one)
    for part in _sets(sheet):
        _settle_total(part.value)
    _set_amounts_apart(sheet)


def _read_stated_memory(sheet: Sheet) -> None:
    """``显存24G``, ``vram: 24gb``: the memory of a card that stands alone, unless it is said to be in use."""
    for one in [one for one in sheet.readings if one.field == "memory_gb"]:
        words = {token.text for token in sheet.tokens[one.start : one.end]}
        if not words & IN_USE and not any(cards.memory_gb for cards in sheet.values("hardware")):
            _renamed(sheet, one, "hardware", Hardware(memory_gb=one.value))


def _set_amounts_apart(sheet: Sheet) -> None:
    """A memory beside named cards that is of none of them, and no alternative, is an amount that is spoken of."""
    named = [one for one in _sets(sheet) if one.value.gpu and one.value.card]
    sized = [one for one in _sets(sheet) if one.value.count and one.value.memory_gb]
    for one in _sets(sheet) if (named or sized) and not sheet.against else []:
        alone: Hardware = one.value
        if not named and (alone.memory_gb or 0) % 1 == 0:
            continue  # one of several sizes; 7.8 GB is what is used of a card
        among = one.start > 0 and sheet.tokens[one.start - 1].text in ALSO
        if not alone.memory_gb or alone.gpu or alone.count or alone.slice or alone.usable or among:
            continue
        if _is_of_each(sheet, one) and len(named) == 1 and not named[0].value.memory_gb:
            named[0].value.memory_gb = alone.memory_gb
            _renamed(sheet, one, "memory_gb", alone.memory_gb)
        else:
            _renamed(sheet, one, "used_gb", alone.memory_gb)


def _is_of_each(sheet: Sheet, reading: Reading) -> bool:
    """Whether a memory is said of each card: 两块K80各自11G, "4x A10G, 22GB each"."""
    before = {token.text for token in sheet.tokens[max(0, reading.start - 2) : reading.start]}
    behind = {token.text for token in sheet.tokens[max(0, reading.end - 1) : reading.end + 2]}
    return bool(EACH & (before | behind))


def _sets(sheet: Sheet) -> list[Reading]:
    return [one for one in sheet.readings if one.field == "hardware"]


def _named(sheet: Sheet) -> list[Hardware]:
    return [one.value for one in _sets(sheet) if one.value.gpu or one.value.memory_gb]


def _renamed(sheet: Sheet, reading: Reading, field: str, value: object) -> None:
    """Keep the words of a part as a reading of their own, and no longer as a set of cards."""
    kept = Reading(field, value, reading.text, reading.why, reading.start, reading.end)
    sheet.readings[sheet.readings.index(reading)] = kept


def _join_nodes(sheet: Sheet, reading: Reading, found: list[Reading]) -> None:
    """Nodes that stand alone are those of every set that has none."""
    alone: Hardware = reading.value
    if not alone.nodes or alone.gpu or alone.memory_gb or alone.count:
        return
    across = reading.start > 0 and sheet.tokens[reading.start - 1].text in ACROSS
    for other in (one.value for one in found if one is not reading and not one.value.nodes):
        count = other.count or 0
        if (across or count > MOST_IN_A_NODE) and count % alone.nodes == 0:
            other.count = count // alone.nodes or None
        other.nodes = alone.nodes
    _renamed(sheet, reading, "nodes", alone.nodes)


def _join_keyed(sheet: Sheet) -> None:
    """``gpu_count:8``, ``nodes:2``: what the options say of the cards that say nothing of it themselves."""
    counts, nodes = sheet.values("gpu_count"), sheet.values("nodes")
    for one in _named(sheet):
        one.count = one.count or (counts[-1] if counts else None)
        one.nodes = one.nodes or (nodes[-1] if nodes else None)


def _join_counts(sheet: Sheet) -> None:
    """A count alone counts the cards that are named elsewhere; several counts are alternatives."""
    named = _named(sheet)
    alone = [one for one in _sets(sheet) if one.value.count and one.value not in named]
    if not named or not alone:
        return
    if len(alone) == 1 and not all(one.count for one in named):
        for one in named:
            one.count, one.nodes = one.count or alone[0].value.count, one.nodes or alone[0].value.nodes
        _renamed(sheet, alone[0], "gpu_count", alone[0].value.count)
        return
    card = named[-1]
    for part in alone:
        part.value.gpu, part.value.card, part.value.memory_gb = card.gpu, card.card, card.memory_gb
    if card.count is None:
        sheet.readings = [one for one in sheet.readings if one.value is not card]


def _join_memory(sheet: Sheet, reading: Reading) -> None:
    """A memory alone that is what the named card has, one of its sizes or that of all of them together."""
    alone: Hardware = reading.value
    if not alone.memory_gb or alone.gpu or alone.count or alone.slice:
        return
    for card in (one for one in _named(sheet) if one.gpu and one.card):
        if card.memory_gb is None and _may_have(card, alone.memory_gb):
            card.memory_gb, card.total = alone.memory_gb, alone.total
            _renamed(sheet, reading, "memory_gb", alone.memory_gb)
            return


def _may_have(card: Hardware, memory_gb: float) -> bool:
    if card.card is None or card.card.unified:
        return card.card is not None
    return any(
        _is_near(size * count, memory_gb)
        for size in card.card.sizes
        for count in {1, card.count or 1}
        if size in (card.card.memory_gb, memory_gb) or card.card.several_sizes or count > 1
    )


def _settle_total(cards: Hardware) -> None:
    """A memory that is that of all cards together: "48gb 2x3090" is two cards of 24."""
    if not cards.memory_gb or (cards.count or 1) < 2:
        return
    each = cards.memory_gb / (cards.count or 1)
    sizes = cards.card.sizes if cards.card else frozenset()
    known = any(_is_near(size, each) for size in sizes) and not any(_is_near(size, cards.memory_gb) for size in sizes)
    if known or cards.total:
        cards.memory_gb = next((float(size) for size in sizes if _is_near(size, each)), each)
        cards.card = card_named(cards.gpu) if cards.gpu else None


def _is_near(size: float, stated: float) -> bool:
    return abs(size / stated - 1) <= SAME_SIZE
