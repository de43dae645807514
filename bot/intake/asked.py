"""What a message asks, and whether it asks us anything at all."""

from typing import NamedTuple

from bot.intake import quantities
from bot.intake.idioms import asks_nothing
from bot.intake.lexicon import Word
from bot.intake.names import may_begin_card
from bot.intake.options import is_command
from bot.intake.sheet import Sheet
from bot.intake.ways import MARKS_OF_WAYS, asks_how

QUESTION_ORDER = (
    "help", "own", "price", "cost", "time", "max_batch", "max_seq", "max_model", "need_gpu", "budget", "compare",
    "advice", "explain", "lessen", "need_memory", "diagnose", "usage", "fit", "may", "use",
)  # fmt: skip
"""Where several are cued, the earlier one is what is wanted: "OOM, how many GPUs?" asks for cards."""

RIVAL_FIELDS = (
    "hardware", "model", "method", "micro_batch", "seq_len", "weight_format", "parallelism", "size", "layout",
    "precision", "optimizer", "gradient_checkpointing", "attention", "rank", "kv_dtype",
)  # fmt: skip
"""Of two values of one of these, one may be set against the other."""
ASKED_AS = {"may": "fit", "own": "cost", "usage": "need_memory", "budget": "cost", "lessen": "advice", "use": "help"}
"""Questions that are answered as others are."""

SUBSTANCE = frozenset(
    [
        "model",
        "size",
        "hardware",
        "method",
        "stage",
        "weight_format",
        "micro_batch",
        "seq_len",
        "parallelism",
        "engine",
        "optimizer",
        "precision",
        "offload",
        "gradient_checkpointing",
        "attention",
        "grad_accum",
        "tensor",
        "pipeline",
        "context",
    ]
)
TOLD_LATER = frozenset(
    ("epochs", "samples", "tokens", "task", "rank", "concurrency", "new_tokens", "hours", "kv_dtype", "gpu_count",
     "nodes", "host_ram_gib", "num_generations", "max_completion_len", "loss", "framework", "images", "tensor",
     "factor")
)  # fmt: skip
"""What goes on from a run that was spoken of, and says nothing without one."""
WEAK = frozenset({"size", "hardware", "seq_len"})
FEW_WORDS = 2
"""Words of a message that say nothing of a run, beside which the word LoRA still is a question."""
AMOUNTS = ("samples", "epochs", "tokens", "hours")


class Asked(NamedTuple):
    """The question and what else the message's wording says."""

    question: str | None
    marked: bool
    domain: bool
    elsewhere: bool
    chatter: bool
    follow_up: bool


def asked_in(sheet: Sheet) -> Asked:
    """The question of a message whose fields have been read."""
    cues = sheet.questions
    return Asked(
        question=_question(sheet, cues),
        marked=bool(cues) or any(sign in sheet.text for sign in MARKS) or _begins_as_question(sheet),
        domain=sheet.has("cue", value="domain"),
        elsewhere=sheet.has("cue", value="elsewhere") or _is_of_games(sheet),
        chatter=sheet.has("cue", value="chatter"),
        follow_up=sheet.has("cue", value="follow_up") or _goes_on(sheet),
    )


OF_MODELS = frozenset(("model", "models", "llm", "llms", "模型", "lora", "qlora"))
LARGEST = frozenset({"max", "maximum", "maximal", "largest", "longest", "biggest", "highest"})
LARGEST_ZH = ("最大", "最长", "最多", "最高")
MARKS = ("?", "吗", "哪", "什么", "啥", "怎", "咋", "如何", "是否", "多少", "为何", "么")
HOW = frozenset({"how", "what", "which", "max", "maximum"})
ABLE = frozenset({"can", "could", "possible"})
HOW_MUCH = (("多", "大"), ("多", "少"), ("多", "长"), ("多", "高"), ("几",), ("最", "大"), ("最", "多"), ("最", "长"))
LEFT_OPEN = frozenset({"micro_batch", "seq_len"})
ASKED_OF = {"micro_batch": "max_batch", "seq_len": "max_seq", "concurrency": "max_batch"}
OR_ELSE = frozenset({"or", "是"})
NEEDED = frozenset({"need", "must", "have", "得", "要", "需"})
NEAR = 5
"""Words between a size and what asks how large it may be."""


def _is_of_games(sheet: Sheet) -> bool:
    """Whether a message speaks of games, and not of a model on a card that is for games too."""
    fields = {reading.field for reading in sheet.readings} & SUBSTANCE - WEAK
    named = bool(fields or OF_MODELS & {token.text for token in sheet.tokens} or "max_model" in sheet.questions)
    return sheet.has("cue", value="leisure") and not named


def _goes_on(sheet: Sheet) -> bool:
    """Whether the message begins as one that goes on from another: "and …", "with …", "try …"."""
    word = sheet.word_at(0, "cue") if sheet.tokens else None
    return word is not None and word.value == "goes_on"


def read_questions(sheet: Sheet) -> None:
    """Note what is asked; the words stay free, for "training time" asks something and names a task too."""
    past = 0
    for index in sheet.free_starts():
        idle = asks_nothing(sheet, index)
        word = None if idle else sheet.phrase(index, "question")
        if word and word.end > past and not _is_size_of_card(sheet, index):
            sheet.questions.add(word.value)
            sheet.asked_at[word.value] = index
            past = word.end
        elif not (idle or word) and sheet.tokens[index].text in MARKS_OF_WAYS and (way := asks_how(sheet, index)):
            sheet.questions.add(way)
            past = index + 1
        if (key := sheet.phrase(index, "key")) and key.value in ASKED_OF and _asks_how_large(sheet, key):
            sheet.questions.add(ASKED_OF[key.value])
            sheet.questions.discard("time")
        sheet.against = sheet.against or _sets_against(sheet, index)


def _sets_against(sheet: Sheet, index: int) -> bool:
    """Whether a word sets one thing against another; "=" does before a number or a card: "A100 80G = 2x A100 40G"."""
    word = sheet.phrase(index, "against")
    if word is None or sheet.tokens[index].text != "=":
        return word is not None
    behind = sheet.tokens[index + 1] if index + 1 < len(sheet.tokens) else None
    return behind is not None and (behind.kind == "number" or may_begin_card(behind.text))


def _left_open(sheet: Sheet) -> list[str]:
    """The batch or length that is named without a number in a message that asks nothing else: "7b lora batch size?"."""
    keys = [key for index in sheet.free_starts() if (key := sheet.phrase(index, "key")) and key.value in LEFT_OPEN]
    read = {reading.field for reading in sheet.readings}
    plain = [key for key in keys if not any(token.text in ":=" for token in sheet.tokens[key.end : key.end + 1])]
    return [key.value for key in plain if key.value not in read and len(sheet.words(key.start, key.end)) > 1][:1]


def _is_size_of_card(sheet: Sheet, index: int) -> bool:
    """Whether the words only say what a number before them is: the "VRAM?" of "with 24g VRAM?"."""
    number = quantities.memory_gb(sheet.tokens, index - 2) if index > 1 else None
    return number is not None and number.end == index and sheet.tokens[index].text == "vram"


def _asks_how_large(sheet: Sheet, key: Word) -> bool:
    """Whether a size without a number is asked for: "longest seq I can do", "batch能开到多大"."""
    texts = [token.text for token in sheet.tokens]
    before, behind = texts[max(0, key.start - 2 * NEAR) : key.start], texts[key.end : key.end + NEAR]
    if any(_is_its_number(sheet, at) for at in range(key.end, min(key.end + NEAR - 2, len(sheet.tokens)))):
        return False
    asked = any(tuple(behind[at : at + len(words)]) == words for at in range(len(behind)) for words in HOW_MUCH)
    able = bool(HOW & set(before[-NEAR:])) and bool(ABLE & set(behind))
    return asked or able or _is_superlative(before, key.value)


def _is_its_number(sheet: Sheet, at: int) -> bool:
    """Whether a plain number stands there, and no size of a model or of a card."""
    plain = sheet.tokens[at].kind == "number"
    return plain and not quantities.billions(sheet.tokens, at) and not quantities.memory_gb(sheet.tokens, at)


def _is_superlative(before: list[str], field: str) -> bool:
    """Whether the words before a key ask for its largest: "largest per device batch", 最大能开多少batch."""
    joined = "".join(word for word in before if "\u3400" <= word[:1] <= "\u9fff")
    of_limits = LARGEST - {"max", "maximum"} if field == "seq_len" else LARGEST  # a max length is a setting
    return bool(of_limits & set(before[-NEAR + 2 :])) or any(word in joined for word in LARGEST_ZH)


def _question(sheet: Sheet, cues: set[str]) -> str | None:
    """The question of the message as the answer knows it."""
    cues = _weighed(sheet, cues)
    named = next((question for question in QUESTION_ORDER if question in cues), None)
    if named is None and sheet.has("rent") and sheet.values("hours") and sheet.values("hardware"):
        return "cost"
    if named is None:
        return next((ASKED_OF[key] for key in _left_open(sheet)), None)
    return ASKED_AS.get(named, named)


def _weighed(sheet: Sheet, cues: set[str]) -> set[str]:
    """The cues without those that mean nothing beside the others."""
    cues = cues | {"compare"} if _alternatives(sheet) else cues - {"compare"}
    if cues & {"need_memory", "usage"} and cues & {"fit", "may"} and sheet.values("hardware"):
        cues = cues - {"need_memory", "usage"}
    if "explain" in cues or ("need_memory" in cues and sheet.has("cue", value="each_card")):
        cues = cues - {"compare"}
    of_a_run = any(reading.field in SUBSTANCE for reading in sheet.readings)
    used = {"advice" if of_a_run else "help"} if "use" in cues else set()
    cues = (cues - {"help"} if of_a_run else cues) | used
    if "price" in cues and _is_of_a_run(sheet, cues):
        cues = cues - {"price"} | {"cost"}
    if "odd" in cues and not cues & {"fit", "may"}:
        timed = sheet.values("hours") and (sheet.values("samples") or sheet.values("epochs"))
        cues = cues | {"time" if timed else "explain"}
    if "diagnose" in cues:
        cues = cues - ({"diagnose"} if _asks_of_another(sheet) else set() if _is_contrasted(sheet) else {"explain"})
    if cues & {"need_memory", "fit"} and not any(sheet.values(amount) for amount in AMOUNTS):
        cues = cues - {"time"}
    return cues


def _alternatives(sheet: Sheet) -> bool:
    """Whether two of something stand against each other; "is it enough, or do I need more" asks whether it fits."""
    several = any(len(sheet.values(name)) > 1 for name in RIVAL_FIELDS)
    enough = bool(sheet.questions & {"fit", "may"}) or _begins_as_question(sheet)
    return sheet.against and several and not (enough and _or_is_needed(sheet))


def _is_of_a_run(sheet: Sheet, cues: set[str]) -> bool:
    """Whether money is asked of a run: of a model, and how much it is trained on or that it costs."""
    named = bool(sheet.values("model") or sheet.values("size"))
    return named and ("cost" in cues or any(sheet.values(amount) for amount in AMOUNTS))


def _asks_of_another(sheet: Sheet) -> bool:
    """Whether it is asked, once a failure was told, if something fits: "OOM on 4. will 8 be enough?"."""
    failed = sheet.asked_at.get("diagnose", -1)
    asks = sheet.text.rstrip(" .!。！").endswith(("?", "吗", "么", "不", "嘛", "没", "不行"))
    again = any(sheet.asked_at.get(name, -1) > failed for name in ("fit", "may"))
    return again and (sheet.has("hope") or (asks and not _is_hoped(sheet)))


def _is_contrasted(sheet: Sheet) -> bool:
    """Whether a failure is held against something else: another model that runs, or what was thought."""
    rivals = ("model", "size", "stage", "method", "micro_batch", "seq_len", "claimed_gb")
    several = any(len(sheet.values(name)) > (name != "claimed_gb") for name in rivals)
    return several or _is_hoped(sheet)


def _is_hoped(sheet: Sheet) -> bool:
    """Whether it says what was thought: "thought it only needs 32GB", 按理应该够."""
    return sheet.has("hoped")


def _or_is_needed(sheet: Sheet) -> bool:
    """Whether an "or" goes on with what would be needed: "or do I need 4", 还是得8张."""
    texts = [token.text for token in sheet.tokens]
    return any(word in OR_ELSE and bool(NEEDED & set(texts[at + 1 : at + 4])) for at, word in enumerate(texts))


def _begins_as_question(sheet: Sheet) -> bool:
    return bool(sheet.tokens) and sheet.tokens[0].text in ("can", "could", "will", "would", "does", "is")


def is_ours(sheet: Sheet, asked: Asked, in_conversation: bool) -> bool:
    """Whether the message is a question about memory rather than talk that happens to hold numbers."""
    if is_command(sheet) and sheet.has("cue", value="command"):
        return True
    fields = {reading.field for reading in sheet.readings} & SUBSTANCE
    if _is_nothing_else(sheet, fields) or _is_of_adapters(sheet, asked):
        return True
    if asked.chatter and not asked.marked and not fields & {"model", "size"}:
        return False
    told = {reading.field for reading in sheet.readings} & (SUBSTANCE | TOLD_LATER)
    if in_conversation and (told or sheet.invalid or asked.question):
        return True
    if not fields and not sheet.invalid:
        return asked.domain and asked.question not in (None, "fit")
    if fields <= WEAK and not _is_told_more(sheet, asked):
        return False
    if "hardware" in fields and (len(fields - WEAK) > 1 or sheet.values("file_gb")):
        return True
    return bool(fields & {"model", "size"}) or asked.marked or bool(sheet.invalid)


def _is_nothing_else(sheet: Sheet, fields: set[str]) -> bool:
    """Whether the whole message is a model, a size or a card: who sends "7b" asks about it."""
    rest = [token for token, taken in zip(sheet.tokens, sheet.taken, strict=True) if not taken and token.kind != "sign"]
    return bool(fields & {"model", "size", "hardware"}) and not rest


def _is_of_adapters(sheet: Sheet, asked: Asked) -> bool:
    """Whether a word occurs that is used of fine-tuning alone, or a closed model with anything asked of it."""
    if asked.chatter:
        return False
    terse = sum(not taken for taken in sheet.taken) <= FEW_WORDS
    methods = set(sheet.values("method")) & {"lora", "dora", "qlora", "galore"}
    closed = bool(sheet.values("closed")) and asked.marked and asked.domain
    return closed or (bool(methods) and (terse or asked.marked or asked.domain))


def _is_told_more(sheet: Sheet, asked: Asked) -> bool:
    """Weak readings (a size, a bare card number) count when something else in the message is about models or cards."""
    hardware = sheet.values("hardware")
    counted = any(one.count or one.memory_gb or (one.gpu and not one.gpu.isdigit()) for one in hardware)
    alone = {reading.field for reading in sheet.readings} <= {"hardware"}
    if alone and all(not one.memory_gb and (one.count or 1) == 1 for one in hardware):  # who took my 3090?
        return asked.domain or asked.question is not None or _begins_as_question(sheet)
    return asked.domain or asked.marked or bool(counted) or any(reading.field == "task" for reading in sheet.readings)
