"""A small OpenAI-compatible server on loopback that answers from a script, and keeps what it was sent."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[dict[str, Any]], dict[str, Any]]


def says(text: str) -> Reply:
    return lambda _: {"role": "assistant", "content": text}


def calls(name: str, arguments: Any) -> Reply:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": text}}
    return lambda _: {"role": "assistant", "content": None, "tool_calls": [call]}


class Endpoint:
    """Its address, and the requests in order."""

    def __init__(self, address: str, requests: list[dict[str, Any]], keys: list[str]) -> None:
        self.address, self.requests, self.keys = address, requests, keys


@contextmanager
def endpoint(*replies: Reply, status: int = 200, delay: float = 0) -> Iterator[Endpoint]:
    """A server that gives one reply after the other, the last for ever."""
    requests: list[dict[str, Any]] = []
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            keys.append(self.headers.get("Authorization", ""))
            stop.wait(delay)
            message = replies[min(len(requests), len(replies)) - 1](body)
            data = json.dumps(_completion(body["model"], message) if status == 200 else {"error": {"message": "no"}})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data.encode())))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_: Any) -> None:
            pass

    stop = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_port}/v1", requests, keys)
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(model: str, message: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": int(time.time()), "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }  # fmt: skip
