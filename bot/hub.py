"""Models that the catalogue lacks, read from the model hub: their config and the size of their weights, nothing else.

Files are kept in a cache folder that the caller names, so that a second question needs no network. The hub's address
is the library's own setting (``HF_ENDPOINT``) or ``endpoint``.
"""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from estimator.catalogue.models import ModelMatch, find_model, total_parameters
from estimator.errors import EstimatorError

Found = TypeVar("Found")

REPO_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_BYTES = {CONFIG: 2 * 2**20, INDEX: 32 * 2**20}
"""Largest files that are read; real ones have kilobytes and, for the largest index, some megabytes."""
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
CLOSE = 0.02
"""A count this near to the stored bytes is the stored model; tied heads and buffers make up the rest."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model read from the hub; ``weights_bytes`` is the size of its safetensors, None where there are none."""

    match: ModelMatch
    weights_bytes: int | None
    config: dict[str, Any]


class _Missing(Exception):
    """The repository has no such file."""


def is_repo_id(name: str) -> bool:
    """Whether ``name`` is spelled like a hub id: two plain words with a slash, no dots that climb."""
    return REPO_ID.fullmatch(name) is not None and ".." not in name and "--" not in name


def fetch_model(name: str, cache: Path, endpoint: str | None = None, timeout: float = 15.0) -> HubModel:
    """Reads a model by its hub id; an ``EstimatorError`` says what to paste when that is not possible.

    ``timeout`` bounds each request and, four times that, the whole.
    """
    repo_id = name.strip()
    if not is_repo_id(repo_id):
        raise _refused(
            f"{repo_id[:80]!r} is not a hub id such as org/name", f"{repo_id[:80]!r} 不是 org/name 形式的模型名"
        )
    reader = _Reader(repo_id, cache, endpoint, timeout)
    return _within(4 * timeout, lambda: _read(reader))


def _read(reader: "_Reader") -> HubModel:
    try:
        config = reader.json(CONFIG)
    except _Missing:
        raise _refused(f"{reader.repo_id} has no config.json", f"{reader.repo_id} 没有 config.json") from None
    match = find_model(config)
    stored = reader.weights_bytes()
    return HubModel(match._replace(id=reader.repo_id, **_checked(match, stored)), stored, config)


def _checked(match: ModelMatch, stored: int | None) -> dict[str, Any]:
    """The note and the check of a count against the bytes of the stored weights."""
    source = f"read from the hub; {match.note}" if match.note else "read from the hub"
    unit = DTYPE_BYTES.get(match.default_dtype or "")
    if stored is None or unit is None or match.weight_format:
        return {"note": source, "note_zh": "已从模型库读取"}
    counted = total_parameters(match.architecture) * unit
    if abs(stored - counted) <= CLOSE * stored:
        return {"note": source, "note_zh": "已从模型库读取", "params_check": f"within {CLOSE:.0%} of the stored bytes"}
    return {
        "note": f"{source}; the stored weights have {stored:,} bytes, the count gives {counted:,}",
        "note_zh": f"已从模型库读取;权重文件 {stored:,} 字节,计算为 {counted:,} 字节",
        "confidence": "C",
    }


class _Reader:
    """The few files of one repository, from the cache folder or from the hub."""

    def __init__(self, repo_id: str, cache: Path, endpoint: str | None, timeout: float) -> None:
        self.repo_id = repo_id
        self.cache = cache
        self.endpoint = endpoint
        self.timeout = timeout

    def json(self, filename: str) -> dict[str, Any]:
        """A JSON object of the repository."""
        path = self._path(filename)
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise _refused(
                f"{filename} of {self.repo_id} is not a JSON object", f"{self.repo_id} 的 {filename} 不是 JSON 对象"
            )
        return found

    def weights_bytes(self) -> int | None:
        """Bytes of the safetensors: as the index sums them, or as the only file has them."""
        try:
            total = self.json(INDEX).get("metadata", {}).get("total_size")
            return int(total) if isinstance(total, int | float) else None
        except _Missing:
            pass
        try:
            return self._size(SINGLE)
        except _Missing:
            return None

    def _path(self, filename: str) -> Path:
        # Imported late: the library takes longer to load than most answers take to make.
        from huggingface_hub import hf_hub_download, try_to_load_from_cache

        cached = try_to_load_from_cache(self.repo_id, filename, cache_dir=self.cache)
        if isinstance(cached, str):
            return Path(cached)
        size = self._size(filename)
        if size > MAX_BYTES[filename]:
            raise _refused(
                f"{filename} of {self.repo_id} has {size:,} bytes, more than the {MAX_BYTES[filename]:,} that are read",
                f"{self.repo_id} 的 {filename} 过大({size:,} 字节)",
            )
        return Path(
            self._asked(
                lambda: hf_hub_download(
                    self.repo_id, filename, cache_dir=self.cache, endpoint=self.endpoint, etag_timeout=self.timeout
                )
            )
        )

    def _size(self, filename: str) -> int:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        url = hf_hub_url(self.repo_id, filename, endpoint=self.endpoint)
        return self._asked(lambda: get_hf_file_metadata(url, timeout=self.timeout, endpoint=self.endpoint)).size or 0

    def _asked(self, request: Callable[[], Found]) -> Found:
        """A request to the hub, its failures said in one sentence."""
        from huggingface_hub import errors

        try:
            return request()
        except (errors.GatedRepoError, errors.RepositoryNotFoundError) as error:
            raise _closed(self.repo_id) from error
        except errors.LocalEntryNotFoundError as error:
            raise _offline(self.repo_id) from error
        except errors.EntryNotFoundError as error:
            raise _Missing(filename_of(error)) from error
        except Exception as error:
            # The library lets errors of two HTTP clients, of the file system and of its own through.
            raise _offline(self.repo_id) from error


def filename_of(error: Exception) -> str:
    """The first line of a library's message."""
    return str(error).split("\n", 1)[0][:200]


def _within(seconds: float, work: Callable[[], Found]) -> Found:
    """The result of ``work``, or a refusal when it takes longer; a stalled request ends with its own time-out."""
    results: list[Found] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="hub", daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise _refused("the model hub did not answer in time", "模型库未及时响应")
    return results[0]


def _closed(repo_id: str) -> EstimatorError:
    return _refused(f"{repo_id} is not on the model hub, or needs permission", f"模型库中没有 {repo_id},或需要授权")


def _offline(repo_id: str) -> EstimatorError:
    return _refused(
        f"{repo_id} is not in the catalogue and the model hub cannot be reached",
        f"目录中没有 {repo_id},且无法连接模型库",
    )


def _refused(message: str, message_zh: str) -> EstimatorError:
    return EstimatorError(
        f"{message}; paste its config.json or name a model of the same size",
        f"{message_zh};请粘贴它的 config.json,或给出同等规模的模型",
        field="model",
    )
