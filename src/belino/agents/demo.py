"""Demo agent, without a model: it shows what an agent gets and what the toolbox answers."""

import asyncio
import re
import struct
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from belino.domain.errors import ToolError
from belino.domain.media import FileBlock, ImageBlock, TextBlock
from belino.domain.tokens import estimate_tokens
from belino.domain.turn import Accepted, Final, ReplyPart, TextDelta, ToolNote, Turn, Usage, media_names, placeholders

LOOKS_AT_MOST = 4
TEXT_LINES = 5
LINE_CHARS = 200
READ_BYTES = 16 * 1024
LISTED_AT_MOST = 10
INTENT_CHARS = 300
FOUND_AMONG = 100
FORM_TOKENS = 800
CHART_BARS = 9
CHART_WIDTH, CHART_HEIGHT, CHART_EDGE = 640, 360, 40

_QUESTION = re.compile(r"\bwhat\s+(?:can|do)\s+you\s+see\b", re.IGNORECASE)
_TOLD = re.compile(r"\bwhat\s+(?:were\s+you\s+told|do\s+you\s+know)\b", re.IGNORECASE)
_SEARCH = re.compile(
    r"\A\W*(?:@\S+\s+)?(?:(?:please|now|can\s+you|could\s+you)\s+)*(?:find|look\s+for|search(?:\s+for)?)\s+(?P<find>.+)|"
    r"\bwhat\s+(?:was|were|has\s+been|did\s+\w+|have\s+\w+|has\s+\w+)\s+(?:said|say|written|write)\s+"
    r"(?:here\s+)?about\s+(?P<about>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CHART = re.compile(r"\b(?:draw|make|paint|send|show)\b[^.!?\n]*\b(?:chart|diagram)\b|\bchart\s+of\b", re.IGNORECASE)
_FORM = re.compile(
    r"\bwhat\s+does\s+(?P<says>[^?!\n]{1,100}?)\s+say\b|\b(?P<form>text|frames|sheet)\s+of\s+(?P<of>[^?!\n]{1,100})",
    re.IGNORECASE,
)
_NAMELESS = re.compile(r"^(\w+)\|([a-z]+)\|\|", re.MULTILINE)
"""Lines of `list_media`: an item without a name is called by its kind."""
_ARTICLE = re.compile(r"^(?:(?:the|this|that|my|our|it)(?:\s+|\Z))+")
_TODAY = re.compile(r"\(UTC; today is [0-9]{4}-([0-9]{2}-[0-9]{2})\)\Z")
"""The end of the header above lines of messages."""
_LINE = re.compile(r"[a-z0-9.:_-]+\|(?:(?:[0-9]{4}-)?([0-9]{2}-[0-9]{2}) )?([0-9]{2}:[0-9]{2})?\|")
"""The id and the time of a message: with its day where that changes, and none where the minute does not."""
_SENT = re.compile(r"time: [0-9]{4}-([0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}) UTC\Z")
_CONTEXT = re.compile(r"<<<(?!message |media )(\w+) ([0-9a-f]+)\n(.*?)\n\2 \1>>>", re.DOTALL)
_MARKER = re.compile(r"<<<message ([0-9a-f]+)\n(.*?)\n\1 message>>>", re.DOTALL)
_TEXT = re.compile(
    r"^(?:User )?text:\n(.*?)(?=\n(?:Transcript|Description|Text)[^\n]*:\n|\nread from media:\n|\nnot read: |\Z)",
    re.S | re.M,
)
_READ = re.compile(r"^read from media:\n(.*?)(?=\nnot read: |\Z)", re.DOTALL | re.MULTILINE)
_UNREAD = re.compile(r"^not read: ([^\n]+)(?=(?:\nnot read: [^\n]+)*\n?\Z)", re.MULTILINE)
_SPOKEN = re.compile(r"^\[Audio\]\nTranscript[^\n]*:\n(.*?)(?=\nnot read: |\Z)", re.DOTALL | re.MULTILINE)
_USER_TEXT = re.compile(r"^User text:\n.*?\n(?=(?:Transcript|Description|Text)[^\n]*:\n)", re.DOTALL | re.MULTILINE)
_READABLE = re.compile(r"text/|application/(?:json|xml|x-yaml|toml|octet-stream)\Z|.*\+(?:json|xml)\Z")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The demo agent has no settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoItem:
    """A media item of the message."""

    kind: str
    name: str
    ref: str


class Agent:
    """Answers with what it got and what it fetched."""

    remembers = False
    sees_images = True

    def __init__(self, config: Config) -> None:
        self._config = config

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Describe each item of the message, in order."""
        yield Accepted()
        given = "\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
        words, items = _words(given), _items(given)
        told = tuple(found.group(3) for found in _CONTEXT.finditer(given))
        said: list[str] = []
        async for part in _sections(turn, words, items, told, "\n\n".join(_readings(given))):
            if isinstance(part, str):
                piece = part if not said else f"\n\n{part}"
                said.append(piece)
                yield TextDelta(text=piece)
            else:
                yield part
        answer = "".join(said)
        given_tokens = estimate_tokens(turn.system) + estimate_tokens(given)
        yield Usage(input_tokens=given_tokens, output_tokens=estimate_tokens(answer), cost_usd=0.0, model="demo")
        yield Final(text=answer)


async def _sections(
    turn: Turn, words: str, items: list[DemoItem], told: tuple[str, ...], read: str
) -> AsyncIterator[str | ToolNote | Accepted]:
    """The paragraphs of the answer, with a note before each tool call."""
    yield _greeting(words, items)
    if read:
        yield read
    for item in items[:LOOKS_AT_MOST]:
        yield ToolNote(tool="fetch_media", text=f"{_verb(item)} {item.name}")
        yield await _look(turn, item)
        yield Accepted()  # the tool's picture counts as shown too
    if len(items) > LOOKS_AT_MOST:
        left = len(items) - LOOKS_AT_MOST
        yield f"I looked at the first {LOOKS_AT_MOST}; {left} more {'is' if left == 1 else 'are'} there."
    if wanted := _FORM.search(words):
        form = (wanted["form"] or "text").lower()
        yield ToolNote(tool="fetch_media", text=f"getting the {form} of {wanted['says'] or wanted['of']}")
        yield await _formed(turn, form, wanted["says"] or wanted["of"], items)
        yield Accepted()
    if _QUESTION.search(words):
        yield ToolNote(tool="list_media", text="listing the media of this channel")
        yield await _list(turn)
    if _TOLD.search(words):
        yield _told(told)
    if _CHART.search(words):
        yield ToolNote(tool="send_media", text="drawing a chart")
        yield await _chart(turn)
    if intent := _intent(words):
        yield ToolNote(tool="channel_context", text="searching this channel")
        yield await _search(turn, intent)


def _intent(words: str) -> str:
    """What the user wants to find; empty if nothing."""
    found = _SEARCH.search(words)
    wanted = (found["find"] or found["about"] or "") if found else ""
    return " ".join(wanted.split())[:INTENT_CHARS].rstrip("?!. ")


async def _formed(turn: Turn, form: str, name: str, items: list[DemoItem]) -> str:
    """The content of a media item in the requested form: an item of the message, or of the channel."""
    try:
        listing = await turn.toolbox.call("list_media", {"limit": FOUND_AMONG})
        lines = "\n".join(block.text for block in listing if isinstance(block, TextBlock))
        known = dict(_NAMELESS.findall(lines)) | media_names(lines)
        ref = _called(name, {item.ref: item.name for item in items} | known) or (items[0].ref if items else "")
        if not ref:
            return f"I know of no media here that is called “{name.strip()}”."
        blocks = await turn.toolbox.call("fetch_media", {"ref": ref, "as": form, "max_tokens": FORM_TOKENS})
    except ToolError as error:
        return f"I could not get the {form} of {name.strip()}: {error}."
    pictures = sum(isinstance(block, ImageBlock) for block in blocks)
    told = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    seen = f" with {pictures} picture{'' if pictures == 1 else 's'}" if pictures else ""
    return f"This is what a model would be given{seen}:\n{_quoted(told)}"


def _called(name: str, names: Mapping[str, str]) -> str:
    """The ref of the newest media item whose name contains this."""
    meant = _ARTICLE.sub("", " ".join(name.lower().split()))
    return next((ref for ref, called in names.items() if meant and meant in called.lower()), "")


async def _search(turn: Turn, intent: str) -> str:
    try:
        blocks = await turn.toolbox.call("channel_context", {"intent": intent})
    except ToolError as error:
        return f"I could not search for “{intent}”: {error}."
    found = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    return f"I searched this channel for “{intent}”. This is what a model would be given:\n{_quoted(found)}"


def _told(told: tuple[str, ...]) -> str:
    if not told:
        return "I was told nothing but your message."
    whole = "\n".join(told)
    return f"Besides your message I was told this, {estimate_tokens(whole)} tokens:\n{_quoted(whole)}"


def _quoted(text: str) -> str:
    return f"```\n{text.replace('```', '´´´')}\n```"


def _greeting(words: str, items: list[DemoItem]) -> str:
    count = len(_WORD.findall(words))
    parts = []
    if count:
        parts.append(f"{count} word{'' if count == 1 else 's'}")
    if items:
        parts.append(f"{len(items)} attachment{'' if len(items) == 1 else 's'}")
    told = " and ".join(parts) or "a message without words"
    hello = f"I am the demo agent: no model, only the real tools. You sent me {told}."
    if not items:
        return hello
    return "\n".join([hello, *(f"- {_entry(item)}" for item in items)])


def _entry(item: DemoItem) -> str:
    """The item's kind and name; most pictures in a chat have none."""
    return item.kind if item.name == f"the {item.kind.lower()}" else f"{item.kind}: {item.name}"


def _verb(item: DemoItem) -> str:
    return "looking at" if item.kind in ("Image", "Sticker") else "opening"


async def _look(turn: Turn, item: DemoItem) -> str:
    """The result of fetching one item: the tool's own line, and the first lines of a text file."""
    is_attached = any(isinstance(block, ImageBlock) and block.ref == item.ref for block in turn.blocks)
    try:
        blocks = await turn.toolbox.call("fetch_media", {"ref": item.ref, "again": is_attached})
    except ToolError as error:
        return f"I could not get {item.name}: {error}."
    about = " ".join(block.text for block in blocks if isinstance(block, TextBlock))
    if any(isinstance(block, ImageBlock) for block in blocks):
        seen = about.partition(" The original is in your folder")[0].replace(" You see it ", " I see it ")
        return f"I was shown {seen}"
    for block in blocks:
        if isinstance(block, FileBlock):
            return await _tell_file(turn, about.partition(" A copy is in your folder")[0], block)
    return about


async def _tell_file(turn: Turn, about: str, block: FileBlock) -> str:
    if not block.path.is_relative_to(turn.folder):
        return f"I have {about}"
    lines = await asyncio.to_thread(_first_lines, block.path) if _READABLE.match(block.mime) else None
    if lines is None:
        return f"I have {about}"
    quoted = "\n".join(f"> {line}" for line in lines) or "> (empty)"
    return f"I read {about} It begins:\n{quoted}"


def _first_lines(path: Path) -> list[str] | None:
    """The first lines of a text file; None for anything that is not text."""
    with path.open("rb") as file:
        head = file.read(READ_BYTES)
        whole = not file.read(1)
    try:
        text = head.decode("utf-8-sig") if whole else head.decode("utf-8-sig", errors="ignore")
    except UnicodeDecodeError:
        return None
    if "\0" in text or (not whole and len(text.encode()) < READ_BYTES - 8):
        return None
    return [line[:LINE_CHARS] for line in islice(text.splitlines(), TEXT_LINES)]


async def _list(turn: Turn) -> str:
    try:
        blocks = await turn.toolbox.call("list_media", {"limit": LISTED_AT_MOST})
    except ToolError as error:
        return f"I could not list the media: {error}."
    listing = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    return f"What I see in this channel:\n{_quoted(listing)}"


def _words(given: str) -> str:
    """The user's text, from the fenced message; without any, what they said."""
    texts = (_TEXT.search(content) or _SPOKEN.search(content) for content in _messages(given))
    return "\n".join(text.group(1) for text in texts if text)


def _read(given: str) -> str:
    """What was read from the message's media, as the agent was given it."""
    found = (_READ.search(content) for content in _messages(given))
    return "\n".join(_USER_TEXT.sub("", read.group(1)) for read in found if read)


def _readings(given: str) -> Iterator[str]:
    """What belino read before the turn, and what it could not read."""
    if read := _read(given):
        yield f"Before I started, belino read this from it:\n{_quoted(read)}"
    unread = "\n".join(why for content in _messages(given) for why in _UNREAD.findall(content))
    if unread:
        yield f"belino could not read this:\n{_quoted(unread)}"


def _messages(given: str) -> list[str]:
    """The message being answered, without the rest of the prompt."""
    return [found.group(2) for found in _MARKER.finditer(given)] or [f"text:\n{given}"]


def _items(given: str) -> list[DemoItem]:
    found: dict[str, DemoItem] = {}
    for kind, name, ref in placeholders("\n".join(_messages(given))):
        found.setdefault(ref, DemoItem(kind=kind, name=name, ref=ref))
    return list(found.values())


async def _chart(turn: Turn) -> str:
    """Draw a chart of the messages in its context over time, and send the picture."""
    counts = _counted("\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock)))
    total = sum(counts.values())
    drawn = f"a chart of the {total} message{'' if total == 1 else 's'} I know of, by {_step(counts)}"
    folder = turn.outgoing or turn.folder
    path = folder / f"chart-{turn.number}.png"
    await asyncio.to_thread(path.write_bytes, draw_chart(counts))
    try:
        blocks = await turn.toolbox.call("send_media", {"path": str(path), "caption": f"Messages by {_step(counts)}"})
    except ToolError as error:
        path.unlink(missing_ok=True)
        return f"I drew {drawn}, and could not send it: {error}."
    about = " ".join(block.text for block in blocks if isinstance(block, TextBlock))
    return f"I drew {drawn}. No model chose it: I counted. {about}"


def _counted(given: str) -> dict[str, int]:
    """Messages by day, or by hour if all are of one day; only the last ones if there are many."""
    times = list(_times(given))
    days = {day for day, _ in times}
    counts = Counter(day if len(days) > 1 else f"{clock[:2]}:00" for day, clock in times)
    return dict(sorted(counts.items())[-CHART_BARS:])


def _times(given: str) -> Iterator[tuple[str, str]]:
    """The day and the time of each message in its context."""
    day, clock = "", ""
    for line in given.splitlines():
        if header := _TODAY.search(line):
            day = header[1]
        elif found := _SENT.match(line) or (_LINE.match(line) if day else None):
            day, clock = found[1] or day, found[2] or clock
            yield day, clock


def _step(counts: Mapping[str, int]) -> str:
    return "hour" if any(":" in label for label in counts) else "day"


# Rows of three dots each, top to bottom, as octal digits: enough for labels of times and counts.
_DOTS = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717",
    "6": "74757", "7": "71222", "8": "75757", "9": "75717", "-": "00700", ":": "02020",
}  # fmt: skip
_DOT = 3


def draw_chart(counts: Mapping[str, int]) -> bytes:
    """A bar for each count, as a PNG; drawn dot by dot, because a demo needs no library for it."""
    rows = [bytearray(b"\xff\xff\xff" * CHART_WIDTH) for _ in range(CHART_HEIGHT)]
    bottom, room = CHART_HEIGHT - CHART_EDGE, CHART_HEIGHT - 2 * CHART_EDGE
    _fill(rows, CHART_EDGE, bottom, CHART_WIDTH - 2 * CHART_EDGE, 2, b"\x55\x5f\x6b")
    slot = (CHART_WIDTH - 2 * CHART_EDGE) // max(1, len(counts))
    for number, (label, count) in enumerate(counts.items()):
        height = max(2, room * count // max(counts.values()))
        left, width = CHART_EDGE + number * slot + slot // 6, max(4, slot * 2 // 3)
        _fill(rows, left, bottom - height, width, height, b"\x2f\x6f\xb7")
        _write(rows, left + width // 2, bottom + 10, label)
        _write(rows, left + width // 2, bottom - height - 6 * _DOT, str(count))
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    header = struct.pack(">IIBBBBB", CHART_WIDTH, CHART_HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def _fill(rows: list[bytearray], left: int, top: int, width: int, height: int, color: bytes) -> None:
    for row in rows[max(0, top) : top + height]:
        row[3 * left : 3 * (left + width)] = color * width


def _write(rows: list[bytearray], center: int, top: int, text: str) -> None:
    left = center - 2 * _DOT * len(text)
    for position, sign in enumerate(text):
        for down, bits in enumerate(_DOTS[sign]):
            for across in range(3):
                if int(bits) & 4 >> across:
                    at = left + (4 * position + across) * _DOT
                    _fill(rows, max(0, at), top + down * _DOT, _DOT, _DOT, b"\x22\x2b\x36")
