"""Cards, how many, and how much memory: ``2x4090``, ``两张A100 40G``, ``8卡*32G``, ``单机16卡*4机``.

People put count, name and memory in any order, so a place is read as a cluster: each part at most once, with the small
words between them ignored.
"""

from dataclasses import dataclass

from bot.intake import quantities
from bot.intake.keyed import LIMITS
from bot.intake.names import KnownCard, card_named, may_begin_card
from bot.intake.quantities import Quantity
from bot.intake.sheet import Sheet

LONGEST_NAME = 12
FILLERS = frozenset(
    {"(", ")", ",", "的", "-", "mig", "gpu", "gpus", "card", "cards", "卡", "张", "块", "显卡", "nvidia", "x", "*", "×",
    "of", "with", "having", "魔", "改", "版", "本", "modded", "mod", "modified", "带", "是", "有", "存", "显", "has",
     "each"}
)  # fmt: skip
VARIANTS = frozenset({"ti", "tis", "super", "d", "dv", "s", "m", "g", "gb", "x", "laptop", "mobile"})
ONES = frozenset({"a", "an", "one", "single", "my"})
COUNT_WORDS = frozenset({"张", "块", "卡", "片", "gpus", "gpu", "cards", "card"})
NO_NAMES = frozenset({"gpu", "gpus", "card", "cards", "vram", "显", "卡", "存", "mig", "ampere"})
"""Words around a name that the catalogue looks past, but that are no part of it."""
UNIFIED_SIZES = frozenset({8, 16, 18, 24, 32, 36, 48, 64, 96, 128, 192, 256, 512})
"""Gigabytes that Apple machines are sold with."""
ALSO = frozenset({"or", "/", "或", "是", "and", "和"})
MOST_IN_A_MACHINE = 8
EACH_TIMES = frozenset("x*×每单") | {"each", "per", "of", "with"}
FORMS = frozenset({"sxm", "sxm4", "sxm5", "pcie", "nvl", "nvlink"})
"""Forms of a card that may be said behind its memory: "A100 80G SXM"."""
SERIES = frozenset({"rtx", "gtx", "tesla", "quadro", "radeon", "rx"})
TOTALS = frozenset({"total", "combined", "altogether", "总", "共", "合"})
"""Words behind a memory that is of all the cards."""
OF_KNOWN = frozenset({"them", "those", "these"})
MOST_PLAIN = 64
"""A plain number up to this before a card whose name is a number counts it: 2 4090."""
BEYOND_A_LENGTH = 100_000
"""A plain number from this before a card is no length of a text."""


@dataclass(slots=True)
class Hardware:
    """One set of cards as the message has it; ``memory_gb`` only when it is stated."""

    gpu: str | None = None
    card: KnownCard | None = None
    count: int | None = None
    nodes: int | None = None
    memory_gb: float | None = None
    usable: bool = False
    total: bool = False
    slice: str | None = None


class _Cluster:
    """Reads one cluster from a place in the sheet."""

    def __init__(self, sheet: Sheet, start: int) -> None:
        self.sheet, self.tokens = sheet, sheet.tokens
        self.start = self.position = self.end = self.start_of_name = start
        self.found = Hardware()
        self.invalid: list[str] = []

    def read(self) -> bool:
        """Read parts and fillers until neither follows; True when there are cards or memory among them."""
        while self.position < len(self.tokens) and not self.sheet.taken[self.position]:
            if self._part():
                self.end = self.position
            elif self.end > self.start and self._is_filler():
                self.position += 1
            elif not self._each():
                break
        found = self.found
        return bool(found.gpu or found.memory_gb or found.count or found.nodes or self.invalid)

    def _is_filler(self) -> bool:
        """Whether a small word goes between the parts: of, (, the s of "H200s x 4"."""
        token = self.tokens[self.position]
        return token.text in FILLERS or (token.text == "s" and token.glued and self.found.gpu is not None)

    def _part(self) -> bool:
        return self._nodes() or self._slice() or self._count() or self._memory() or self._card()

    def _each(self) -> bool:
        word = self.sheet.phrase(self.position, "cue")
        if word is None or word.value not in ("each_card", "usable") or self.end == self.start:
            return False
        self.position = word.end
        return True

    def _nodes(self) -> bool:
        if (self.found.nodes or 1) > 1:
            return False
        number = quantities.small_count(self.tokens, self.position)
        word = self.sheet.phrase(number.end, "cue") if number else None
        if number and self._counts_again(number.end):
            self.found.nodes, self.position = int(number.value), number.end + 1
            return True
        if number is None or not word or word.value != "nodes":
            return False
        low, high = LIMITS["nodes"]
        if low <= number.value <= high:
            self.found.nodes = int(number.value)
        else:
            self.invalid.append("nodes")
        self.position = word.end
        return True

    def _counts_again(self, at: int) -> bool:
        """Whether counted cards follow a sign of multiplication: the 2 of "2x8xH100" counts nodes."""
        inner = (
            quantities.small_count(self.tokens, at + 1)
            if self._text(at) in quantities.TIMES and self._text(at + 1)
            else None
        )
        if inner is None:
            return False
        again = self._text(inner.end) in quantities.TIMES and self._is_hardware(inner.end + 1)
        return again or bool(self._card_end(inner.end))

    def _count(self) -> bool:
        if self.found.count is not None:
            return False
        number, end = self._counted()
        if number is None:
            return False
        low, high = LIMITS["gpu_count"]
        if low <= number <= high:
            self.found.count = int(number)
        else:
            self.invalid.append("gpu_count")
        self.position = end
        return True

    def _counted(self) -> tuple[float | None, int]:
        """A number that counts cards here: ``8x``, ``4张``, ``2 T4``, and ``x2`` behind a card."""
        at = self.position
        if (
            self.tokens[at].text in quantities.TIMES
            and (self.found.gpu or self.found.memory_gb)
            and at + 1 < len(self.tokens)
        ):
            behind = quantities.small_count(self.tokens, at + 1)
            if behind and self._text(behind.end) not in quantities.MEMORY_UNITS and not self._card_end(at + 1):
                return behind.value, behind.end
        if self.tokens[at].text in ONES and not self._glued(at + 1) and self._is_hardware(at + 1):
            return 1, at + 1
        number = self._any_count(at)
        if number is None or self._ends_a_word(at) or quantities.memory_gb(self.tokens, at) or self._is_index(at):
            return None, at
        following = self._text(number.end) if self.sheet.is_free(number.end, number.end + 1) else ""
        if following in quantities.TIMES and self._is_hardware(number.end + 1):
            return number.value, number.end + 1
        if following in COUNT_WORDS or (following in ("个", "gpu") and self._text(number.end + 1) in COUNT_WORDS):
            return number.value, number.end + 1
        start = number.end + (following == "个")
        few = number.value <= MOST_PLAIN
        if (few and self._is_counted_memory(start)) or (number.end == at + 1 and self._is_spelled(at, start)):
            return number.value, start
        if following == "of" and (past := self._past_of(at, number.end + 1)):
            return number.value, past
        if self._counts_card(number):
            return number.value, number.end
        return None, at

    def _is_index(self, at: int) -> bool:
        """Whether the number says which card, as in 0卡 … 1卡: some card of the message has the number 0."""
        if self._text(at + 1) != "卡" or self.tokens[at].kind != "number":
            return False
        first = any(one.text == "0" and self._text(place + 1) == "卡" for place, one in enumerate(self.tokens))
        return first and self.tokens[at].number < MOST_IN_A_MACHINE

    def _past_of(self, at: int, behind: int) -> int:
        """Where "of" and what it counts ends: "a pair of A100s", "two of them"; 0 where it counts something else."""
        if self._is_spelled(at, behind):
            return behind
        return behind + 1 if self._text(behind) in OF_KNOWN else 0

    def _any_count(self, at: int) -> Quantity | None:
        """A count in digits, Chinese or English words; "one" counts only before "of them"."""
        if self.tokens[at].text == "one" and self._text(at + 1) == "of":
            return Quantity(1, at + 1)
        return quantities.small_count(self.tokens, at) or quantities.spelled_count(self.tokens, at)

    def _ends_a_word(self, at: int) -> bool:
        """Whether the number is the end of a word that means something else: the 16 of bf16, the 4 of q4."""
        token = self.tokens[at]
        before = self.tokens[at - 1] if at and token.glued and token.kind == "number" else None
        return before is not None and before.kind == "word" and before.text not in quantities.TIMES

    def _is_spelled(self, at: int, behind: int) -> bool:
        """Whether a count in words stands before cards: "dual 3090s"."""
        return quantities.spelled_count(self.tokens, at) is not None and self._is_hardware(behind)

    def _is_counted_memory(self, at: int) -> bool:
        """Whether a memory follows that cards are counted by: the 24GB of "2 24GB cards", the 40g of "2个40g"."""
        memory = quantities.memory_gb(self.tokens, at) if at < len(self.tokens) else None
        if memory is None or self.found.memory_gb is not None:
            return False
        return self._text(at - 1) == "个" or self._text(memory.end) in COUNT_WORDS or bool(self._card_end(memory.end))

    def _counts_card(self, number: Quantity) -> bool:
        """Whether a plain number counts the card right behind it; 8192 may be a length of a text."""
        at = number.end
        if at >= len(self.tokens) or not self._card_end(at):
            return False
        if number.value >= BEYOND_A_LENGTH:
            return True
        most = 4096 if self.tokens[at].kind == "word" else MOST_PLAIN
        return number.value <= most and not card_named(self.sheet.words(number.end - 1, number.end))

    def _is_hardware(self, at: int) -> bool:
        while self._text(at) in (" ", "(", "nvidia"):
            at += 1
        if at >= len(self.tokens):
            return False
        sized = quantities.memory_gb(self.tokens, at) or quantities.mig_profile(self.tokens, at)
        return bool(sized or self._card_end(at))

    def _slice(self) -> bool:
        """A MIG profile, such as 1g.10gb, of the card named before it or of one that is not named."""
        profile = quantities.mig_profile(self.tokens, self.position)
        if profile is None or self.found.slice:
            return False
        self.found.slice, self.found.memory_gb = profile.name, profile.memory_gb
        self.position = profile.end
        return True

    def _memory(self) -> bool:
        quantity = quantities.memory_gb(self.tokens, self.position) or self._unified_memory()
        if quantity is None or (self.found.memory_gb is not None and not self._usable_before()):
            return False
        low, high = LIMITS["memory_gb"]
        if low <= quantity.value <= high:
            self.found.memory_gb = quantity.value
        else:
            self.invalid.append("memory_gb")
        self.found.usable = self.found.usable or self._usable_before()
        self.position = quantity.end
        behind = quantity.end + (self._text(quantity.end) == "in")
        if self._text(behind) in TOTALS:
            self.found.total, self.position = True, behind + 1 + (self._text(behind + 1) in ("共", "计"))
        return True

    def _unified_memory(self) -> Quantity | None:
        """The bare number behind a card that is a size of it: "M3 Max 64", "A100 80"."""
        card = card_named(self.found.gpu) if self.found.gpu and not self.found.memory_gb else None
        number = quantities.signed(self.tokens, self.position)
        if card is None or number is None or number.value not in (UNIFIED_SIZES if card.unified else card.sizes):
            return None
        glued = number.end < len(self.tokens) and self.tokens[number.end].glued
        if glued and self.tokens[number.end].kind == "word":
            return None
        counts = self._text(number.end) in COUNT_WORDS | quantities.TIMES | {"个", "%"}
        return None if counts or self.sheet.phrase(number.end, "key") else number

    def _usable_before(self) -> bool:
        return any(
            word is not None and word.value == "usable" and word.end == self.position
            for word in (
                self.sheet.phrase(at, "cue") for at in range(max(self.start, self.position - 3), self.position)
            )
        )

    def _card(self) -> bool:
        end = 0 if self.found.gpu else self._card_end(self.position)
        if not end:
            return False
        name_end, memory, self.position = self._memory_in_name(end)
        self.found.gpu = self.sheet.words(self.start_of_name, name_end)
        if form := next((one.text for one in self.tokens[name_end:end] if one.text in FORMS), None):
            self.found.gpu += f" {form.upper()}"
        self.found.memory_gb = memory or self.found.memory_gb
        return True

    def _memory_in_name(self, end: int) -> tuple[int, float | None, int]:
        """Where the bare name ends, the memory stated with it, and where both end: "A100 80G" is A100 and 80."""
        self.start_of_name = self.position
        for at in range(self.position + 1, end):
            quantity = quantities.memory_gb(self.tokens, at) or self._bare_memory(at, end)
            if quantity and card_named(self.sheet.words(self.position, at)):
                return at - (self.tokens[at - 1].text in "-(,"), quantity.value, max(quantity.end, end)
        return end, None, end

    def _bare_memory(self, at: int, end: int) -> Quantity | None:
        """The last number of a name that is its memory: the 40 of "A100 40"."""
        apart = not self.tokens[at].glued or self.tokens[at - 1].text == "-"
        last = at == end - 1 and self.tokens[at].kind == "number" and apart
        card = card_named(self.sheet.words(self.position, at)) if last else None
        known = card is not None and self.tokens[at].number in card.sizes
        return Quantity(self.tokens[at].number, end) if known else None

    def _card_end(self, start: int) -> int:
        """Index after the longest card name that begins at ``start``; 0 when none does."""
        if start >= len(self.tokens):
            return 0
        longest = LONGEST_NAME if may_begin_card(self.tokens[start].text) else 0
        for end in range(min(len(self.tokens), start + longest), start, -1):
            if self._may_be_name(start, end) and card_named(self.sheet.words(start, end)):
                return end
        series = self.tokens[start].text in SERIES and start + 1 < len(self.tokens)
        if not series or self.tokens[start + 1].kind != "number":
            return 0
        return start + 2 + (self._text(start + 2) in ("ti", "super"))

    def _may_be_name(self, start: int, end: int) -> bool:
        edges = (self.tokens[start], self.tokens[end - 1])
        if not self.sheet.is_free(start, end) or any(one.kind == "sign" or one.text in NO_NAMES for one in edges):
            return False
        if quantities.memory_gb(self.tokens, start) or self._is_article(start, end) or self._is_inside(start):
            return False
        if self._counts_inside(start, end) or any(quantities.mig_profile(self.tokens, at) for at in range(start, end)):
            return False
        if end == start + 1 and self.tokens[start].kind == "number" and self.tokens[start].number % 1000 == 0:
            return False
        if start and self.tokens[start].glued and self.tokens[start - 1].text == "_":
            return False
        if self.tokens[start].text == "m" and not self._glued(start + 1):  # M4 is a chip, "m 4" are two words
            return False
        if start > self.start and self.tokens[start].glued and self.tokens[start - 1].kind == "word":
            return self.tokens[start - 1].text in quantities.TIMES
        last, after = self.tokens[end - 1], self.tokens[end] if end < len(self.tokens) else None
        if after is None or not after.glued or last.kind == after.kind == "word":
            return True
        return not (last.kind == "number" and after.kind == "word" and after.text not in VARIANTS)

    def _is_inside(self, start: int) -> bool:
        """Whether a name would begin within a word of letters and numbers: the A16 of "w4a16"."""
        if start < 2 or not (self.tokens[start].glued and self.tokens[start - 1].glued):
            return False
        before, first = self.tokens[start - 1], self.tokens[start - 2]
        return before.kind == "number" and first.kind == "word" and first.text not in quantities.TIMES

    def _counts_inside(self, start: int, end: int) -> bool:
        """Whether a sign of multiplication is no part of a name: the x of "MI250 x 8", the * of "910B*4"."""
        signs = [at for at in range(start + 1, end) if self.tokens[at].text in quantities.TIMES]
        return any(self.tokens[at].text != "x" or at + 1 < end or not self.tokens[at].glued for at in signs)

    def _is_article(self, start: int, end: int) -> bool:
        """Whether the name would be an article and a number: "a 100" in the middle of a sentence is no A100."""
        apart = end > start + 1 and not self.tokens[start + 1].glued
        return apart and self.sheet.words(start, start + 1) == "a"

    def _glued(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].glued

    def _text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""


def read_hardware(sheet: Sheet) -> list[Hardware]:
    """Every set of cards of the message, each noted with its reason."""
    sets: list[Hardware] = []
    for index in sheet.free_starts():
        cluster = _Cluster(sheet, index)
        if not cluster.read():
            continue
        sheet.invalid.extend(cluster.invalid)
        if sets and _is_other_size(sheet, cluster):
            cluster.found.gpu = sets[-1].gpu
        cluster.found.card = card_named(cluster.found.gpu) if cluster.found.gpu else None
        _share_out(sheet, cluster)
        sheet.read("hardware", cluster.found, index, cluster.end, "cards, their number and memory")
        sets.append(cluster.found)
    return sets


def _share_out(sheet: Sheet, cluster: _Cluster) -> None:
    """两机16卡: more cards than one machine holds are those of all machines, unless a sign multiplies them."""
    found = cluster.found
    count, nodes = found.count or 0, found.nodes or 1
    texts = {token.text for token in sheet.tokens[cluster.start : cluster.end]}
    if nodes > 1 and count > MOST_IN_A_MACHINE and count % nodes == 0 and not texts & EACH_TIMES:
        found.count = count // nodes


def _is_other_size(sheet: Sheet, cluster: _Cluster) -> bool:
    """Whether a bare memory size goes on from the card before it: "A100 80G or 40G"."""
    alone = cluster.found.memory_gb and not cluster.found.gpu and not cluster.found.count
    return bool(alone) and cluster.start > 0 and sheet.tokens[cluster.start - 1].text in ALSO
