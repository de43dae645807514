import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bot.hub import fetch_model, is_repo_id
from estimator.errors import EstimatorError

CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
STORED = 988_065_536


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


class Hub(ThreadingHTTPServer):
    """A hub with a few files, which counts what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}
        self.closed: set[str] = set()
        self.silent = threading.Event()
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """Serves ``/org/name/resolve/main/file`` as the hub does, headers included."""

    server: Hub

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool = False) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.silent.is_set():
            self.server.silent.wait(0)
            self.close_connection = True
            return
        repo, _, file = self.path.lstrip("/").partition("/resolve/main/")
        content = self.server.files.get(f"{repo}/{file}")
        if content is None:
            known = any(name.startswith(f"{repo}/") for name in self.server.files)
            self.send_response(404 if known or repo not in self.server.closed else 401)
            self.send_header("X-Error-Code", "EntryNotFound" if known else "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(self.server.sizes.get(f"{repo}/{file}", len(content))))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_model_is_read_with_its_size(hub: Hub, tmp_path: Path) -> None:
    hub.files["org/new-model/config.json"] = body(CONFIG)
    hub.files["org/new-model/model.safetensors.index.json"] = body({"metadata": {"total_size": STORED}})
    found = fetch_model("org/new-model", tmp_path, hub.address, 5)
    assert (found.match.id, found.match.params_total, found.weights_bytes) == ("org/new-model", 494_032_768, STORED)
    assert "stored bytes" in found.match.params_check


def test_the_size_of_a_single_file_is_taken(hub: Hub, tmp_path: Path) -> None:
    hub.files["org/small/config.json"] = body(CONFIG)
    hub.files["org/small/model.safetensors"] = b""
    hub.sizes["org/small/model.safetensors"] = 2 * STORED
    found = fetch_model("org/small", tmp_path, hub.address, 5)
    assert found.weights_bytes == 2 * STORED
    assert "the count gives" in found.match.note


def test_a_model_without_safetensors_has_no_size(hub: Hub, tmp_path: Path) -> None:
    hub.files["org/bare/config.json"] = body(CONFIG)
    assert fetch_model("org/bare", tmp_path, hub.address, 5).weights_bytes is None


def test_the_second_time_needs_no_network(hub: Hub, tmp_path: Path) -> None:
    hub.files["org/kept/config.json"] = body(CONFIG)
    hub.files["org/kept/model.safetensors.index.json"] = body({"metadata": {"total_size": STORED}})
    first = fetch_model("org/kept", tmp_path, hub.address, 5)
    hub.asked.clear()
    hub.files.clear()
    assert first.weights_bytes == STORED
    assert fetch_model("org/kept", tmp_path, hub.address, 5) == first
    assert hub.asked == []


def test_a_file_that_is_too_large_is_not_read(hub: Hub, tmp_path: Path) -> None:
    hub.files["org/huge/config.json"] = body(CONFIG)
    hub.sizes["org/huge/config.json"] = 10**10
    with pytest.raises(EstimatorError, match="more than"):
        fetch_model("org/huge", tmp_path, hub.address, 5)


@pytest.mark.parametrize("content", [b"[1]", b"{", b"\xff\xfe", body({"model_type": "llama"})])
def test_a_config_that_says_nothing_is_refused(hub: Hub, tmp_path: Path, content: bytes) -> None:
    hub.files["org/broken/config.json"] = content
    with pytest.raises(EstimatorError):
        fetch_model("org/broken", tmp_path, hub.address, 5)


def test_an_unknown_repository_says_what_to_paste(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(EstimatorError, match=r"paste its config\.json") as caught:
        fetch_model("org/none", tmp_path, hub.address, 5)
    assert "config.json" in caught.value.message_zh


def test_a_repository_without_a_config_is_said(hub: Hub, tmp_path: Path) -> None:
    hub.files["org/data/README.md"] = b""
    with pytest.raises(EstimatorError, match=r"has no config\.json"):
        fetch_model("org/data", tmp_path, hub.address, 5)


def test_a_closed_repository_is_said(hub: Hub, tmp_path: Path) -> None:
    hub.closed.add("org/closed")
    with pytest.raises(EstimatorError, match="permission"):
        fetch_model("org/closed", tmp_path, hub.address, 5)


def test_a_hub_that_cannot_be_reached_says_what_to_paste(hub: Hub, tmp_path: Path) -> None:
    hub.silent.set()
    with pytest.raises(EstimatorError, match=r"config\.json"):
        fetch_model("org/model", tmp_path, hub.address, 1)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "a", "a/b/c", "org/..", "org/na me", "", "~/x", "C:\\x"]
)
def test_a_name_is_never_a_path(hub: Hub, tmp_path: Path, name: str) -> None:
    assert not is_repo_id(name)
    with pytest.raises(EstimatorError, match="not a hub id"):
        fetch_model(name, tmp_path, hub.address, 5)
    assert hub.asked == []
    assert list(tmp_path.iterdir()) == []
