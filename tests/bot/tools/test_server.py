"""The tools over MCP, with the SDK's own client: a subprocess over stdio, and HTTP on loopback."""

import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from bot.tools.server import http_app
from bot.tools.shapes import TOOLS

ROOT = Path(__file__).parents[3]
LORA = {"model": "qwen2.5-0.5b", "method": "lora", "gpu": "8GB"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server on a free port of loopback, as ``vram-bot mcp --http`` runs it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        running = uvicorn.Server(uvicorn.Config(http_app("127.0.0.1"), log_level="warning", ws="none"))
        free.listen()
        thread = threading.Thread(target=running.run, kwargs={"sockets": [free]})
        thread.start()
        yield f"http://127.0.0.1:{port}/mcp"
        running.should_exit = True
        thread.join(timeout=10)


@asynccontextmanager
async def over_stdio() -> AsyncIterator[Client]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = StdioServerParameters(command=sys.executable, args=["-m", "bot", "mcp"], env=environment, cwd=str(ROOT))
    async with Client(stdio_client(started)) as client:
        yield client


async def test_a_client_on_stdio_lists_and_calls_the_tools() -> None:
    async with over_stdio() as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        done = await client.call_tool("estimate", {"run": LORA})
        assert not done.is_error
        data = done.structured_content
        assert data["estimates"][0]["fit"]["verdict"] == "fits"
        assert data["text"] == done.content[0].text
        wrong = await client.call_tool("estimate", {"run": {**LORA, "micro_batchs": 2}})
        assert wrong.is_error and "micro_batch" in wrong.content[0].text


async def test_a_client_on_http_gets_the_same_in_chinese(address: str) -> None:
    async with Client(streamable_http_client(address)) as client:
        done = await client.call_tool("estimate", {"run": LORA, "lang": "zh"})
        assert "放得下" in done.content[0].text
        assert done.structured_content["lang"] == "zh"
        missing = await client.call_tool("lookup", {"kind": "gpu", "query": "no such card"})
        assert missing.is_error


async def test_an_unknown_tool_is_refused_with_the_names_that_exist(address: str) -> None:
    async with Client(streamable_http_client(address)) as client:
        done = await client.call_tool("run_shell", {"command": "id"})
        assert done.is_error and "estimate" in done.content[0].text


async def test_another_site_cannot_reach_the_loopback_server(address: str) -> None:
    import httpx2

    async with httpx2.AsyncClient() as web:
        answer = await web.post(address, headers={"Host": "evil.example", "Origin": "http://evil.example"}, json={})
    assert answer.status_code in (403, 421)


async def test_every_tool_says_that_it_changes_nothing(address: str) -> None:
    async with Client(streamable_http_client(address)) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.annotations.read_only_hint and not tool.annotations.destructive_hint
            assert tool.description and "lang" in tool.input_schema["properties"]
