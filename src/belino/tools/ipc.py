"""IPC bridge: an agent in a container without network calls its tools through files in a folder.

The folder is the only thing that both sides see, and the container may put anything into it. So the gateway opens
everything below a handle of the conversation's folder, follows no link, reads a bounded number of names and bytes, and
writes whole files by renames. What a container does to the folder harms that container only.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from belino.aio.deadline import deadline
from belino.context.json_format import iso_time
from belino.domain.errors import BelinoError, MediaError, MediaNotFound, MediaTooLarge, StoreError, ToolError, place_of
from belino.domain.media import Block, FileBlock, ImageBlock, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import ConversationSummary
from belino.domain.turn import Toolbox, ToolSpec
from belino.media.jail import Jail
from belino.media.session_files import DELETED_ANSWER, IPC, IPC_MEDIA, IPC_RESPONSES, write_response
from belino.storage.disk import on_disk
from belino.tools.media import LIST_MEDIA, LIST_MOST
from belino.tools.sending import SEND_MEDIA
from belino.tools.server import about_tool
from belino.tools.toolbox import FAILED, READING_TOOLS

VERSION = 1
REFS = f"{IPC}/media_refs.json"
REQUESTS = f"{IPC}/requests"
LIST_TOOLS = "tools/list"
"""Asks for the tools themselves; no tool has a name with a slash."""

POLL_SECONDS = 0.2
EXPORT_SECONDS = 1.0
"""The shortest time between two exports of the refs of one conversation, besides those that begin a turn."""
CALL_SECONDS = 300.0
AT_ONCE = 4
"""The calls of one container that run at the same time."""
AT_ONCE_IN_ALL = 32
LOOKED_AT = 256
"""Names that are read of a folder at a time."""
UNREAD = 64
"""Responses that may lie unread; above it, requests wait."""
REQUEST_BYTES = 256 * 1024
RESPONSE_BYTES = 16 * 1024 * 1024
PAGES = 5
"""Pages of refs that are exported, of LIST_MOST each."""

_REQUEST = re.compile(r"([A-Za-z0-9_-]{1,64})\.json")
_BEGUN = re.compile(r"([A-Za-z0-9_-]{1,64})\.begun")
_INTERRUPTED = "belino stopped while this ran; look whether it was done before you ask again"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeTools:
    """Where the bridge gets the tools of a conversation from."""

    of_turn: Callable[[ConversationKey], Toolbox]
    """The tools of the turn that runs there, or those outside a turn."""
    outside: Callable[[ConversationKey], Toolbox]


@dataclass(slots=True)
class _Export:
    """What is known of one conversation's folder."""

    path: Path
    is_stale: bool = True
    written: datetime | None = None
    expires: datetime | None = None
    """When the next ref leaves the export."""
    busy: set[str] = field(default_factory=set)

    def is_due(self, now: datetime) -> bool:
        """Whether the refs must be written now."""
        wanted = self.is_stale or (self.expires is not None and now >= self.expires)
        return wanted and (self.written is None or now - self.written >= timedelta(seconds=EXPORT_SECONDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The names of one look into a folder."""

    requests: tuple[str, ...] = ()
    unread: int = 0
    has_refs: bool = True


class Bridge:
    """Exports refs to containers, and answers their requests."""

    def __init__(
        self,
        tools: BridgeTools,
        *,
        wanted: Callable[[ConversationKey], bool],
        known: Callable[[], Awaitable[Iterable[ConversationSummary]]],
        folder: Callable[[ConversationKey], Path],
        lifetime: Callable[[], timedelta],
        clock: Clock,
    ) -> None:
        self._tools = tools
        self._wanted = wanted
        self._known = known
        self._folder = folder
        """Makes a conversation's folder, with `ipc/` in it."""
        self._lifetime = lifetime
        self._clock = clock
        self._exports: dict[ConversationKey, _Export] = {}
        self._opened = asyncio.Event()
        self._deletions = 0

    async def run(self) -> None:
        """Answer requests until cancelled, starting with those that an earlier run left."""
        with suppress(StoreError):
            for where in [summary.conversation for summary in await self._known()]:
                if self._wanted(where):
                    await self._supervised(self._open(where), where)
        async with asyncio.TaskGroup() as group:
            while True:
                if not self._exports:
                    self._opened.clear()
                    await self._opened.wait()
                await self._look_round(group)
                await self._clock.sleep(POLL_SECONDS)

    async def begin(self, where: ConversationKey) -> None:
        """Make the folder of a conversation whose turn begins, with its refs; nothing without `agent.ipc`."""
        if self._wanted(where):
            await self._supervised(self._begin(where), where)

    def arrived(self, where: ConversationKey) -> None:
        """Export new refs of a channel."""
        for other, export in self._exports.items():
            export.is_stale |= other.whole_channel == where.whole_channel

    def deleted(self) -> None:
        """Export the refs again, and give out nothing that was found before."""
        self._deletions += 1
        for export in self._exports.values():
            export.is_stale = True

    async def _begin(self, where: ConversationKey) -> None:
        await self._open(where)
        await self._export(where, self._exports[where])

    async def _open(self, where: ConversationKey) -> None:
        if where not in self._exports:
            path = await on_disk(self._folder, where)
            self._exports[where] = _Export(path)
            self._opened.set()
        await on_disk(_make_folders, self._exports[where].path)

    async def _look_round(self, group: asyncio.TaskGroup) -> None:
        for where in [where for where in self._exports if not self._wanted(where)]:
            del self._exports[where]
        paths = {where: export.path for where, export in self._exports.items()}
        looks = await asyncio.to_thread(lambda: {where: _look(path) for where, path in paths.items()})
        now = self._clock.now()
        for where, look in looks.items():
            export = self._exports.get(where)
            if export is None:
                continue
            export.is_stale |= not look.has_refs
            if export.is_due(now):
                await self._supervised(self._export(where, export), where)
            for name in sorted(look.requests) if look.unread <= UNREAD else ():
                if not self._start(group, where, export, name):
                    break

    def _start(self, group: asyncio.TaskGroup, where: ConversationKey, export: _Export, name: str) -> bool:
        """Answer a request beside others; False if no more may run now."""
        if name in export.busy:
            return True
        if len(export.busy) >= AT_ONCE or sum(len(each.busy) for each in self._exports.values()) >= AT_ONCE_IN_ALL:
            return False
        export.busy.add(name)
        task = group.create_task(self._supervised(self._take(where, export, name), where))
        task.add_done_callback(lambda _: export.busy.discard(name))
        return True

    async def _supervised(self, work: Awaitable[None], where: ConversationKey) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - one container's folder must not stop the others
            log.warning("the container of %s is not served: %s", where, place_of(error))

    async def _take(self, where: ConversationKey, export: _Export, name: str) -> None:
        if begun := _BEGUN.fullmatch(name):
            await on_disk(_respond, export.path, name, begun[1], {"ok": False, "error": _INTERRUPTED})
            return
        asked = _REQUEST.fullmatch(name)
        if asked is None:
            await on_disk(_discard, export.path, name)
            return
        before = self._deletions
        try:
            request = await on_disk(_read_request, export.path, asked[1])
            if request is None:
                return
            if request.tool not in (*READING_TOOLS, LIST_TOOLS):
                await on_disk(_begin_request, export.path, asked[1])
                name = f"{asked[1]}.begun"
            answer: dict[str, Any] = {"ok": True, "content": await self._content(where, request)}
        except ToolError as error:
            answer = {"ok": False, "error": str(error)}
        except BelinoError as error:
            log.warning("a request of the container of %s failed: %s", where, place_of(error))
            answer = {"ok": False, "error": FAILED}
        await on_disk(_respond, export.path, name, asked[1], answer)
        if self._deletions != before:
            # What was deleted may be in the answer, and its copies may have been removed before this was written.
            await on_disk(write_response, export.path, asked[1], DELETED_ANSWER)

    async def _content(self, where: ConversationKey, request: "_Request") -> list[dict[str, Any]]:
        toolbox = self._tools.of_turn(where)
        if request.tool == LIST_TOOLS:
            return [{"type": "text", "text": json.dumps([_spec(spec) for spec in toolbox.specs])}]
        arguments = dict(request.arguments)
        path = arguments.get("path")
        if request.tool == SEND_MEDIA.name and isinstance(path, str) and path:
            arguments["path"] = f"{IPC_MEDIA}/{path.removeprefix('media/')}"
        try:
            async with deadline(self._clock, CALL_SECONDS):
                blocks = await toolbox.call(request.tool, arguments)
        except TimeoutError:
            raise ToolError(f"the tool did not finish within {CALL_SECONDS:.0f} seconds; ask for less") from None
        return [_wire(block) for block in blocks]

    async def _export(self, where: ConversationKey, export: _Export) -> None:
        now = self._clock.now()
        since, toolbox = now - self._lifetime(), self._tools.outside(where)
        export.is_stale, export.written = False, now
        refs: list[Mapping[str, Any]] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = {"format": "json", "limit": LIST_MOST, "since": iso_time(since), "cursor": cursor}
            (block,) = await toolbox.call(LIST_MEDIA.name, page)
            assert isinstance(block, TextBlock)
            found = json.loads(block.text)
            refs += found["media"]
            if (cursor := found["next_cursor"]) is None:
                break
        oldest = min((datetime.fromisoformat(each["ts"]) for each in refs), default=None)
        export.expires = None if oldest is None else oldest + self._lifetime() + timedelta(seconds=1)
        told = {"version": VERSION, "conversation": str(where), "refs": refs}
        await on_disk(_write, export.path, REFS, told)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    tool: str
    arguments: Mapping[str, object]


def _make_folders(path: Path) -> None:
    with Jail(path) as jail:
        for folder in (REQUESTS, IPC_RESPONSES, IPC_MEDIA):
            jail.make(folder)


def _look(path: Path) -> _Look:
    try:
        with Jail(path) as jail:
            found = jail.names(REQUESTS, most=LOOKED_AT)
            unread = jail.names(IPC_RESPONSES, most=LOOKED_AT)
            has_refs = REFS.rpartition("/")[2] in jail.names(IPC, most=LOOKED_AT)
    except (OSError, StoreError):
        return _Look()
    # The container writes under a hidden name, and renames it when it is complete.
    return _Look(
        requests=tuple(name for name in found if not name.startswith(".")),
        unread=sum(not name.startswith(".") for name in unread),
        has_refs=has_refs,
    )


def _read_request(path: Path, own: str) -> _Request | None:
    """A request; None if it was withdrawn, ToolError if it is none."""
    try:
        with Jail(path) as jail:
            asked = json.loads(jail.read(f"{REQUESTS}/{own}.json", most=REQUEST_BYTES))
    except MediaNotFound:
        return None
    except MediaTooLarge:
        raise ToolError(f"the request is larger than {REQUEST_BYTES} bytes") from None
    except MediaError as error:
        raise ToolError(f"the request cannot be read: {error}") from None
    except (ValueError, RecursionError):
        raise ToolError("the request is not JSON in UTF-8") from None
    tool, arguments = (asked.get("tool"), asked.get("arguments", {})) if isinstance(asked, dict) else (None, None)
    if not isinstance(tool, str) or not isinstance(arguments, dict) or asked.get("id") != own:
        raise ToolError("a request is {id, tool, arguments}, in a file of the same id")
    return _Request(tool=tool, arguments=arguments)


def _begin_request(path: Path, own: str) -> None:
    """Mark a request as begun: what acts is not done a second time after a crash."""
    with Jail(path) as jail:
        jail.rename(f"{REQUESTS}/{own}.json", f"{own}.begun")


def _respond(path: Path, name: str, own: str, answer: Mapping[str, Any]) -> None:
    """Write an answer, then delete its request: if the process is killed in between, it is only answered again."""
    write_response(path, own, answer, most=RESPONSE_BYTES)
    _discard(path, name)


def _discard(path: Path, name: str) -> None:
    with Jail(path) as jail, suppress(OSError):
        jail.remove(f"{REQUESTS}/{name}")


def _write(path: Path, name: str, told: Mapping[str, Any]) -> None:
    with Jail(path) as jail:
        jail.replace(name, json.dumps(told, ensure_ascii=False, indent=1).encode(errors="replace"))


def _spec(spec: ToolSpec) -> dict[str, Any]:
    about = about_tool(spec.name)
    hints = {"title": about.title, "annotations": dict(about.hints)}
    return {"name": spec.name, **hints, "description": spec.description, "inputSchema": dict(spec.schema)}


def _wire(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            import pybase64

            return {"type": "image", "data": pybase64.b64encode(block.data).decode(), "mimeType": block.mime}
        case FileBlock():
            return {"type": "file", "path": f"media/{block.path.name}", "mimeType": block.mime}
        case _:
            raise ToolError(f"{block.mime} cannot be given to a container; as=file gives a copy in your folder")
