"""Fields that a word or phrase names: method, precision, quantisation, optimizer, sharding, engine, task."""

from bot.intake import quantities
from bot.intake.keyed import LIMITS
from bot.intake.names import KnownCard, card_named, may_begin_card
from bot.intake.quantities import Quantity
from bot.intake.sheet import Sheet

WORD_FIELDS = (
    "optimizer", "weight_format", "precision", "gradient_checkpointing", "attention", "loss", "method", "stage",
    "engine", "framework", "parallelism", "offload", "task", "kv_dtype", "sleep", "reference", "compile",
    "optimizer_impl", "packing",
)  # fmt: skip
LOOK_BACK = 3
LONGEST_NAME = 12
OWN = frozenset({"model", "training", "run", "it", "weights"})
"""What uses memory and is no other program."""
OF_OPTIMIZER = {"int8": "adamw-8bit", "nf4": "adamw-4bit", "4bit": "adamw-4bit"}
CHANGES = frozenset({"换", "改", "省", "save", "saves", "switch", "switching", "instead"})


def read_tools(sheet: Sheet) -> None:
    """Frameworks and engines, read before models: LLaMA-Factory and llama.cpp are none."""
    read_fields(sheet, ("engine", "framework"))


def read_bits_of_optimizer(sheet: Sheet) -> None:
    """``optimizer 换成8bit``: bits close behind the word optimizer are its own; a change is set beside AdamW."""
    for index in sheet.free_starts():
        key = sheet.phrase(index, "key")
        if key is None or key.value != "optimizer":
            continue
        named = (sheet.phrase(at, "optimizer") for at in range(key.end, min(key.end + 3, len(sheet.tokens))))
        if any(word is not None and word.end > word.start + 1 for word in named):
            continue  # "optim adamw_8bit" says it in one name
        for at in range(key.end, min(key.end + 4, len(sheet.tokens))):
            bits = sheet.phrase(at, "weight_format")
            if bits is not None and bits.value in OF_OPTIMIZER:
                if CHANGES & {token.text for token in sheet.tokens}:
                    sheet.read("optimizer", "adamw", index, key.end, "what is changed, by default AdamW")
                sheet.read("optimizer", OF_OPTIMIZER[bits.value], at, bits.end, "the bits of the optimizer's states")
                break


def read_bits_per_weight(sheet: Sheet) -> None:
    """``4.0bpw``: an EXL2 file of that many bits per weight."""
    for index in sheet.free_starts():
        number = quantities.signed(sheet.tokens, index)
        if number and number.end < len(sheet.tokens) and sheet.tokens[number.end].text == "bpw":
            sheet.read("weight_format", f"exl2-{number.value:g}bpw", index, number.end + 1, "bits per weight")


def read_closed(sheet: Sheet) -> None:
    """Models whose weights are not published, with their version: "claude 3.5"."""
    for index in sheet.free_starts():
        word = sheet.phrase(index, "closed")
        if word and not _is_inside(sheet, word.start, word.end):
            sheet.read("closed", word.value, word.start, word.end, f"the weights of {word.value} are not published")


def read_fields(sheet: Sheet, names: tuple[str, ...] = WORD_FIELDS) -> None:
    """Every phrase of the lexicon that names a field's value, the longest phrase at each place."""
    for index in sheet.free_starts():
        word = sheet.phrase(index, *names)
        if word and not _is_inside(sheet, word.start, word.end):
            found = sheet.words(word.start, word.end)
            sheet.read(word.section, word.value, word.start, word.end, f'"{found}" means {word.value}')


def read_switches(sheet: Sheet) -> None:
    """Gradient checkpointing "on vs off": it is set against its absence."""
    named = [one for one in sheet.readings if one.field == "gradient_checkpointing"]
    pair = next((word for at in sheet.free_starts() if (word := sheet.phrase(at, "switched"))), None)
    if len(named) != 1:
        return
    without = named[0].start - 2  # "with or without …"
    both = without >= 0 and [one.text for one in sheet.tokens[without : without + 2]] in WITH_OR
    both = both or [one.text for one in sheet.tokens[max(0, named[0].start - 1) :][:3]] in OR_NOT
    if pair or both:
        start, end = (pair.start, pair.end) if pair else (max(0, without), named[0].start)
        other = "none" if named[0].value == "full" else "full"
        sheet.read("gradient_checkpointing", other, start, end, "what it is compared with")
        sheet.against = True


OR_NOT = (["开", "不", "开"], ["用", "不", "用"])
WITH_OR = (["with", "or"], ["with", "and"], ["with", "vs"], ["with", "/"])


JOINED = frozenset({"和", "与", "及", "and", "or", "vs", "/", "、", "+", "还是", "&"})


def read_full_beside_adapters(sheet: Sheet) -> None:
    """SFT set beside LoRA, "sft和lora", means that all parameters are trained."""
    methods = [one for one in sheet.readings if one.field == "method" and one.value in ("lora", "dora", "qlora")]
    for stage in [one for one in sheet.readings if one.field == "stage" and one.value == "sft"]:
        if any(_are_joined(sheet, *sorted((stage.start, stage.end, one.start, one.end))[1:3]) for one in methods):
            sheet.read("method", "full", stage.start, stage.end, "SFT set beside LoRA trains all parameters")


def _are_joined(sheet: Sheet, start: int, end: int) -> bool:
    return end == start + 1 and sheet.tokens[start].text in JOINED


def read_limits(sheet: Sheet) -> None:
    """``4 or fewer`` behind a question about cards counts them."""
    cards = [one.value for one in sheet.readings if one.field == "hardware"]
    for index in sheet.free_starts():
        number = quantities.small_count(sheet.tokens, index)
        word = sheet.phrase(number.end, "cue") if number else None
        if number and word and word.value == "or_fewer" and cards and "need_gpu" in sheet.questions:
            cards[-1].count = cards[-1].count or int(number.value)
            sheet.take(index, word.end)


def _is_inside(sheet: Sheet, start: int, end: int) -> bool:
    """Whether the phrase is only a piece of a glued word: the "ft" of "ft8", the "q4" of "q4096"."""
    tokens = sheet.tokens
    before = tokens[start].glued and tokens[start - 1].kind == tokens[start].kind != "han"
    return before or (end < len(tokens) and tokens[end].glued and tokens[end].kind == tokens[end - 1].kind != "han")


def read_sequence_parallel(sheet: Sheet) -> None:
    """``sequence parallel``, before its first word is taken for a length."""
    for index in sheet.free_starts():
        word = sheet.phrase(index, "parallel_switch")
        if word is not None:
            sheet.read(word.value, True, index, word.end, "the residual stream is dealt out too")


def read_parallel_sizes(sheet: Sheet) -> None:
    """``tp2``, ``tp=4``, ``tensor parallel 8``."""
    for index in sheet.free_starts():
        word = sheet.phrase(index, "parallel_size")
        if word is None:
            continue
        at = word.end
        while at < len(sheet.tokens) and sheet.tokens[at].text in "=:-":
            at += 1
        number = quantities.signed(sheet.tokens, at)
        if number and 1 <= number.value <= 4096:
            sheet.read(word.value, int(number.value), index, number.end, "the number behind the word")
            _read_replicas(sheet, word.value, int(number.value), index)


def _read_replicas(sheet: Sheet, name: str, size: int, start: int) -> None:
    """``2x tp4``: two copies of the model, each over four cards."""
    times = start > 1 and sheet.tokens[start - 1].text in quantities.TIMES and sheet.is_free(start - 2, start)
    copies = quantities.small_count(sheet.tokens, start - 2) if times else None
    if copies and copies.end == start - 1 and 1 <= copies.value <= 4096:
        layout = {name: size, "data": int(copies.value)} if copies.value > 1 else {name: size}
        sheet.read("layout", layout, start - 2, start, "copies of the model, and the cards of each")


def read_other_memory(sheet: Sheet) -> None:
    """Memory that is not a card's size: the host's, what is used already, what someone claims is needed."""
    for index in sheet.free_starts():
        memory = quantities.memory_gb(sheet.tokens, index)
        if memory is None or not sheet.is_free(index, memory.end):
            continue
        field = _role_behind(sheet, memory.end) or _role_before(sheet, index) or _role_of_file(sheet, index, memory.end)
        field = field or _role_beside_a_card(sheet, index, memory)
        if field == "host_ram_gib" and LIMITS[field][0] <= memory.value <= LIMITS[field][1]:
            sheet.read(field, memory.value, index, memory.end, "the computer's own memory")
        elif field == "reserved_by_others_gib":
            binary = sheet.tokens[memory.end - 1].text == "gib"
            others = memory.value if binary else round(memory.value * 1e9 / 2**30, 2)
            sheet.read(field, others, index, memory.end, "memory that other programs use")
        elif field:
            sheet.read(field, memory.value, index, memory.end, "what is used, or said to be needed")


def _role_behind(sheet: Sheet, end: int) -> str | None:
    at = end + 1 if end < len(sheet.tokens) and sheet.tokens[end].text in ("of", "的") else end
    word = sheet.phrase(at, "cue")
    if word and word.value == "others" and not OWN & {token.text for token in sheet.tokens[word.end : word.end + 2]}:
        return "reserved_by_others_gib"
    return "host_ram_gib" if word and word.value == "ram" else None


def _role_beside_a_card(sheet: Sheet, start: int, memory: Quantity) -> str | None:
    """``4090 加 64G 内存``, ``8*4090, 256G memory``: said of cards, too, but not beside one of another size."""
    behind = [token.text for token in sheet.tokens[memory.end : memory.end + 2]]
    if "".join(behind) != "内存" and behind[:1] not in (["memory"], ["mem"]):
        return None
    if _is_of_cards_elsewhere(sheet, start):
        return "host_ram_gib"
    cards = [(card, at) for at in range(len(sheet.tokens)) if (card := _card_from(sheet, at))]
    unlike = cards and not any(_may_be_of(sheet, card, at, memory.value) for card, at in cards)
    return "host_ram_gib" if unlike else None


def _is_of_cards_elsewhere(sheet: Sheet, start: int) -> bool:
    """Whether another memory of the message is said to be that of cards: "24G显存 64G内存"."""
    for at in range(len(sheet.tokens)):
        other = quantities.memory_gb(sheet.tokens, at) if at != start else None
        words = "".join(token.text for token in sheet.tokens[other.end : other.end + 2]) if other else ""
        if words.startswith(("显存", "vram")):
            return True
    return False


def _card_from(sheet: Sheet, at: int) -> KnownCard | None:
    """The card whose name begins at a token and is no size of memory."""
    if quantities.memory_gb(sheet.tokens, at) or not may_begin_card(sheet.tokens[at].text):
        return None
    ends = range(min(len(sheet.tokens), at + LOOK_BACK), at, -1)
    return next((card for end in ends if (card := card_named(sheet.words(at, end)))), None)


def _may_be_of(sheet: Sheet, card: KnownCard, at: int, memory_gb: float) -> bool:
    """Whether a memory is that of a card, of so many as are counted, or the one that it shares with its computer."""
    near = (quantities.small_count(sheet.tokens, one) for one in range(max(0, at - LOOK_BACK), at))
    counts = {number.value for number in near if number}
    return card.unified or any(memory_gb == size or memory_gb / size in counts for size in card.sizes)


def _role_of_file(sheet: Sheet, start: int, end: int) -> str | None:
    """``8GB model``, ``a 13GB gguf``: the size of a file of weights, where no card's name stands before it."""
    if sheet.phrase(end, "file") is None:
        return None
    names = (sheet.words(at, start) for at in range(max(0, start - LOOK_BACK), start))
    return None if any(card_named(name) for name in names) else "file_gb"


def _role_before(sheet: Sheet, start: int) -> str | None:
    for at in range(max(0, start - LOOK_BACK), start):
        word = sheet.phrase(at, "cue")
        if word and word.end >= start - 1 and word.value in ("used", "needed"):
            return "used_gb" if word.value == "used" else "claimed_gb"
    return None


def read_bare_lengths(sheet: Sheet) -> None:
    """``16k`` alone is a length, and so is a round number of tokens such as 2048."""
    for index in sheet.free_starts():
        token = sheet.tokens[index]
        number = quantities.counted(sheet.tokens, index, binary=True)
        if number is None or token.kind != "number" or not sheet.is_free(index, number.end):
            continue
        with_k = number.end == index + 2 and sheet.tokens[index + 1].text == "k"
        behind = sheet.tokens[number.end] if number.end < len(sheet.tokens) else None
        alone = behind is None or not behind.glued or behind.text in "?？,，.。!！)）]】;；:："
        if alone and (with_k or _is_round(number.value)) and 128 <= number.value <= LIMITS["seq_len"][1]:
            sheet.read("seq_len", int(number.value), index, number.end, "a round number of tokens")


def _is_round(value: float) -> bool:
    return value >= 512 and value % 256 == 0
