"""belino mcp: a conversation's tools for any MCP client, over stdio.

A relay: each line the client writes goes to the running gateway's /mcp, each answer comes back as a line. It knows no
MCP beyond that, so it starts at once and works across restarts of the gateway.
"""

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from io import TextIOWrapper
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any, TextIO

from belino.cli import OK
from belino.cli.client import needed_gateway, no_conversation
from belino.cli.command import seconds_up_to
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.storage.home import Home

AT_ONCE = 8
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
    known = {each["channel"] for each in needed_gateway(home).get("/api/channels")["channels"]}
    if str(conversation.whole_channel) not in known:
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

    def serve(self, lines: TextIO) -> None:
        """Run until the client closes its end; pending requests are answered first."""
        if isinstance(lines, TextIOWrapper):
            lines.reconfigure(encoding="utf-8", errors="replace")  # required by MCP, whatever the locale is
        with ThreadPoolExecutor(AT_ONCE) as pool:
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
        try:
            answer = self._ask(asked)
        except BelinoError as error:
            answer = _error(asked.get("id"), UNAVAILABLE, str(error))
        if "id" in asked and "method" in asked:
            self._tell(answer if isinstance(answer, dict) else _error(asked["id"], UNAVAILABLE, "no answer came"))

    def _ask(self, asked: Mapping[str, Any]) -> Any:
        headers = {"X-Belino-Conversation": str(self._conversation)}
        if self._version is not None:
            headers["MCP-Protocol-Version"] = self._version
        answer = needed_gateway(self._home).relay("/mcp", asked, headers=headers, seconds=ANSWER_SECONDS)
        if asked.get("method") == "initialize" and isinstance(answer, dict):
            self._version = answer.get("result", {}).get("protocolVersion")
        return self._located(answer)

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


def _error(name: object, code: int, says: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": says}}
