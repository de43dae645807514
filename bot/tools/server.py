"""The tools over MCP: a server for any MCP client, over stdio or streamable HTTP. Needs the extra ``mcp``."""

import json
from importlib.metadata import version
from typing import Any

import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette

from bot.answer import Answer
from bot.language import LANGUAGES
from bot.tools.calls import WrongCall, called
from bot.tools.schema import description_of, schema_of
from bot.tools.shapes import TOOLS

INSTRUCTIONS = (
    "Exact answers about GPU memory of language models: training, inference and serving. Every figure is worked out by "
    "a deterministic estimator; repeat figures as they are, with their unit (GiB is 2^30 bytes, GB is 10^9)."
)
LANG = {"type": "string", "enum": list(LANGUAGES), "default": "en", "description": "Language of the text."}
PURE = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
Context = ServerRequestContext[dict[str, Any]]


def server() -> Server[dict[str, Any]]:
    """The server with all tools."""
    return Server(
        "vram-bot",
        version=version("vram-bot"),
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: _input_schema(name) if name in TOOLS else None,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )


async def over_stdio() -> None:
    """Serve one client on standard input and output until it leaves."""
    async with stdio_server() as (incoming, outgoing):
        found = server()
        await found.run(incoming, outgoing, found.create_initialization_options())


def http_app(host: str) -> Starlette:
    """The server at ``/mcp``; on loopback only requests from this machine's own pages and programs are taken."""
    return server().streamable_http_app(host=host, stateless_http=True, json_response=True)


def over_http(host: str, port: int) -> None:
    """Serve clients at ``http://host:port/mcp`` until a signal."""
    import uvicorn

    uvicorn.run(http_app(host), host=host, port=port, log_level="warning", ws="none")


async def _list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=description_of(name), input_schema=_input_schema(name), annotations=PURE)
            for name in TOOLS
        ]
    )


def _input_schema(name: str) -> dict[str, Any]:
    """The tool's arguments and the language of its text."""
    schema = schema_of(name)
    return {**schema, "properties": {**schema["properties"], "lang": LANG}}


async def _call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = dict(params.arguments or {})
    lang = "zh" if arguments.pop("lang", "en") == "zh" else "en"
    try:
        answer = await anyio.to_thread.run_sync(called, params.name, arguments, lang)
    except WrongCall as error:
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)], structured_content=_structured(answer)
    )


def _structured(answer: Answer) -> dict[str, Any]:
    """The answer as data, in the shapes of every surface, without what is empty or of the other language."""
    data = json.loads(answer.model_dump_json(by_alias=True, exclude_none=True, exclude_defaults=True))
    found: dict[str, Any] = _in_language(data, answer.lang)
    return {**found, "lang": answer.lang}


def _in_language(node: Any, lang: str) -> Any:
    if isinstance(node, list):
        return [_in_language(one, lang) for one in node]
    if not isinstance(node, dict):
        return node
    return {key: _in_language(value, lang) for key, value in node.items() if lang == "zh" or not key.endswith("_zh")}
