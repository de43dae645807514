"""The link between the cards of one machine: NVLink where a card has it, else the bus."""

from functools import cache

from estimator.catalogue.cards import cards

LANE_GBS = {"3.0": 0.985, "4.0": 1.969, "5.0": 3.938}
"""GB/s of one lane in one direction after encoding, by PCIe generation (PCI-SIG: 8, 16, 32 GT/s, 128b/130b)."""


def bus_of(name: str) -> tuple[str, float]:
    """The bus of a card of the table as it is called, and its GB/s in one direction; "" and 0 where unknown."""
    bus = _links().get(name, ("", 0.0))[0]
    words = bus.split()
    if len(words) != 3 or words[1] not in LANE_GBS:
        return bus, 0.0
    return bus, LANE_GBS[words[1]] * int(words[2].removeprefix("x"))


def has_fabric(name: str) -> bool | None:
    """Whether the card has a link of its own to others; None where the card is not in the table."""
    found = _links().get(name)
    return None if found is None else found[1] > 0


@cache
def _links() -> dict[str, tuple[str, float]]:
    return {card.name: (card.bus, card.fabric) for card in cards()}
