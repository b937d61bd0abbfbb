"""belino mcp: a conversation's tools for any MCP client, over stdio.

A relay: each line the client writes goes to the running gateway's /mcp, each answer comes back as a line. It knows no
MCP beyond that, so it starts at once and works across restarts of the gateway.
"""

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from secrets import token_hex
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Any, TextIO

from belino import __version__
from belino.cli import OK
from belino.cli.client import is_locked, needed_gateway, no_conversation, running_gateway
from belino.cli.command import NotRunning, seconds_up_to
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.storage.home import Home

AT_ONCE = 8
LOOK_SECONDS = 1.0
LINE_CHARS = 1024 * 1024
ANSWER_SECONDS = 600.0
# JSON-RPC's error codes for invalid requests, and the first code reserved for servers.
PARSE_ERROR, INVALID_REQUEST, UNAVAILABLE = -32700, -32600, -32000


def mcp_arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--conversation",
        metavar="CONVERSATION",
        help="whose tools they are (platform:account:channel[:thread])",
    )
    which.add_argument(
        "--ipc", type=Path, metavar="DIR", help="inside a container: the conversation's folder ipc/, mounted there"
    )
    parser.add_argument(
        "--channel", action="store_true", help="also push the conversation's messages to the client (Claude Code)"
    )
    parser.add_argument(
        "--wait", type=seconds_up_to(3_600), default=330.0, metavar="SECONDS", help="how long --ipc waits for an answer"
    )


_FILE = re.compile(r"File: incoming/(?P<name>[^/\n]+) \((?P<mime>[^()\n]+)\)")


def run_mcp(args: Namespace) -> int:
    if args.ipc is not None:
        from belino.cli.mcp_ipc import serve_ipc

        return serve_ipc(args.ipc.absolute(), args.wait)
    home = Home.at(args.home)
    conversation = ConversationKey.parse(args.conversation)
    gateway = needed_gateway(home) if args.channel else running_gateway(home)
    if gateway is None:
        print(f"belino: no gateway runs on {home.path}; waiting for one", file=sys.stderr)
    elif str(conversation.whole_channel) not in {each["channel"] for each in gateway.get("/api/channels")["channels"]}:
        raise no_conversation(conversation)
    if args.channel:
        from belino.cli.mcp_channel import ChannelRelay

        ChannelRelay(home, conversation, sys.stdout).serve(sys.stdin)
    else:
        Relay(home, conversation, sys.stdout).serve(sys.stdin)
    return OK


class Relay:
    """Sends lines to the gateway concurrently, and answers to the client one at a time."""

    def __init__(self, home: Home, conversation: ConversationKey, out: TextIO) -> None:
        self._home = home
        self._conversation = conversation
        self._out = out
        self._writing = Lock()
        self._room = BoundedSemaphore(AT_ONCE)
        self._version: str | None = None
        self._cuts: dict[str, Callable[[], None]] = {}
        """Each ends the connection of a request that is being answered; by its id as JSON."""
        self._cancelled: set[str] = set()
        self._waits = False
        """Whether the client was told that no gateway runs."""
        self._ended = Event()
        self._listens = False
        self._name = token_hex(8)
        """Keeps what this client wishes apart from others of the conversation."""
        self._wishes: dict[str, Mapping[str, Any]] = {}
        """What the client asked to be told, for a gateway that is started again."""

    def serve(self, lines: TextIO) -> None:
        """Run until the client closes its end; pending requests are answered first."""
        if isinstance(lines, TextIOWrapper):
            lines.reconfigure(encoding="utf-8", errors="replace")  # required by MCP, whatever the locale is
        Thread(target=self._watch, daemon=True).start()
        with ThreadPoolExecutor(AT_ONCE) as pool, closing_with(self._ended):
            while line := lines.readline(LINE_CHARS + 1):
                if line.strip():
                    self._room.acquire()
                    pool.submit(self._take, line).add_done_callback(lambda _: self._room.release())

    def _take(self, line: str) -> None:
        try:
            asked = json.loads(line)
        except ValueError:
            self._tell(_error(None, PARSE_ERROR, f"not one line of JSON of at most {LINE_CHARS} characters"))
            return
        if not isinstance(asked, dict):
            self._tell(_error(None, INVALID_REQUEST, "a request is one JSON object"))
            return
        if asked.get("method") == "notifications/cancelled":
            self._cancel(asked)
            return
        name = json.dumps(asked.get("id"))
        try:
            answer = self._ask(asked)
        except NotRunning as error:
            answer = self._without_gateway(asked, str(error))
        except BelinoError as error:
            answer = _error(asked.get("id"), UNAVAILABLE, str(error))
        finally:
            self._cuts.pop(name, None)
        if name in self._cancelled:
            self._cancelled.discard(name)  # MCP: a cancelled request gets no answer
        elif "id" in asked and "method" in asked:
            self._tell(answer if isinstance(answer, dict) else _error(asked["id"], UNAVAILABLE, "no answer came"))

    def _ask(self, asked: Mapping[str, Any]) -> Any:
        gateway, name = needed_gateway(self._home), json.dumps(asked.get("id"))
        answer = gateway.relay(
            "/mcp",
            asked,
            headers=self._headers(),
            seconds=ANSWER_SECONDS,
            tell=self._tell,
            opened=lambda cut: self._cuts.__setitem__(name, cut),
        )
        self._found()
        if asked.get("method") == "initialize" and isinstance(answer, dict):
            self._version = answer.get("result", {}).get("protocolVersion")
        self._remember(asked)
        return self._located(answer)

    def _headers(self) -> dict[str, str]:
        headers = {"X-Belino-Conversation": str(self._conversation), "X-Belino-Client": self._name}
        return headers if self._version is None else {**headers, "MCP-Protocol-Version": self._version}

    def _remember(self, asked: Mapping[str, Any]) -> None:
        """Keep what the client wishes to be told, and listen once it has connected in an earlier protocol."""
        match asked:
            case {"method": "notifications/initialized"} if not self._listens:
                self._listens = True
                Thread(target=self._listen, daemon=True).start()
            case {"method": "logging/setLevel"}:
                self._wishes["level"] = asked
            case {"method": "resources/subscribe", "params": {"uri": str(uri)}}:
                self._wishes[uri] = asked
            case {"method": "resources/unsubscribe", "params": {"uri": str(uri)}}:
                self._wishes.pop(uri, None)

    def _listen(self) -> None:
        """Pass on changes of media, also of a gateway that was started again."""
        is_again = False
        while not self._ended.is_set():
            with suppress(BelinoError, ValueError):
                gateway = needed_gateway(self._home)
                for wish in tuple(self._wishes.values()) if is_again else ():
                    gateway.relay("/mcp", wish, headers=self._headers(), seconds=ANSWER_SECONDS, tell=lambda _: None)
                with gateway.opened("GET", "/mcp", accept="text/event-stream", headers=self._headers()) as stream:
                    if is_again:
                        self._tell({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"})
                    is_again = True
                    for line in stream:
                        if line.startswith(b"data: "):
                            self._tell(json.loads(line.removeprefix(b"data: ")))
            self._ended.wait(LOOK_SECONDS)

    def _without_gateway(self, asked: Mapping[str, Any], says: str) -> dict[str, Any]:
        """The answer while no gateway runs: the client connects, finds no tools yet, and every call says why."""
        self._waits = True
        match asked:
            case {"method": "initialize", "params": {"protocolVersion": str(version)}}:
                offers = {"tools": {"listChanged": True}, "resources": {"listChanged": True}}
                about = {"name": "belino", "version": __version__}
                result: dict[str, Any] = {"protocolVersion": version, "capabilities": offers, "serverInfo": about}
                self._version = version
                return _result(asked, {**result, "instructions": says})
            case {"method": "ping"}:
                return _result(asked, {})
            case {"method": "tools/list"}:
                return _result(asked, {"tools": []})
            case {"method": "tools/call"}:
                return _result(asked, {"content": [{"type": "text", "text": says}], "isError": True})
        return _error(asked.get("id"), UNAVAILABLE, says)

    def _found(self) -> None:
        """Tell a client that got no tools while no gateway ran that there are some now."""
        if self._waits:
            self._waits = False
            self._tell({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def _cancel(self, asked: Mapping[str, Any]) -> None:
        name = json.dumps((asked.get("params") or {}).get("requestId"))
        if (cut := self._cuts.get(name)) is not None:
            self._cancelled.add(name)
            cut()  # the gateway cancels what has lost its connection

    def _watch(self) -> None:
        """Look for a gateway while the client waits for one."""
        while not self._ended.wait(LOOK_SECONDS):
            if self._waits and is_locked(self._home) and self._home.run_file.exists():
                self._found()

    def _located(self, answer: Any) -> Any:
        """The answer with the path of a file, which the gateway names relative to the conversation's folder.

        The client is on this machine and may open it.
        """
        match answer:
            case {"result": {"content": [*contents]}}:
                for content in contents:
                    if isinstance(content, dict) and (named := _FILE.fullmatch(str(content.get("text", "")))):
                        path = self._home.incoming(self._conversation) / named["name"]
                        content["text"] = f"File: {path} ({named['mime']})"
        return answer

    def _tell(self, answer: Mapping[str, Any]) -> None:
        with self._writing:
            self._out.write(json.dumps(answer, separators=(",", ":")) + "\n")
            self._out.flush()


def _result(asked: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.get("id"), "result": result}


@contextmanager
def closing_with(ended: Event) -> Iterator[None]:
    """Set the event when the block is left."""
    try:
        yield
    finally:
        ended.set()


def _error(name: object, code: int, says: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": says}}
