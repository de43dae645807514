"""The parts of an answer to a wreck: what the numbers say, what helps and what does not."""

from bot.answer import Answer
from bot.answers.describe import Describer
from bot.answers.ledger import Ledger
from bot.answers.quote import quoted
from bot.texts import name_of
from knowledge.reading import Body, Entry, entries

LIKELY = 0.45
"""Scores from here on are told as likely, below as possible."""
NEAR = 0.55
"""Further causes are told when they have this share of the first one's score."""
MOST_OTHERS = 2
MOST_USELESS = 3
MOST_PARTS = 4
LONGEST_TYPED = 100
"""Characters of commands that are told with a fix; all stand in its JSON."""

TOLD = ("total", "allocated", "reserved_unallocated", "cached", "free", "process_in_use", "tried", "mps_allocated",
        "mps_other", "mps_max_allowed", "wanted", "kv_needed", "kv_available", "weights", "kv", "compute",
        "dedicated", "shared", "states_per_gpu", "no_offload", "host_used", "host_total", "smi_used")  # fmt: skip
"""Sizes of a message in the order in which they are told."""
OF_A_STEP = ("batch_seq_activations", "logits_vocab_spike", "full_ft_states", "weights_exceed_gpu", "qlora_overhead",
             "lora_activation_bound", "attention_quadratic", "grad_ckpt_ineffective", "zero3_not_sharding",
             "full_copy_per_gpu")  # fmt: skip
"""Causes that a run which fits by the estimate does not have, if it is as the text says."""
LARGEST = 2**50
"""No real figure is larger; WSL's counter overflows."""


class Wreck:
    """What the template of a diagnosis asks for."""

    def __init__(self, answer: Answer, ledger: Ledger, describer: Describer) -> None:
        self.answer, self.ledger, self.describer, self.lang = answer, ledger, describer, answer.lang
        self.found = answer.diagnosis

    @property
    def entry(self) -> Entry | None:
        """The entry of the first cause."""
        return entries()[self.found.causes[0].id] if self.found and self.found.causes else None

    @property
    def likely(self) -> bool:
        """Whether the evidence for the first cause is strong."""
        return bool(self.found and self.found.causes and self.found.causes[0].score >= LIKELY)

    def title(self) -> str:
        """The first cause in words."""
        return self.entry.title.in_(self.lang) if self.entry else ""

    def body(self) -> Body:
        """What the entry says of it."""
        return self.entry.body(self.lang) if self.entry else Body(text="")

    def phase(self) -> str:
        """The phase by name; empty when it is not known."""
        phase = self.found.phase if self.found else "unknown"
        return "" if phase == "unknown" else name_of(self.lang, "phase", phase)

    def numbers(self) -> list[str]:
        """The sizes that the message states, and what follows from them."""
        message = self.found.message if self.found else None
        if message is None:
            return []
        named = [name for name in TOLD if 0 <= (-1 if message.size(name) is None else int(message.get(name))) < LARGEST]
        shown = [self._size("number", name, f"diagnosis.message.{name}") for name in named]
        outside = self.found.derived.get("outside_pytorch", 0) if self.found else 0
        if outside > 0:
            shown.insert(len(shown) - 1, self._size("number", "outside_pytorch", "diagnosis.derived.outside_pytorch"))
        if "reserved_unallocated" not in named and self.found and self.found.derived.get("unused_cache") is not None:
            shown.insert(2, self._size("number", "reserved_unallocated", "diagnosis.derived.unused_cache"))
        return shown

    def device(self) -> str:
        """The device that failed, as the message calls it."""
        named = self.found.message.get("device") if self.found else None
        return quoted(named) if named else ""

    def _size(self, section: str, name: str, path: str) -> str:
        return f"{name_of(self.lang, section, name)} {self.ledger.gib(path)}"

    def parts(self) -> list[str]:
        """What the estimator counts at the peak, the largest parts first."""
        found = self.answer.estimates[0].per_gpu if self.answer.estimates else None
        blocks = sorted(enumerate(found.at_peak), key=lambda one: -one[1].bytes)[:MOST_PARTS] if found else []
        path = "estimates[0].per_gpu.at_peak"
        return [self._size("item", block.item, f"{path}[{number}].bytes") for number, block in blocks]

    def contradicted(self) -> bool:
        """Whether the estimate of the run as told fits the card, although the first cause says that a step does not."""
        fit = self.answer.estimates[0].fit if self.answer.estimates else None
        return bool(fit and fit.verdict == "fits" and self.entry and self.entry.id in OF_A_STEP)

    def fixes(self) -> list[str]:
        """What helps, with the new peak where it could be estimated."""
        fixes = self.found.causes[0].fixes if self.found and self.found.causes else []
        return [self._fix(f"diagnosis.causes[0].fixes[{number}]") for number in range(len(fixes))]

    def _fix(self, path: str) -> str:
        fix = self.ledger.at(path)
        title = self.ledger.words(f"{path}.title")
        if fix.allocated_peak is None:
            return title
        peak = self.ledger.gib(f"{path}.allocated_peak")
        verdict = name_of(self.lang, "verdict", fix.verdict) if fix.verdict else ""
        told = name_of(self.lang, "sign", "fixed").format(title=title, peak=peak, verdict=verdict).rstrip(" ,，")
        return told + self._typed(f"{path}.commands", len(fix.commands))

    def _typed(self, path: str, count: int) -> str:
        """What is typed for a fix, where the text says which tool it is and it is short."""
        run = (self.found.run if self.found else None) or {}
        lines = [self.ledger.at(f"{path}[{number}]") for number in range(count)]
        named = run.get("framework") or run.get("engine")
        if not named or not 0 < len("".join(lines)) <= LONGEST_TYPED:
            return ""
        words = " ".join(self.ledger.words(f"{path}[{number}]") for number in range(count))
        return name_of(self.lang, "sign", "typed").format(commands=words)

    def useless(self) -> list[str]:
        """What does not help."""
        count = len(self.found.useless) if self.found else 0
        return [self.ledger.words(f"diagnosis.useless[{number}]") for number in range(min(count, MOST_USELESS))]

    def others(self) -> list[str]:
        """Further causes whose evidence is not far behind."""
        causes = self.found.causes if self.found else []
        near = [one for one in causes[1:] if one.score >= NEAR * causes[0].score][:MOST_OTHERS]
        return [entries()[one.id].title.in_(self.lang) for one in near]

    def gap(self) -> list[str]:
        """The difference between estimate and observation in its parts."""
        parts = self.found.gap.explained_by if self.found and self.found.gap else []
        path = "diagnosis.gap.explained_by"
        large = [number for number, one in enumerate(parts) if abs(one.bytes) >= 2**26]
        return [self._size("gap", parts[number].id, f"{path}[{number}].bytes") for number in large]
