"""Fetching one file: time-outs, a limit of size, and only when it changed."""

import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from bot.prices.sources import SourceFailed

SECONDS_SILENT, SECONDS_IN_ALL = 10.0, 60.0
MOST_BYTES = 32 * 2**20
CHUNK = 2**16
NOT_MODIFIED = 304
SCHEMES = ("http://", "https://", "file://")


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was fetched, and the mark by which a server knows it."""

    content: bytes
    etag: str


def fetched(url: str, etag: str = "", seconds: float = SECONDS_IN_ALL) -> File | None:
    """The file at an address; None when the server says it is still the one of ``etag``. Raises SourceFailed."""
    if not url.startswith(SCHEMES):
        raise SourceFailed(f"{url} is no http, https or file address")
    headers = {"User-Agent": "vram-bot", **({"If-None-Match": etag} if etag else {})}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is checked above
    try:
        with urllib.request.urlopen(request, timeout=min(SECONDS_SILENT, seconds)) as answer:  # noqa: S310
            return File(_read(answer, url, time.monotonic() + seconds), answer.headers.get("ETag") or "")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == NOT_MODIFIED:
            return None
        raise SourceFailed(f"{url} answered {error.code}") from None
    except (OSError, ValueError) as error:
        raise SourceFailed(f"{url} cannot be read: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    """What went wrong, in words: an address's error holds that of the connection."""
    inner = getattr(error, "reason", error)
    return getattr(inner, "strerror", None) or str(inner)


def _read(answer: object, url: str, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(CHUNK):  # type: ignore[attr-defined] # what has come, not until so much has come
        size += len(part)
        parts.append(part)
        if size > MOST_BYTES:
            raise SourceFailed(f"{url} is larger than {MOST_BYTES // 2**20} MiB")
        if time.monotonic() > until:
            raise SourceFailed(f"{url} sends too slowly")
    return b"".join(parts)
