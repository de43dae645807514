"""Versions of packages that a message names: "vllm 0.11", "transformers==4.45.2", "torch 2.4 cu121"."""

from bot.intake.sheet import Sheet

STACK = {
    "vllm": "vllm", "transformers": "transformers", "trl": "trl", "peft": "peft", "deepspeed": "deepspeed",
    "torch": "torch", "pytorch": "torch", "bitsandbytes": "bitsandbytes", "bnb": "bitsandbytes",
}  # fmt: skip
"""Packages whose version changes what a run needs, under the names of ``Run.stack``."""
OTHERS = frozenset({"rocm", "cuda", "python", "driver", "ubuntu", "sglang", "ollama", "unsloth", "axolotl",
                    "accelerate", "tgi", "llamafactory", "cann", "triton", "xformers", "py", "tensorrt"})  # fmt: skip
"""Those whose version is read over, lest it count something."""
BETWEEN = frozenset({"v", "version", "ver", "=", "-", "@", "版", "本", "是", ":", "(", "~", ">"})
NOT_BEHIND = frozenset({"util", "utilization", "utilisation", "gpu", "b", "g", "gb", "k", "%", "h", "hours", "bpw"})
"""Words behind a number that make it another's: "vllm 0.9 gpu util"."""


def read_versions(sheet: Sheet) -> None:
    """Note the versions behind the names of packages; the name stays free for what else it says."""
    for index in sheet.free_starts():
        name = sheet.tokens[index].text
        if name in STACK or name in OTHERS:
            _read_version(sheet, name, index + 1)


def _read_version(sheet: Sheet, name: str, at: int) -> None:
    tokens = sheet.tokens
    while at < len(tokens) and tokens[at].text in BETWEEN:
        at += 1
    if at >= len(tokens) or tokens[at].kind != "number" or "." not in tokens[at].text:
        return
    end = at + 1
    while end + 1 < len(tokens) and tokens[end].text == "." and tokens[end].glued and tokens[end + 1].kind == "number":
        end += 2
    if end == at + 1 and end < len(tokens) and tokens[end].text in NOT_BEHIND:
        return
    if name in STACK:
        sheet.read("version", (STACK[name], sheet.words(at, end)), at, end, f"the version of {STACK[name]}")
    else:
        sheet.take(at, end)
