"""Collect the files of a reply: passed by a tool, named in its text, or waiting in the folder `pending`.

There is no fourth way. A file counts only if it is in the conversation's own `outgoing/`; any other path in a text
is only text. A path with its folder means the file. A bare name means it only if the file is new since the last turn,
and neither its bytes nor its name are known to the conversation; in a code block, no name means a file.
The bytes are copied from the file that was checked, and those bytes are sent.

Paths are not parsed out of the text: the files are known, and only their own spellings are searched for. So spaces,
quotes and links need no rules, and any other name is only text.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from belino.delivery.decide import Action, Decision
from belino.delivery.folders import ERROR, OUTGOING, PENDING, SENT, Folders, joined, mark_of
from belino.delivery.markup import code_blocks
from belino.delivery.outgoing_files import Keeper, shown_name
from belino.domain.errors import MediaError, MediaNotFound, MediaTooLarge
from belino.domain.reply import Offer
from belino.domain.stored import EarlierFiles
from belino.media.jail import Jail, Seen, Unfinished
from belino.storage.disk import on_disk

FILES_AT_MOST = 20
"""The most files of one reply; more files in `pending` go with the next."""
LOOKED_AT = 10_000
"""The most files in `outgoing/` whose names are searched for in a text."""
IN_CODE = "it is named in a code block"
OLD = "it is from before the last turn"
RECEIVED = "this conversation already has it"
INCOMING = "someone sent a file of that name"
# Characters that continue a word or a path. Letters of other scripts do not: some are written without spaces.
_GOES_ON_BEFORE = re.compile(r"[A-Za-z0-9_/\\.~%@:=+#&$-]")
_GOES_ON_AFTER = re.compile(r"[A-Za-z0-9_/\\~%@=+#&$-]|[.:][^\s.:]")
_ENDS_SENTENCE = re.compile(r"[.:][)\]}>\"'”’»`*_]*(?:\s|\Z)")
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "<": ">"}
_EXTENSION = re.compile(r"[^/]\.(?=[0-9]*[A-Za-z])[A-Za-z0-9]{1,10}\Z")
_LINK_BEGINS = re.compile(r"(!?)\[([^\[\]\n]*)\]\(<?\Z")
_LINK_ENDS = re.compile(r">?(?: +\"[^\"\n]*\")?\)")
_LABEL_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A reply's text with attached paths replaced by names, and its files in the order they were named."""

    text: str
    offers: tuple[Offer, ...] = ()
    refused: tuple[Decision, ...] = ()
    only_named: tuple[tuple[str, str], ...] = ()
    """Paths of files that the text names without sending them, each with the reason."""
    waiting: int = 0
    """Files left in `pending`: still being written, or too many for one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMention:
    """A place in the text that names a file."""

    start: int
    end: int
    path: str
    full: bool
    """Whether the path is given with its folder; a bare name may mean another file."""


async def collect(
    text: str,
    handed: Sequence[Offer],
    folders: Folders,
    keeper: Keeper,
    *,
    earlier: Callable[[], Awaitable[EarlierFiles]],
    busy: Collection[str] = (),
) -> Collected:
    """Collect all files of this reply. `busy` are the marks of pending files that belong to an earlier reply."""
    with Jail(folders.path) as jail:
        basket = _Basket(handed, jail, keeper, busy)
        named, meant = await on_disk(_named, jail, folders.path, text) if text else ((), {})
        known = await earlier() if not all(meant.values()) else EarlierFiles()
        for path, full in meant.items():
            await basket.take_named(path, None if full else known)
        # Files that were passed or named are taken already; waiting until they are quiet would only delay the reply.
        ready = await folders.waiting({*busy, *basket.marks})
        for seen in ready.files:
            await basket.take_pending(seen)
    in_code = dict.fromkeys((one.path, IN_CODE) for one in named if one.path not in meant)
    sent = {offer.name for offer in basket.offers.values()}
    return Collected(
        text=replaced(text, named, basket.names),
        offers=tuple(basket.offers.values()),
        refused=tuple(basket.refused),
        only_named=tuple((path, why) for path, why in (*basket.only_named, *in_code) if shown_name(path) not in sent),
        waiting=ready.unfinished + basket.left,
    )


class _Basket:
    """The files collected so far, each content once."""

    def __init__(self, handed: Sequence[Offer], jail: Jail, keeper: Keeper, busy: Collection[str]) -> None:
        self.offers: dict[str, Offer] = {}
        self.names: dict[str, str] = {}
        """Paths of attached files to the names that replace them."""
        self.refused: list[Decision] = []
        self.only_named: list[tuple[str, str]] = []
        self.left = 0
        self._in_jail = jail
        self._keeper = keeper
        self._busy = busy
        self.marks: set[str] = set()
        """The marks of the pending files among them."""
        for offer in handed:
            self._add(offer)

    async def take_named(self, path: str, earlier: EarlierFiles | None) -> None:
        """Add a file that the text names. If it cannot be opened safely, the path stays text.

        `earlier` is given for a bare name, which may mean another file.
        """
        waits = _is_pending(path)  # it is handled as a pending file later, and so is its refusal
        try:
            with self._in_jail.open(path) as file:
                if earlier is not None and (why := _not_meant(file.seen, earlier)):
                    self.only_named.append((path, why))
                    return
                if self._full():
                    if not waits:
                        self._refuse(path, f"a reply brings along {FILES_AT_MOST} files at most")
                    return
                offer = await self._keeper.keep(file.pieces(), name=file.seen.name)
                mark = mark_of(file.seen)
        except MediaError as error:
            if isinstance(error, MediaTooLarge) and not waits:
                self._refuse(path, str(error))
            return
        if earlier is not None and offer.sha256 in earlier.hashes and not waits:
            self.only_named.append((path, RECEIVED))
            return
        self._add(replace(offer, pending=mark if waits and mark not in self._busy else None))
        self.names[path] = offer.name

    async def take_pending(self, seen: Seen) -> None:
        """Add a pending file. If it cannot be sent, it is refused with a reason: it was put there to be sent."""
        mark = mark_of(seen)
        if self._full():
            self.left += 1
            return
        try:
            with self._in_jail.open(seen.path) as file:
                if file.seen.identity != seen.identity:
                    self.left += 1
                    return
                offer = await self._keeper.keep(file.pieces(), name=seen.name)
        except MediaNotFound:
            return  # removed since it was listed
        except Unfinished:
            self.left += 1
            return
        except MediaError as error:
            self._refuse(seen.path, str(error), mark)
            return
        self._add(replace(offer, pending=mark))

    def _add(self, offer: Offer) -> None:
        """Add an offer; identical bytes are sent once, with all their captions, also if a copy was made ready."""
        own = offer.source or offer.sha256
        first = self.offers.get(own)
        if offer.pending:
            self.marks.add(offer.pending)
        if first is not None:
            offer = replace(
                first,
                caption="\n".join(dict.fromkeys(words for words in (first.caption, offer.caption) if words)),
                wanted=first.wanted or offer.wanted,
                pending=joined(first.pending, offer.pending),
            )
        self.offers[own] = offer

    def _refuse(self, path: str, reason: str, mark: str | None = None) -> None:
        offer = Offer(name=shown_name(path), mime="", size=0, sha256="", pending=mark)
        self.refused.append(Decision(offer=offer, action=Action.REFUSE, reason=reason))

    def _full(self) -> bool:
        return len(self.offers) >= FILES_AT_MOST


def _named(jail: Jail, folder: Path, text: str) -> tuple[tuple[FileMention, ...], dict[str, bool]]:
    """Where the text names a plain file of `outgoing/`, and which it means: True for a path with its folder."""
    outgoing = f"{folder}/{OUTGOING}"
    roots = [(OUTGOING, f"{root}/") for root in dict.fromkeys((outgoing, os.path.realpath(outgoing), OUTGOING))]
    roots += [(OUTGOING, ""), (PENDING, "")]
    there = (seen.path for seen in jail.files(OUTGOING, most=LOOKED_AT) if seen.plain)
    named = find_named(text, there, roots)
    edges = [edge for block in (code_blocks(text) if named else ()) for edge in block]
    meant: dict[str, bool] = {}
    for one in named:
        is_in_code = bisect_right(edges, one.start) % 2
        if not is_in_code:
            meant[one.path] = meant.get(one.path, False) or one.full
    return named, meant


def _not_meant(seen: Seen, earlier: EarlierFiles) -> str:
    """Why a bare name does not mean this file; empty if it does, as far as its bytes are not known either."""
    if _is_pending(seen.path):
        return ""
    if seen.name in earlier.names:
        return INCOMING
    is_old = earlier.since is not None and seen.ctime_ns <= earlier.since.timestamp() * 1e9
    return OLD if is_old or seen.path.startswith((f"{SENT}/", f"{ERROR}/")) else ""


def _is_pending(path: str) -> bool:
    return path.startswith(f"{PENDING}/")


def find_named(text: str, paths: Iterable[str], roots: Sequence[tuple[str, str]]) -> tuple[FileMention, ...]:
    """Every mention of these files, in text order; of overlapping ones the longest.

    `paths` are relative to one folder. Each of `roots` is a folder below it, and the prefix with which a text may name
    a path in it; an empty prefix means a bare name.
    """
    spellings: dict[str, tuple[bool, str]] = {}
    for path in paths:
        if _occurs(text, path):
            for spelling, full in _spellings(path, roots):
                if spelling not in spellings or full > spellings[spelling][0]:
                    spellings[spelling] = full, path
    taken = bytearray(len(text))
    found = []
    for spelling in sorted(spellings, key=lambda known: (-len(known), known)):
        for start in _occurrences(text, spelling):
            end = start + len(spelling)
            if not any(taken[start:end]) and _stands_alone(text, start, end):
                taken[start:end] = b"\1" * (end - start)
                full, path = spellings[spelling]
                found.append(FileMention(start=start, end=end, path=path, full=full))
    return tuple(sorted(found, key=lambda named: named.start))


def replaced(text: str, named: Sequence[FileMention], names: Mapping[str, str]) -> str:
    """The text with the path of each of these files replaced by its name; other paths stay."""
    spans = [_span(text, one, names[one.path]) for one in named if one.path in names]
    pieces, at = [], 0
    for start, end, words in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:  # else it is in the label of a link that was replaced whole
            pieces += [text[at:start], words]
            at = end
    return "".join([*pieces, text[at:]])


def _span(text: str, named: FileMention, name: str) -> tuple[int, int, str]:
    """The range to replace, and the replacement; a link is replaced whole, since its target is a local path."""
    begins = _LINK_BEGINS.search(text, max(0, named.start - _LABEL_CHARS), named.start)
    ends = _LINK_ENDS.match(text, named.end) if begins else None
    if begins is None or ends is None:
        return named.start, named.end, name
    is_picture, label = bool(begins[1]), begins[2].strip()
    if is_picture or not label or "/" in label:
        return begins.start(), ends.end(), name
    return begins.start(), ends.end(), label if name in label else f"{label} ({name})"


def _occurs(text: str, path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in text or _quoted(name) in text


def _spellings(path: str, roots: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
    """How a text may name a path, and whether that is its full path."""
    for folder, beginning in roots:
        if path.startswith(f"{folder}/"):
            spelling = f"{beginning}{path[len(folder) + 1 :]}"
            for each in (spelling,) if spelling.startswith("/") else (spelling, f"./{spelling}"):
                yield each, bool(beginning)
                yield _quoted(each), bool(beginning)  # a Markdown link cannot contain a space


def _quoted(path: str) -> str:
    # A file name may be any bytes; those that are not text are lone surrogates in the string.
    return quote(path.encode(errors="surrogateescape"))


def _occurrences(text: str, spelling: str) -> Iterable[int]:
    start = text.find(spelling)
    while start >= 0:
        yield start
        start = text.find(spelling, start + 1)


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 2]
    spelling = text[start:end]
    if not _EXTENSION.search(spelling) and "/" not in spelling:
        # A bare word such as `notes` does not mean the file `notes` unless it is quoted.
        return before in _QUOTES and after[:1] == _QUOTES[before]
    if before and (_GOES_ON_BEFORE.match(before) or (before.isalnum() and not spelling[0].isascii())):
        return False
    if not after or _ENDS_SENTENCE.match(text, end):
        return True
    return not _GOES_ON_AFTER.match(after)
