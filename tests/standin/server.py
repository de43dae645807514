"""The REST side and the life of the stand-in itself."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from . import limits
from .actors import Actor, Interaction
from .gateway import Gateway
from .point import API_VAR, CDN_VAR, GATEWAY_VAR, point_discord_py
from .world import Channel, User, World, iso

ACK_SECONDS, TOKEN_SECONDS = 3.0, 900.0
HEADERS = {"Via": "1.1 standin"}  # discord.py takes a 429 without Via for a network-level ban and gives up


@dataclass
class Fault:
    """What to do to the next matching calls instead of serving them (status 0: cut the connection).

    ``arrives``: the call is served before the connection is cut.
    """

    method: str
    path: re.Pattern[str]
    status: int = 500
    code: int = 0
    retry_after: float = 0.0
    is_global: bool = False
    delay: float = 0.0
    times: int = 1
    arrives: bool = False


@dataclass
class Call:
    method: str
    path: str
    body: Any
    files: dict[str, bytes]
    status: int = 0
    at: float = 0.0


class ApiError(Exception):
    def __init__(self, status: int, code: int, message: str, problems: Sequence[limits.Problem] = ()):
        super().__init__(message)
        self.status, self.body = status, {"code": code, "message": message}
        if problems:
            self.body["errors"] = {}
            for path, kind, text in problems:
                node = self.body["errors"]
                for part in path.split("."):
                    node = node.setdefault(part, {})
                node.setdefault("_errors", []).append({"code": kind, "message": text})


def bad_form(problems: list[limits.Problem]) -> None:
    if problems:
        raise ApiError(400, 50035, "Invalid Form Body", problems)


class Standin:
    """`async with Standin() as s:` listens on a free port of 127.0.0.1 until the block ends."""

    def __init__(self, world: World | None = None, *, port: int = 0, spec: Any = None, shards: int = 1):
        self.world = world or World()
        self.gateway = Gateway(self)
        self.spec, self.shards, self.port = spec, shards, port
        self.calls: list[Call] = []
        self.spec_errors: list[str] = []
        self.faults: list[Fault] = []
        self.interactions: dict[str, Interaction] = {}
        self.command_writes: dict[str, int] = defaultdict(int)
        self.message_bucket: tuple[int, float] | None = None  # e.g. (5, 5.0): five messages per channel per 5 s
        self._sent: dict[str, deque[float]] = defaultdict(deque)
        self.changed = asyncio.Condition()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_base(self) -> str:
        return f"{self.base}/api/v10"

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/"

    def environ(self) -> dict[str, str]:
        return {API_VAR: self.api_base, GATEWAY_VAR: self.gateway_url, CDN_VAR: self.base}

    def point_discord_py(self) -> None:
        point_discord_py(self.api_base, self.gateway_url, self.base)

    def actor(self, user: User, channel: Channel) -> Actor:
        return Actor(self, user, channel)

    def fail(self, method: str, path: str, **how: Any) -> Fault:
        fault = Fault(method, re.compile(path), **how)
        self.faults.append(fault)
        return fault

    def sent(self, method: str, path: str) -> list[Call]:
        return [c for c in self.calls if c.method == method and re.search(path, c.path)]

    async def until(self, condition: Any, timeout: float = 5) -> Any:
        """Waits until the condition holds, looking again after each call the bot makes."""
        async with asyncio.timeout(timeout), self.changed:
            while not (value := condition()):
                await self.changed.wait()
            return value

    async def __aenter__(self) -> Standin:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_get("/", self.gateway.handle)
        app.router.add_get("/attachments/{id}/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.*}", self._api)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    # plumbing -----------------------------------------------------------------------------

    async def _file(self, request: web.Request) -> web.Response:
        content = self.world.files.get(request.match_info["id"])
        return web.Response(body=content) if content is not None else web.Response(status=404)

    async def _read(self, request: web.Request) -> tuple[Any, dict[str, bytes]]:
        if request.content_type != "multipart/form-data":
            raw = await request.read()
            return (json.loads(raw) if raw else None), {}
        body, files = {}, {}
        async for part in await request.multipart():
            if part.name == "payload_json":
                body = json.loads(await part.text())
            else:
                files[part.filename] = bytes(await part.read())
        return body, files

    async def _api(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.match_info["path"]
        body, files = await self._read(request)
        call = Call(request.method, path, body, files, at=time.monotonic())
        headers = dict(HEADERS)
        try:
            await self._apply_faults(call, request, headers)
            if self.spec and body is not None:
                self.spec_errors += self.spec.check(call.method, path, body)
            status, answer = await self._serve(call, request, headers)
            self._cut_after(call, request)
        except ApiError as error:
            status, answer = error.status, error.body
        call.status = status
        self.calls.append(call)
        async with self.changed:
            self.changed.notify_all()
        if answer is None:
            return web.Response(status=204, headers=headers)
        headers["Content-Type"] = "application/json"  # exactly so: discord.py compares the whole header
        return web.Response(body=json.dumps(answer).encode(), status=status, headers=headers)

    async def _apply_faults(self, call: Call, request: web.Request, headers: dict[str, str]) -> None:
        for fault in self.faults:
            if fault.times > 0 and fault.method == call.method and fault.path.search(call.path):
                if fault.arrives:
                    continue
                fault.times -= 1
                if fault.delay:
                    await asyncio.sleep(fault.delay)
                if fault.status == 0:
                    request.transport.abort()
                    raise ApiError(500, 0, "cut")
                if fault.status == 429:
                    self._limited(headers, fault.retry_after, fault.is_global)
                if fault.status >= 400:
                    raise ApiError(fault.status, fault.code, "injected")

    def _cut_after(self, call: Call, request: web.Request) -> None:
        for fault in self.faults:
            if fault.arrives and fault.times > 0 and fault.method == call.method and fault.path.search(call.path):
                fault.times -= 1
                request.transport.abort()

    def _limited(self, headers: dict[str, str], retry_after: float, is_global: bool = False) -> None:
        headers |= {"Retry-After": str(retry_after), "X-RateLimit-Scope": "global" if is_global else "user"}
        error = ApiError(429, 0, "You are being rate limited.")
        error.body = {"message": "You are being rate limited.", "retry_after": retry_after, "global": is_global}
        raise error

    def _take_bucket(self, channel_id: str, headers: dict[str, str]) -> None:
        if not self.message_bucket:
            return
        limit, window = self.message_bucket
        sent, now = self._sent[channel_id], time.monotonic()
        while sent and now - sent[0] >= window:
            sent.popleft()
        reset = window - (now - sent[0]) if sent else window
        if len(sent) >= limit:
            self._limited(headers, reset)
        sent.append(now)
        headers |= {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(limit - len(sent)),
            "X-RateLimit-Reset-After": f"{reset:.3f}",
            "X-RateLimit-Reset": f"{time.time() + reset:.3f}",
            "X-RateLimit-Bucket": "messages",
        }

    # routes -------------------------------------------------------------------------------

    async def _serve(self, call: Call, request: web.Request, headers: dict[str, str]) -> tuple[int, Any]:  # noqa: C901 - one case a route
        match call.method, *call.path.strip("/").split("/"):
            case "POST", "interactions", ident, token, "callback":
                return await self._callback(self._interaction(token, ident), call)
            case "POST", "webhooks", _, token:
                return 200, await self._followup(self._interaction(token), call)
            case method, "webhooks", _, token, "messages", ident:
                return await self._edit_followup(self._interaction(token), method, ident, call)
        if request.headers.get("Authorization") != f"Bot {self.world.token}":
            raise ApiError(401, 0, "401: Unauthorized")
        match call.method, *call.path.strip("/").split("/"):
            case "GET", "users", "@me":
                return 200, self.world.bot.payload() | {"verified": True, "mfa_enabled": False}
            case "GET", "users", ident:
                return 200, self._known(self.world.users, ident, 10013, "User").payload()
            case "POST", "users", "@me", "channels":
                user = self._known(self.world.users, str(call.body["recipient_id"]), 10013, "User")
                return 200, self.world.dm(user).payload()
            case "GET", "oauth2", "applications", "@me":
                return 200, self._application()
            case "GET", "gateway", "bot":
                left = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
                return 200, {"url": self.gateway_url, "shards": self.shards, "session_start_limit": left}
            case method, "applications", _, "commands":
                return self._commands("", method, call.body)
            case method, "applications", _, "guilds", guild_id, "commands":
                return self._commands(guild_id, method, call.body)
            case "GET", "guilds", ident:
                return 200, self.world.guild_payload(self._known(self.world.guilds, ident, 10004, "Guild"))
            case "GET", "guilds", ident, "members", user_id:
                guild = self._known(self.world.guilds, ident, 10004, "Guild")
                return 200, self.world.member_payload(guild, self._known(guild.members, user_id, 10007, "Member"))
            case "GET", "channels", ident:
                return 200, self._known(self.world.channels, ident, 10003, "Channel").payload()
            case "POST", "channels", ident, "typing":
                return 204, None
            case "POST", "channels", ident, "messages":
                return 200, await self._create_message(ident, call, headers)
            case "GET", "channels", ident, "messages":
                channel = self._known(self.world.channels, ident, 10003, "Channel")
                return 200, self._history(channel, request.query)
            case method, "channels", ident, "messages", message_id:
                return await self._message(method, ident, message_id, call)
        raise ApiError(404, 0, f"stand-in has no route {call.method} {call.path}")

    @staticmethod
    def _known(where: dict[str, Any], key: str, code: int, what: str) -> Any:
        if key not in where:
            raise ApiError(404, code, f"Unknown {what}")
        return where[key]

    def _application(self) -> dict[str, Any]:
        bot = self.world.bot
        return {
            "id": self.world.application_id,
            "name": bot.name,
            "icon": None,
            "description": "",
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "00" * 32,
            "owner": bot.payload(),
            "team": None,
            "summary": "",
            "flags": 1 << 18 | 1 << 14,
            "approximate_guild_count": len(self.world.guilds),
        }

    def _commands(self, scope: str, method: str, body: Any) -> tuple[int, Any]:
        known = self.world.commands.setdefault(scope, [])
        if method == "GET":
            return 200, known
        wanted = body if method == "PUT" else [c for c in known if c["name"] != body["name"]] + [body]
        bad_form(limits.check_commands(wanted))
        old = {(c.get("type", 1), c["name"]): c for c in known}
        fresh = []
        for command in wanted:
            before = old.get((command.get("type", 1), command["name"]))
            self.command_writes[scope] += before is None
            ident = before["id"] if before else self.world.snowflake()
            fresh.append(
                {"type": 1, "description": "", "options": [], "default_member_permissions": None, "nsfw": False}
                | command
                | {"id": ident, "application_id": self.world.application_id, "version": self.world.snowflake()}
            )
        self.world.commands[scope] = fresh
        return 200, fresh if method == "PUT" else fresh[-1]

    # messages -----------------------------------------------------------------------------

    def _attach(self, call: Call, message: dict[str, Any]) -> None:
        """Stores uploads, links them, and rewrites attachment:// addresses to served ones."""
        described = {a.get("filename"): a for a in (call.body or {}).get("attachments") or []}
        links = {}
        for name, content in call.files.items():
            ident, url = self.world.file_url(self.base, name, content)
            links[f"attachment://{name}"] = url
            message["attachments"].append(
                {
                    "id": ident,
                    "filename": name,
                    "size": len(content),
                    "url": url,
                    "proxy_url": url,
                    "description": described.get(name, {}).get("description"),
                }
            )
        for component in limits.walk(message["components"]):
            for item in [*(component.get("items") or []), component]:
                media = item.get("media") or item.get("file")
                if media and media.get("url") in links:
                    media["url"] = links[media["url"]]
        for number, component in enumerate(limits.walk(message["components"]), 1):
            component.setdefault("id", number)

    def _check_files(self, call: Call) -> None:
        if any(len(content) > limits.FILE_MAX for content in call.files.values()):
            raise ApiError(413, 40005, "Request entity too large")

    @staticmethod
    def _history(channel: Channel, query: Any) -> list[dict[str, Any]]:
        """Messages of a channel, the newest first; after an id the oldest of those after it."""
        after, most = int(query.get("after", 0)), int(query.get("limit", 50))
        found = sorted((one for one in channel.messages.values() if int(one["id"]) > after), key=lambda m: int(m["id"]))
        return (found[:most] if "after" in query else found[-most:])[::-1]

    @staticmethod
    def _same_nonce(channel: Channel, body: dict[str, Any]) -> dict[str, Any] | None:
        """The bot's own message with this nonce; Discord keeps nonces for some minutes."""
        nonce = body.get("nonce") if body.get("enforce_nonce") else None
        return next((one for one in channel.messages.values() if nonce and one.get("nonce") == nonce), None)

    async def _create_message(self, channel_id: str, call: Call, headers: dict[str, str]) -> dict[str, Any]:
        channel = self._known(self.world.channels, channel_id, 10003, "Channel")
        if not channel.bot_may:
            raise ApiError(403, 50013, "Missing Permissions")
        self._take_bucket(channel_id, headers)
        self._check_files(call)
        bad_form(limits.check_message(call.body, list(call.files)))
        if known := self._same_nonce(channel, call.body):
            return known
        reference = call.body.get("message_reference")
        replied = channel.messages.get(str(reference["message_id"])) if reference else None
        extra: dict[str, Any] = {"nonce": call.body.get("nonce")}
        if replied:
            extra |= {"type": 19, "message_reference": reference, "referenced_message": replied}
        return await self._publish(channel, call, replied["author"]["id"] if replied else None, extra)

    async def _publish(
        self,
        channel: Channel,
        call: Call,
        reply_author: str | None,
        extra: dict[str, Any],
        *,
        seen_by: str | None = None,
    ) -> dict[str, Any]:
        body = call.body or {}
        message = self.world.message(channel, self.world.bot, body, **extra)
        self._attach(call, message)
        self._note_pings(message, body, reply_author)
        message["_seen_by"] = seen_by
        if seen_by is None:
            await self.gateway.emit("MESSAGE_CREATE", self.event_payload(channel, message), channel.guild_id)
        return message

    @staticmethod
    def _note_pings(message: dict[str, Any], body: dict[str, Any], reply_author: str | None) -> None:
        text = "\n".join([message["content"], *(c.get("content") or "" for c in limits.walk(message["components"]))])
        message["_pings"] = sorted(limits.pings(text, body.get("allowed_mentions"), reply_author))

    def event_payload(self, channel: Channel, message: dict[str, Any]) -> dict[str, Any]:
        if channel.guild_id is None:
            return dict(message)
        guild = self.world.guilds[channel.guild_id]
        member = self.world.member_payload(guild, self.world.users[message["author"]["id"]])
        return message | {"guild_id": guild.id, "member": {k: v for k, v in member.items() if k != "user"}}

    async def _message(self, method: str, channel_id: str, message_id: str, call: Call) -> tuple[int, Any]:
        channel = self._known(self.world.channels, channel_id, 10003, "Channel")
        message = self._known(channel.messages, message_id, 10008, "Message")
        return await self._change(method, channel, message, call)

    async def _change(self, method: str, channel: Channel, message: dict[str, Any], call: Call) -> tuple[int, Any]:
        if method == "DELETE":
            del channel.messages[message["id"]]
            await self.gateway.emit(
                "MESSAGE_DELETE",
                {"id": message["id"], "channel_id": channel.id, "guild_id": channel.guild_id},
                channel.guild_id,
            )
            return 204, None
        if method == "PATCH":
            self._check_files(call)
            body = call.body or {}
            kept = [a["filename"] for a in message["attachments"]]
            bad_form(
                limits.check_message(
                    body | {"flags": (body.get("flags") or 0) | message["flags"]}, [*kept, *call.files], partial=True
                )
            )
            message |= {
                k: v or ([] if k != "content" else "")
                for k, v in body.items()
                if k in ("content", "embeds", "components")
            }
            message["flags"] |= body.get("flags") or 0
            message["edited_timestamp"] = iso(self.world.now())
            self._attach(call, message)
        return 200, message

    # interactions -------------------------------------------------------------------------

    def _interaction(self, token: str, ident: str | None = None) -> Interaction:
        interaction = self.interactions.get(token)
        if interaction is None or (ident and interaction.id != ident):
            raise ApiError(404, 10062 if ident else 10015, "Unknown interaction" if ident else "Unknown Webhook")
        return interaction

    async def _callback(self, interaction: Interaction, call: Call) -> tuple[int, Any]:
        body, kind = call.body, call.body["type"]
        data = body.get("data") or {}
        if interaction.kind is not None:
            raise ApiError(400, 40060, "Interaction has already been acknowledged.")
        if self.world.now() - interaction.created > ACK_SECONDS:
            raise ApiError(404, 10062, "Unknown interaction")
        result: dict[str, Any] = {"id": interaction.id, "type": interaction.type}
        resource: dict[str, Any] = {"type": kind}
        if kind == 8:
            bad_form(limits.check_choices(data.get("choices") or []))
            interaction.choices = data.get("choices") or []
        elif kind == 9:
            interaction.modal = data
        elif kind in (4, 5):
            interaction.ephemeral = bool((data.get("flags") or 0) & limits.FLAG_EPHEMERAL)
            if kind == 4:
                self._check_files(call)
                bad_form(limits.check_message(data, list(call.files)))
            call_data = Call(call.method, call.path, data, call.files)
            loading = {"flags": (data.get("flags") or 0) | 1 << 7} if kind == 5 else {}
            message = await self._respond(interaction, call_data, loading)
            resource["message"] = message
            result |= {
                "response_message_id": message["id"],
                "response_message_loading": kind == 5,
                "response_message_ephemeral": interaction.ephemeral,
            }
        elif kind == 7:
            call_data = Call(call.method, call.path, data, call.files)
            _, resource["message"] = await self._change("PATCH", interaction.channel, interaction.message, call_data)
        interaction.kind = kind
        interaction.acknowledged_after = self.world.now() - interaction.created
        return 200, {"interaction": result, "resource": resource}

    async def _respond(self, interaction: Interaction, call: Call, extra: dict[str, Any]) -> dict[str, Any]:
        meta = {
            "id": interaction.id,
            "type": interaction.type,
            "user": interaction.user.payload(),
            "authorizing_integration_owners": {},
        }
        extra = {
            "webhook_id": self.world.application_id,
            "application_id": self.world.application_id,
            "interaction_metadata": meta,
            "type": 20 if interaction.type == 2 else 0,
        } | extra
        seen_by = interaction.user.id if interaction.ephemeral else None
        message = await self._publish(interaction.channel, call, None, extra, seen_by=seen_by)
        interaction.messages.append(message)
        return message

    def _check_token(self, interaction: Interaction) -> None:
        if self.world.now() - interaction.created > TOKEN_SECONDS:
            raise ApiError(401, 50027, "Invalid Webhook Token")
        if interaction.kind is None:
            raise ApiError(404, 10015, "Unknown Webhook")

    async def _followup(self, interaction: Interaction, call: Call) -> dict[str, Any]:
        self._check_token(interaction)
        self._check_files(call)
        bad_form(limits.check_message(call.body, list(call.files)))
        first = interaction.messages[0] if interaction.messages else None
        if first and first["flags"] & 1 << 7:  # the first follow-up fills the "thinking" message in
            first["flags"] &= ~(1 << 7)
            await self._change("PATCH", interaction.channel, first, call)
            self._note_pings(first, call.body, None)
            return first
        interaction.ephemeral = bool((call.body.get("flags") or 0) & limits.FLAG_EPHEMERAL)
        return await self._respond(interaction, call, {})

    async def _edit_followup(self, interaction: Interaction, method: str, ident: str, call: Call) -> tuple[int, Any]:
        self._check_token(interaction)
        original = interaction.messages[0] if interaction.messages else interaction.message
        message = original if ident == "@original" else interaction.channel.messages.get(ident)
        if message is None:
            raise ApiError(404, 10008, "Unknown Message")
        message["flags"] &= ~(1 << 7)
        return await self._change(method, interaction.channel, message, call)
