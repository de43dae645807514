"""Cutting a message into tokens: numbers, words, single Chinese characters and signs."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Literal, NamedTuple

Kind = Literal["number", "word", "han", "sign"]

MAX_CHARACTERS = 4000
"""A question longer than this is cut: what matters is said before."""

MAX_TOKENS = 240
"""Pieces that are read of a question; the longest real ones have about a hundred."""

LARGEST = 1e18
"""No number of a question is larger; a longer row of digits counts as this, which no field accepts."""

_MENTIONS = re.compile(r"<(?:[@#][!&]?|a?:\w+:)\d+>|@(?:everyone|here)\b")
_LINKS = re.compile(r"https?://[^\s/)\]>]+/?")
_HAN_DIGITS = "零〇一二三四五六七八九"
_NO_DIGIT = f"[{_HAN_DIGITS}十百千万亿]"
_SPELLED_OUT = re.compile(rf"(?<!{_NO_DIGIT})[一二三四五六七八九][{_HAN_DIGITS}]{{3}}(?!{_NO_DIGIT})")
"""Four digits read out one by one, as cards and lengths are: 四零九零, 二零四八."""
_DIGITS = {"〇": "0"} | {digit: str(value) for value, digit in enumerate("零一二三四五六七八九")}
_EXPERTS = re.compile(r"(?<!\d)(8|16) ?[*×] ?(?=\d{1,3} ?[bB]\b)")
"""Mixtures of experts with another sign of multiplication in their names: Mixtral 8*7B."""
_WIDE_COMMA = re.compile(r"(?<=\d)，(?=\d)")
"""A comma of Chinese text stands between two numbers, never inside one: bs1，744G内存."""
_VERSION = re.compile(r"(?i)\b(llama|qwen|gemma|phi|glm|chatglm|internlm|baichuan|yi|falcon)[ _-]*v[ _-]?(?=\d)")
"""Families whose names have no v before the number of their version: llama v2 70b."""
_ESCAPED_DOT = re.compile(r"(?<=\d)___(?=\d)")
"""How ModelScope's cache writes the dot of Qwen2.5."""
_TOKEN = re.compile(
    r"""
    (?P<number>\d{1,3}(?:[,_]\d{3})+(?!\d) | \d+(?:\.\d+)? | (?<![\w.])\.\d+)
    | (?P<word>(?<=\d)[xX](?=[a-zA-Z]{1,6}\d            # 8xH100 is 8, x, H, 100
        |(?i:rtx|gtx|rx|tesla|nvidia|geforce|quadro|titan|amd|radeon|instinct|ascend|gaudi|arc|apple|mac|tpu|dgx|jetson
        |orin|mtt|intel|gpus?|cards?|gb|g)\b)  # 4xRTX 4090 is 4, x, RTX, 4090
              | (?<=\d)[bB](?=[a-zA-Z]{3,})(?!illion)  # 72Bqwen is 72, B, qwen
              | [^\W\d_]+)                           # with the Chinese among it, which is taken apart below
    | (?P<sign>\S)
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """One piece of the message; ``glued`` says that it touches the piece before it."""

    text: str
    kind: Kind
    start: int
    end: int
    glued: bool

    @property
    def number(self) -> float:
        """The value of a number token."""
        return min(float(self.text.replace(",", "").replace("_", "")), LARGEST)


_TRADITIONAL = str.maketrans(
    "顯訓練調參數張塊機長時間錢價買還為麼嗎夠雙單兩萬億條樣個這現報錯滿開關啟設運動環優層問題請幾節點檢並發內電腦換級較對應該會從頭與總當無難試縮減佔給讓雲費貴載學習強獎勵",
    "显训练调参数张块机长时间钱价买还为么吗够双单两万亿条样个这现报错满开关启设运动环优层问题请几节点检并发内电脑换级较对应该会从头与总当无难试缩减占给让云费贵载学习强奖励",
)
_OTHER_WORDS = (
    ("顯示記憶體", "显存"), ("顯示卡", "显卡"), ("顯記憶體", "显存"), ("記憶體", "内存"), ("推論", "推理"),
)  # fmt: skip


def _simplified(text: str) -> str:
    """The text with traditional characters that the lexicon's words have in the simplified form."""
    if text.isascii():
        return text
    for there, here in _OTHER_WORDS:
        text = text.replace(there, here)
    return text.translate(_TRADITIONAL)


def clean(text: str) -> str:
    """The message without mentions and link hosts, full-width forms folded; what follows a host may name a model."""
    folded = _simplified(unicodedata.normalize("NFKC", _WIDE_COMMA.sub(", ", text[:MAX_CHARACTERS])))
    folded = _VERSION.sub(r"\1 ", folded)
    plain = _EXPERTS.sub(r"\1x", _ESCAPED_DOT.sub(".", _LINKS.sub(" ", _MENTIONS.sub(" ", folded))))
    return _SPELLED_OUT.sub(lambda digits: "".join(_DIGITS[one] for one in digits[0]), plain)


def tokenize(text: str) -> list[Token]:
    """The tokens of a cleaned message, lower-cased, in order, as far as it is read."""
    tokens: list[Token] = []
    last = -1
    for kind, start, end in islice(_pieces(text), MAX_TOKENS):
        tokens.append(Token(text[start:end].lower(), kind, start, end, start == last))
        last = end
    return tokens


def _pieces(text: str) -> Iterator[tuple[Kind, int, int]]:
    """Kind, start and end of each token; every Chinese character is one."""
    for match in _TOKEN.finditer(text):
        kind: Kind = match.lastgroup  # type: ignore[assignment]
        if kind != "word" or match.group().isascii():
            yield kind, match.start(), match.end()
            continue
        start = match.start()
        for chinese, letters in groupby(match.group(), _is_chinese):
            end = start + len(list(letters))
            yield from (("han", at, at + 1) for at in range(start, end)) if chinese else (("word", start, end),)
            start = end


def _is_chinese(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff"
