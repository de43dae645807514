"""A model's folder on a disk, or in the cache of a hub, as the name of the model in it."""

import re

from estimator.catalogue import find_model
from estimator.errors import EstimatorError

_LOCAL = re.compile(r"[/~.\\]|[A-Za-z]:[/\\]|models--")
_CACHED = re.compile(r"models--(.+?)--(.+)")


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
    """Whether the estimator knows a name, or one that it is similar to, as those of fine-tunes are: it says so."""
    try:
        find_model(name)
    except EstimatorError:
        return False
    return True
