"""A named number: ``bs 4``, ``seq=4k``, ``4k context``, ``batch size 为 8``, ``3 epochs``."""

from collections.abc import Callable

from bot.intake import quantities
from bot.intake.names import card_named, model_named
from bot.intake.quantities import Quantity
from bot.intake.sheet import Reading, Sheet

LIMITS: dict[str, tuple[float, float]] = {
    "micro_batch": (1, 1_000_000),
    "seq_len": (1, 100_000_000),
    "grad_accum": (1, 1_000_000),
    "gpu_count": (1, 200_000),
    "nodes": (1, 100_000),
    "rank": (1, 1_000_000),
    "concurrency": (1, 1_000_000),
    "new_tokens": (0, 100_000_000),
    "gpu_memory_utilization": (0.01, 1),
    "n_gpu_layers": (0, 1_000),
    "ubatch": (1, 1_000_000),
    "max_num_seqs": (1, 1_000_000),
    "lora_slots": (1, 10_000),
    "max_num_batched_tokens": (1, 100_000_000),
    "moe_on_cpu": (0, 1_000),
    "num_generations": (1, 1_000_000),
    "max_completion_len": (1, 100_000_000),
    "beta": (0, 1_000),
    "colocated_share": (0.01, 1),
    "images": (1, 10_000),
    "epochs": (0.001, 1_000_000),
    "samples": (1, 1e12),
    "memory_gb": (0.5, 10_000),
    "host_ram_gib": (0.5, 1_000_000),
    "params_b": (0.0001, 100_000),
}
"""What a real run can have; beyond, the number is a slip or a joke and is asked back."""

WHOLE = frozenset({"micro_batch", "seq_len", "grad_accum", "gpu_count", "nodes", "rank", "concurrency", "new_tokens"})
WHOLE |= {"num_generations", "max_completion_len", "images", "lora_slots"}
WHOLE |= {"n_gpu_layers", "ubatch", "max_num_seqs", "max_num_batched_tokens", "moe_on_cpu"}
COUNTED = WHOLE | {"epochs", "samples"}
BEFORE_KEY = frozenset({"seq_len", "epochs", "samples", "concurrency", "new_tokens", "num_generations", "images",
                        "lora_slots"})  # fmt: skip
OF_ROWS = frozenset({"of", "on", "over", "through", "across"})
LEAST_CARD = 1000
LEAST_ROWS = 100
COUNTED_THINGS = frozenset({"num_generations", "images", "lora_slots"})
"""What is counted in front of its word, whatever number follows: "8 generations 4090x2", "2 images 448x448"."""
AMOUNTS = frozenset({"samples", "epochs"})
MEMORIES = frozenset({"memory_gb", "host_ram_gib"})
MACHINES = frozenset({"gpu_count", "nodes"})
CHANGES = frozenset({"/", "、", "改", "成", "到", "为", "变", "换", "→", "-", ">", "to", "vs"})
BELOW_ZERO = frozenset({"minus", "negative", "负"})
EACH = frozenset({"每", "per", "each"})
"""Lengths of one sample, which multiply an amount: k is a thousand there."""
COUNTABLE = AMOUNTS | MACHINES | {"concurrency"}
"""Counted in front of their word; the number behind it is another: "2 nodes of 8 H100"."""
LINKS = frozenset(
    {"=", ":", "~", "≤", "<", "is", "of", "size", "to", "at", "up", "down", "为", "是", "设", "成", "到", "约", "开",
     "改", "加", "调", "升", "降", "减", "换", "用", "都", "各", "大", "小", "只", "才", "就", "从", "from",
     "about", "around", "set", "拉", "提", "涨", "拖", "缩", "砍", "压", "增", "往", "上", "下", "高", "低", "至", "取",
     "默", "认", "default", "给", "也", "仅", "已", "经", "了", "最", "多", "少", "长", "→", ">", "≈", "≥", "above",
     "below", "just",
     "only", "already", "even", "was", "were", "be", "like", "say", "being", "as", "low", "high", "goes", "becomes"}
)  # fmt: skip
AT_ONCE = frozenset({"concurrent", "simultaneous", "parallel"})
TOKEN_WORDS = frozenset({"tokens", "token", "tok", "toks", "字", "response", "responses"})


def number_of(field: str, value: float) -> float | int | None:
    """The value as the field holds it; None when it is impossible."""
    low, high = LIMITS[field]
    if not low <= value <= high or (field in WHOLE and value != int(value)):
        return None
    return int(value) if field in WHOLE else value


def note_number(sheet: Sheet, field: str, value: float, start: int, end: int, why: str) -> None:
    """Note a number for a field, or that it is impossible."""
    number = number_of(field, value)
    if number is None:
        sheet.invalid.append(field)
        sheet.take(start, end)
    else:
        sheet.read(field, number, start, end, why)


def read_keyed_numbers(sheet: Sheet) -> None:
    """Numbers right behind or right before the word that names them."""
    for index in sheet.free_starts():
        _read_behind(sheet, index) or _read_before(sheet, index)


def _value_at(field: str) -> Callable[[list, int], Quantity | None]:  # type: ignore[type-arg]
    if field == "memory_gb":
        return lambda tokens, start: quantities.memory_gb(tokens, start) or quantities.bare_memory(tokens, start)
    if field == "host_ram_gib":
        return quantities.memory_gb
    return lambda tokens, start: quantities.counted(tokens, start, binary=field == "seq_len")


def _read_behind(sheet: Sheet, start: int) -> bool:
    key = sheet.phrase(start, "key")
    if key is None or key.value not in LIMITS or _ends_a_name(sheet, key.start, key.end) or _is_value(sheet, start):
        return False
    position = key.end
    while position < len(sheet.tokens) and sheet.tokens[position].text in LINKS | {"-", "_"} and position < key.end + 3:
        below_zero = quantities.signed(sheet.tokens, position) is not None
        if sheet.tokens[position].text in "-_" and (below_zero or not sheet.tokens[position].glued):
            break
        position += 1
    each = sheet.tokens[start].text in EACH
    below = position < len(sheet.tokens) and sheet.tokens[position].text in BELOW_ZERO
    read = quantities.counted if each else _value_at(key.value)
    found = read(sheet.tokens, position + below) if position + below < len(sheet.tokens) else None
    found = Quantity(-found.value, found.end) if found and below else found or _nothing(sheet, position)
    if found is None or not sheet.is_free(position, found.end) or _is_other(sheet, key.value, found.end):
        return False
    if _is_counted_before(sheet, start) or _is_anothers(sheet, key.value, start, found.end):
        return False
    before = key.value == "concurrency" or key.value in AMOUNTS
    if before and _is_named(sheet, found.end):
        return False
    if key.end - start == 1 and len(sheet.tokens[start].text) == 1 and _is_name(sheet, start, found.end):
        return False
    name, field = sheet.words(key.start, key.end), key.value
    if _is_length_of_users(sheet, field, start, found.end):
        field, found = "seq_len", quantities.counted(sheet.tokens, position, binary=True) or found
    note_number(sheet, field, found.value, start, found.end, f'the number behind "{name}"')
    if field == "rank" and sheet.tokens[start].text == "lora":
        sheet.readings.append(Reading("method", "lora", name, f'"{name}" is of LoRA', start, key.end))
    _read_more(sheet, field, found.end)
    return True


def _is_length_of_users(sheet: Sheet, field: str, start: int, end: int) -> bool:
    """Whether thousands beside the users are their tokens: "how many users at 4k each", "how many 16k users"."""
    if field != "concurrency" or sheet.tokens[end - 1].text != "k":
        return False
    while start and sheet.tokens[start - 1].text in AT_ONCE:
        start -= 1
    return start > 1 and sheet.tokens[start - 1].text == "many" and sheet.tokens[start - 2].text == "how"


def _nothing(sheet: Sheet, at: int) -> Quantity | None:
    """``a length of zero``: the word, where no number of a stage follows it."""
    zero = at < len(sheet.tokens) and sheet.tokens[at].text in ("zero", "零")
    ends = at + 1 >= len(sheet.tokens) or sheet.tokens[at + 1].kind in ("word", "han")
    return Quantity(0, at + 1) if zero and ends else None


def _is_counted_before(sheet: Sheet, start: int) -> bool:
    """Whether a number of its own stands right before a word for countable things: the 3 of "3 epochs"."""
    word = sheet.phrase(start, "key")
    if start < 1 or word is None or word.value not in COUNTABLE or _is_told(sheet, word.end):
        return False
    before, first = sheet.tokens[start - 1], start - 1
    if before.text in "k万千" and start > 1:
        first -= 1
    number = sheet.tokens[first]
    apart = not number.glued or sheet.tokens[first - 1].kind != "word"
    own = number.kind == "number" and number.number == int(number.number) and apart and not sheet.taken[first]
    return own and card_named(sheet.words(first, start)) is None


def _is_anothers(sheet: Sheet, field: str, start: int, end: int) -> bool:
    """Whether a word has its number before it, and the one behind has a word of its own."""
    if _is_measured_before(sheet, field, start, end):
        return True
    return _is_told_before(sheet, field, start) and _names_another(sheet, field, end)


def _is_told_before(sheet: Sheet, field: str, start: int) -> bool:
    """Whether a length's own number stands right before its word: the 128k of 128k上下文."""
    if field not in ("seq_len", "new_tokens"):
        return False
    for at in range(max(0, start - 2), start):
        number = quantities.counted(sheet.tokens, at)
        apart = not sheet.tokens[at].glued or sheet.tokens[at - 1].kind != "word"  # the 16 of fp16 is of no length
        if number is not None and number.end == start and apart and sheet.is_free(at, start):
            return True
    return False


def _names_another(sheet: Sheet, field: str, end: int) -> bool:
    """Whether the word behind a number says what else it is: the 10 of 128k上下文 10个并发."""
    word = sheet.phrase(end, "key")
    return word is not None and word.value in LIMITS and word.value != field


def _is_measured_before(sheet: Sheet, field: str, start: int, end: int) -> bool:
    """Whether a memory stands before its word and the one behind has a word of its own: 12G显存 32G内存."""
    if field not in MEMORIES or (word := sheet.phrase(end, "key")) is None or word.value not in MEMORIES:
        return False
    before = (quantities.memory_gb(sheet.tokens, at) for at in range(max(0, start - 3), start))
    return any(memory is not None and memory.end == start for memory in before)


def _is_told(sheet: Sheet, end: int) -> bool:
    """Whether a sign sets the word's own number behind it: "epochs=3"."""
    return end < len(sheet.tokens) and sheet.tokens[end].text in "=:"


def _is_named(sheet: Sheet, end: int) -> bool:
    """Whether the number that ends here is what the next word counts: the 5万 of "3 epochs 5万条"."""
    if end < len(sheet.tokens) and sheet.tokens[end].text in TOKEN_WORDS:
        return True
    word = sheet.phrase(end, "key")
    if word is None or word.value not in AMOUNTS | {"seq_len", "concurrency"}:
        return False
    number = quantities.counted(sheet.tokens, word.end) if word.end < len(sheet.tokens) else None
    return number is None or word.value in AMOUNTS


def _is_value(sheet: Sheet, start: int) -> bool:
    """Whether the word is what an option says, as in "method:lora rank:16"."""
    return start > 1 and sheet.tokens[start].glued and sheet.tokens[start - 1].text in ":="


def _ends_a_name(sheet: Sheet, start: int, end: int) -> bool:
    """Whether a one-letter key is the tail of a hyphenated name: the "r" of "deepseek-r1"."""
    if start < 2 or len(sheet.words(start, end)) > 1:
        return False
    letter, hyphen, name = sheet.tokens[start], sheet.tokens[start - 1], sheet.tokens[start - 2]
    return letter.glued and hyphen.glued and hyphen.text in "-_" and name.kind == "word"


def _is_name(sheet: Sheet, start: int, end: int) -> bool:
    """Whether a letter and its number end the name of a model: the "r1" of "deepseek r1"."""
    if card_named(sheet.words(start, end)):  # the R9700 is a card
        return True
    hyphen = start > 0 and sheet.tokens[start - 1].text in "-_"
    first = start - 1 - hyphen
    return first >= 0 and sheet.tokens[first].kind != "sign" and model_named(sheet.words(first, end)) is not None


def _is_other(sheet: Sheet, field: str, end: int) -> bool:
    """Whether the number goes on as another quantity: "model 7b", "length 24GB", "rank 2x"."""
    token = sheet.tokens[end] if end < len(sheet.tokens) else None
    if token and field == "seq_len" and sheet.tokens[end - 1].text in ("2", "4") and token.kind == "word":
        return not token.glued  # "max seqlen 4 gemma2 9b"
    if token is None or not token.glued or field in ("memory_gb", "host_ram_gib"):
        return False
    return (
        token.text in quantities.SIZE_UNITS or token.text in quantities.MEMORY_UNITS or token.text in quantities.TIMES
    )


def _read_more(sheet: Sheet, field: str, end: int) -> None:
    """Further values of the same key: ``seq 2k/4k/8k``."""
    tokens = sheet.tokens
    while end + 1 < len(tokens) and field in COUNTED and (start := _past_change(sheet, end)) > end:
        found = _value_at(field)(tokens, start) if start < len(tokens) else None
        if found is None or not sheet.is_free(start, found.end):
            return
        note_number(sheet, field, found.value, start, found.end, "listed behind the first value")
        end = found.end


def _past_change(sheet: Sheet, at: int) -> int:
    """Past what sets a second value off from the first: "2k/4k", "16改成32", "8 -> 16"; ``at`` where nothing does."""
    end = at
    while end < min(len(sheet.tokens), at + 3) and sheet.tokens[end].text in CHANGES:
        end += 1
    return end


def _read_before(sheet: Sheet, start: int) -> bool:
    """``32k context``, ``2048 tokens``, ``3 epochs``, ``10k samples``."""
    found = quantities.counted(sheet.tokens, start) or quantities.spelled_count(sheet.tokens, start)
    if found is None or found.end >= len(sheet.tokens) or _names_a_card(sheet, start, found):
        return False
    position = found.end + (sheet.tokens[found.end].text in ("+", "的", "-"))
    measured = sheet.tokens[position : position + 2]  # 4096个token
    position += len(measured) == 2 and measured[0].text == "个" and measured[1].text in TOKEN_WORDS
    if position >= len(sheet.tokens):
        return False
    if sheet.tokens[position].text in TOKEN_WORDS:
        field, end = "seq_len", position + 1
    else:
        key = sheet.phrase(position, "key")
        if key is None or key.value not in (BEFORE_KEY if found.value >= 0 else LIMITS):
            return False
        counts = key.value in COUNTED_THINGS or _is_counted_before(sheet, key.start)
        if not counts and _names_a_number(sheet, key.end, key.value):
            return False
        field, end = key.value, key.end
    if _is_length_of_users(sheet, field, start, found.end):
        field = "seq_len"
    value = quantities.counted(sheet.tokens, start, binary=field == "seq_len" and not _is_factor(sheet, start)) or found
    note_number(sheet, field, value.value, start, end, f'the number before "{sheet.words(position, end)}"')
    if field == "epochs":
        _read_rows(sheet, end)
    return True


def _names_a_card(sheet: Sheet, start: int, number: Quantity) -> bool:
    """Whether a plain number is a card's: the 4090 of "4090 上下文", not the 2000 of "2000 tokens"."""
    plain = number.end == start + 1 and number.value >= LEAST_CARD and number.value % 1000 != 0
    return plain and card_named(sheet.words(start, number.end)) is not None


def _read_rows(sheet: Sheet, start: int) -> None:
    """The rows that epochs go through: the 52k of "3 epochs of 52k alpaca"."""
    if sheet.is_free(start, start + 1) and start + 1 < len(sheet.tokens) and sheet.tokens[start].text in OF_ROWS:
        named = sheet.tokens[start + 1].kind == "word" and start + 2 < len(sheet.tokens)  # "1 epoch of alpaca 52k"
        rows = quantities.counted(sheet.tokens, start + 1 + named)
        if (
            rows
            and rows.value >= LEAST_ROWS
            and not _is_other(sheet, "samples", rows.end)
            and not _is_counting(sheet, rows)
        ):
            note_number(sheet, "samples", rows.value, start + 1, rows.end, "the rows of each epoch")


def _is_counting(sheet: Sheet, number: Quantity) -> bool:
    """Whether the next word says what a number counts."""
    if number.end < len(sheet.tokens) and sheet.tokens[number.end].text in TOKEN_WORDS:
        return True
    return sheet.phrase(number.end, "key") is not None


def _is_factor(sheet: Sheet, start: int) -> bool:
    """Whether the number multiplies another amount, where k means a thousand: "10k samples x 1k tokens"."""
    return start > 1 and sheet.tokens[start - 1].text in quantities.TIMES and sheet.tokens[start - 2].kind == "word"


def _names_a_number(sheet: Sheet, end: int, field: str) -> bool:
    """Whether the key's own number follows, so that the number before it belongs elsewhere: "bs4 seq 4k"."""
    while end < len(sheet.tokens) and sheet.tokens[end].text in LINKS:
        end += 1
    number = quantities.counted(sheet.tokens, end) if end < len(sheet.tokens) else None
    if number is None:
        return False
    unit = sheet.tokens[number.end].text if number.end < len(sheet.tokens) else ""
    return (field == "seq_len" and unit in TOKEN_WORDS) or not _is_named(sheet, number.end)
