"""Tool access of running turns: a token opens the tools of one turn over MCP, until that turn ends.

Tokens are only in memory: after a crash, a program that outlived the gateway can reach nothing.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from belino.domain.media import Block, FileBlock
from belino.domain.message import ConversationKey
from belino.domain.turn import ToolAddress, Toolbox, ToolSpec

PATH = "/mcp/turn"
TOKEN_BYTES = 32


class ToolAccess:
    """The tools of running turns, by token."""

    def __init__(self) -> None:
        self._url = ""
        self._public_url = ""
        self._open: dict[bytes, tuple[ConversationKey, Toolbox]] = {}

    def serve_at(self, url: str, public_url: str | None) -> None:
        """The server's addresses, once it listens."""
        self._url = f"{url.rstrip('/')}{PATH}"
        self._public_url = f"{public_url.rstrip('/')}{PATH}" if public_url else self._url

    @contextmanager
    def open(self, conversation: ConversationKey, toolbox: Toolbox) -> Iterator[ToolAddress | None]:
        """An address and token for these tools, revoked at the end; None if no server runs."""
        if not self._url:
            yield None
            return
        token = secrets.token_urlsafe(TOKEN_BYTES)
        key = _digest(token)
        self._open[key] = (conversation, toolbox)
        try:
            yield ToolAddress(url=self._url, public_url=self._public_url, token=token)
        finally:
            del self._open[key]

    def find(self, token: str) -> tuple[ConversationKey, Toolbox] | None:
        """The conversation and tools of a valid token."""
        return self._open.get(_digest(token))


class NamedFiles:
    """A toolbox whose files are named without the path of this machine: they are in the session's folder."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._toolbox.specs

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool."""
        blocks = await self._toolbox.call(name, arguments)
        return tuple(
            replace(block, path=Path(block.path.name)) if isinstance(block, FileBlock) else block for block in blocks
        )


def _digest(token: str) -> bytes:
    # Found by its hash, so that the time of a lookup says nothing about the token.
    return hashlib.sha256(token.encode(errors="replace")).digest()
