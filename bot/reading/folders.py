"""A model's folder on a disk, or in the cache of a hub, as the name of the model in it."""

import re

from estimator.catalogue import find_model
from estimator.errors import EstimatorError

_LOCAL = re.compile(r"[/~.\\]|[A-Za-z]:[/\\]|models--")
_CACHED = re.compile(r"models--(.+?)--(.+)")
KNOWN = ("exact", "squeezed", "fuzzy")
"""How a folder's name may be matched; the estimator says it where the name is only similar: somebody's fine-tune."""


def model_of_folder(name: str) -> str:
    """The last of a local path's folders that a model is known by; the path itself where there is none.

    Hugging Face keeps ``org/name`` as ``models--org--name``; ModelScope writes a dot as ``___``.
    """
    if not _LOCAL.match(name):
        return name
    parts = (_unescaped(part) for part in reversed(re.split(r"[/\\]+", name)))
    return next((part for part in parts if any(map(str.isdigit, part)) and _is_known(part)), name)


def _unescaped(folder: str) -> str:
    cached = _CACHED.fullmatch(folder)
    return f"{cached[1]}/{cached[2]}" if cached else folder.replace("___", ".")


def _is_known(name: str) -> bool:
    try:
        return find_model(name).how in KNOWN
    except EstimatorError:
        return False
