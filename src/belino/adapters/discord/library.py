"""discord.py, as far as belino uses it: the socket of the gateway, without a client around it."""

import asyncio
import json
import logging
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

from discord.errors import ConnectionClosed as Closed
from discord.gateway import DiscordWebSocket
from discord.gateway import ReconnectWebSocket as Reconnect
from discord.utils import _ActiveDecompressionContext as Decompression
from yarl import URL

__all__ = ["COMPRESSION", "Closed", "GatewaySocket", "Reconnect"]

COMPRESSION = Decompression.COMPRESSION_TYPE

# It logs whole events, what people wrote among them; what goes wrong is told by who uses it.
logging.getLogger("discord").setLevel(logging.ERROR)

# The gateway's words for a session that is over: resuming it would end the same way.
SESSION_OVER = frozenset({4007, 4009})
# A line that is silent for longer is dead: beats are answered every forty seconds or so.
SILENCE_SECONDS = 60.0
SILENT_BEATS = 1.5


class GatewaySocket(DiscordWebSocket):
    """One connection. `heard` is what it heard since it was last asked."""

    def __init__(self, opened: Any, *, url: str, token: str, intents: int) -> None:
        super().__init__(opened, loop=asyncio.get_running_loop())
        self._heard: list[dict[str, Any]] = []
        self._connection: Any = SimpleNamespace(_intents=SimpleNamespace(value=intents), _activity=None, _status=None)
        self._discord_parsers: Any = _Anything(self._hear)
        self._initial_identify = True
        self._max_heartbeat_timeout = SILENCE_SECONDS
        self.call_hooks = _nothing
        self.gateway = URL(url)
        self.token = token
        self.shard_id = self.shard_count = None

    def heard(self) -> list[dict[str, Any]]:
        heard, self._heard = self._heard, []
        return heard

    async def received_message(self, msg: Any, /) -> None:
        try:
            unpacked = self._decompressor.decompress(msg) if isinstance(msg, bytes) else msg
            if unpacked is not None:
                await super().received_message(_complete(unpacked))
        except (zlib.error, AttributeError, LookupError, TypeError) as error:
            # What discord.py takes for granted is not there; the same session may well go on from here.
            raise ValueError("the gateway said something unreadable") from error
        if (beats := self._keep_alive) is not None and beats.interval is not None:
            # A gateway may ask for fewer beats: then it is silent for longer, and lives.
            patience = max(SILENCE_SECONDS, beats.interval * SILENT_BEATS)
            self._max_heartbeat_timeout = beats.heartbeat_timeout = patience

    def _can_handle_close(self) -> bool:
        return self.socket.close_code not in SESSION_OVER and super()._can_handle_close()

    def _hear(self, event: str, content: Any) -> None:
        self._heard.append({"t": event, "s": self.sequence, "d": content})


class _Anything(Mapping[str, Callable[[Any], None]]):
    """discord.py looks here for what to do with an event: whatever it is, it is handed on."""

    def __init__(self, hear: Callable[[str, Any], None]) -> None:
        self._hear = hear

    def __getitem__(self, event: str) -> Callable[[Any], None]:
        return partial(self._hear, event)

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


async def _nothing(*_args: object, **_named: object) -> None:
    """No hook of a client's is called."""


def _complete(unpacked: str) -> str:
    """The beginning of a session with everything discord.py takes for granted there; gateways may leave it out."""
    if '"READY"' not in unpacked and '"RESUMED"' not in unpacked:
        return unpacked
    told = json.loads(unpacked)
    if isinstance(told, dict) and told.get("t") in ("READY", "RESUMED"):
        content = told.get("d")
        told["d"] = {"session_id": "", "resume_gateway_url": "", **(content if isinstance(content, dict) else {})}
        told["d"]["resume_gateway_url"] = str(told["d"]["resume_gateway_url"] or "")
    return json.dumps(told)
