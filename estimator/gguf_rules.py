"""Where llama.cpp's quantiser takes a better (or smaller) type than the file type's base (src/llama-quant.cpp)."""

from collections.abc import Callable
from dataclasses import dataclass

from estimator.architecture import Architecture

SEVENTY_B = (80, ("llama", "qwen2"))
LOW = frozenset(["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ1_S", "IQ1_M"])


@dataclass(frozen=True, slots=True)
class Place:
    """A matrix's place: its part, layer, how many value projections came before, and facts of the model."""

    part: str
    layer: int
    layers: int
    values_before: int
    shared_heads: bool
    experts: int
    falcon: bool
    seventy: bool

    @staticmethod
    def of(arch: Architecture, part: str, layer: int, values_before: int) -> "Place":
        """The place of ``part`` in ``layer``."""
        return Place(
            part.removeprefix("experts.").removeprefix("shared."),
            layer,
            arch.layers,
            values_before,
            arch.heads // max(arch.kv_heads, 1) >= 4,
            arch.experts.experts if arch.experts else 0,
            arch.model_type == "falcon",
            arch.layers == SEVENTY_B[0] and arch.model_type in SEVENTY_B[1],
        )

    @property
    def first_eighth(self) -> bool:
        """Whether the layer is among the first eighth."""
        return self.layer < self.layers // 8

    @property
    def more(self) -> bool:
        """Layers that get more bits: the first and last eighth, and every third between."""
        return _more(self.layer, self.layers)


def _more(index: int, total: int) -> bool:
    return index < total // 8 or index >= 7 * total // 8 or (index - total // 8) % 3 == 2


Choice = Callable[[Place], str | None]


def _always(kind: str) -> Choice:
    return lambda at: kind


def _shared(kind: str, other: str | None = None) -> Choice:
    return lambda at: kind if at.shared_heads else other


VALUE: dict[str, Choice] = {
    "Q2_K": _shared("Q4_K", "Q3_K"),
    "Q2_K_S": _shared("Q4_K"),
    "IQ3_XXS": _shared("Q4_K"),
    "IQ3_XS": _shared("Q4_K"),
    "IQ3_S": _shared("Q4_K"),
    "IQ3_M": _always("Q4_K"),
    "Q3_K_M": lambda at: "Q5_K" if at.values_before < 2 else "Q4_K",
    "Q3_K_L": _always("Q5_K"),
    "IQ4_NL": _shared("Q5_K"),
    "IQ4_XS": _shared("Q5_K"),
    "Q4_K_M": lambda at: "Q6_K" if _more(at.values_before, at.layers) else "Q4_K",
    "Q5_K_M": lambda at: "Q6_K" if _more(at.values_before, at.layers) else "Q5_K",
    "Q4_K_S": lambda at: "Q5_K" if at.values_before < 4 else "Q4_K",
    "Q3_K_S": _always("Q3_K"),
}

DOWN: dict[str, Choice] = {
    "Q2_K": _always("Q3_K"),
    "Q2_K_S": lambda at: "Q4_K" if at.first_eighth else None,
    "Q3_K_M": lambda at: _down_q3_k_m(at),
    "IQ3_M": lambda at: "Q4_K" if at.first_eighth or (at.experts == 8 and at.more) else None,
    "Q3_K_L": lambda at: "Q4_K" if at.falcon else "Q5_K",
    "Q4_K_M": lambda at: _down_q4_k_m(at),
    "IQ4_NL": lambda at: "Q5_K" if at.first_eighth else None,
    "IQ4_XS": lambda at: "Q5_K" if at.first_eighth else None,
    "Q5_K_M": lambda at: "Q6_K" if at.more else None,
    "Q4_K_S": lambda at: "Q5_K" if at.first_eighth and not at.falcon else None,
}

OUTPUT = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}
OUTPUT_LOW = {"IQ1_S": "IQ2_XXS", "IQ1_M": "IQ2_XXS", "IQ2_S": "IQ3_S", "IQ2_M": "IQ3_S"}
OUTPUT_EIGHT = frozenset(
    ["Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ3_S", "IQ3_M", "IQ4_XS"]
)  # with eight experts
FUSED = {"Q3_K_M": "Q4_K", "Q3_K_L": "Q4_K", "IQ3_M": "Q4_K", "Q4_K_M": "Q5_K", "Q5_K_M": "Q6_K"}
QUERY = {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}


def _down_q3_k_m(at: Place) -> str:
    if at.layer < at.layers // 16:
        return "Q5_K"
    return "Q4_K" if not at.falcon or at.more else "Q3_K"


def _down_q4_k_m(at: Place) -> str | None:
    if at.falcon and at.layer < at.layers // 16:
        return "Q6_K"
    if at.more:
        return "Q5_K" if at.falcon else "Q6_K"
    return None


def _value(name: str, at: Place) -> str | None:
    if name in LOW:
        if at.shared_heads or at.experts >= 4:
            return "Q4_K"
        return "IQ3_S" if name in ("IQ2_S", "IQ2_M") else "Q2_K"
    if at.experts == 8:
        return "Q8_0"
    choice = VALUE.get(name)
    kind = choice(at) if choice is not None else None
    return "Q5_K" if at.seventy and kind in ("Q3_K", "Q4_K") else kind


def _key(name: str, at: Place) -> str | None:
    if at.experts == 8:
        return "Q4_K" if name in LOW else "Q8_0"
    return QUERY.get(name)


def _down(name: str, at: Place) -> str | None:
    if name in LOW:
        return ("IQ3_S" if name in ("IQ2_S", "IQ2_M") else "Q2_K") if at.first_eighth else None
    choice = DOWN.get(name)
    return choice(at) if choice is not None else None


def _output(name: str, at: Place) -> str | None:
    if at.falcon:
        return "Q4_K" if name == "Q3_K_L" else None
    if at.experts == 8:
        return "Q5_K" if name in OUTPUT_EIGHT or name in LOW else None
    return OUTPUT_LOW.get(name) if name in LOW else OUTPUT.get(name)


def _gate_or_up(name: str, at: Place) -> str | None:
    middle = at.layers // 8 <= at.layer < 7 * at.layers // 8
    return "IQ3_XXS" if name == "IQ3_XS" and middle else None


PLACES: dict[str, Callable[[str, Place], str | None]] = {
    "v_proj": _value,
    "k_proj": _key,
    "q_proj": lambda name, at: QUERY.get(name),
    "o_proj": _output,
    "qkv_proj": lambda name, at: FUSED.get(name),
    "down_proj": _down,
    "gate_proj": _gate_or_up,
    "up_proj": _gate_or_up,
    "gate_up_proj": _gate_or_up,
}
