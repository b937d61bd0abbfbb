"""Collect the files of a reply: passed by a tool, named in its text, or waiting in the folder `pending`.

There is no fourth way. A file counts only if it lies in the conversation's own `outgoing/`; anything else a text names
is text. Its bytes are copied from the file that was looked at, and those bytes are what is sent.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from belino.delivery.decide import Action, Decision
from belino.delivery.file_mentions import FileMention, find_named, replaced
from belino.delivery.folders import OUTGOING, PENDING, Folders, joined, mark_of
from belino.delivery.outgoing_files import Keeper, shown_name
from belino.domain.errors import MediaError, MediaNotFound, MediaTooLarge
from belino.domain.reply import Offer
from belino.media.jail import Jail, Seen, Unfinished
from belino.storage.blobs import on_disk

FILES_AT_MOST = 20
"""Files one reply brings along; more in `pending` go with the next."""
LOOKED_AT = 10_000
"""Files in `outgoing/` whose names are sought in a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A reply's text with attached paths replaced by names, and its files in the order they were named."""

    text: str
    offers: tuple[Offer, ...] = ()
    refused: tuple[Decision, ...] = ()
    waiting: int = 0
    """Files left in `pending`: still being written, or too many for one reply."""


async def collect(
    text: str, handed: Sequence[Offer], folders: Folders, keeper: Keeper, *, busy: Collection[str] = ()
) -> Collected:
    """Everything this reply brings along. `busy` are the marks of pending files that an earlier reply brought."""
    with Jail(folders.path) as beneath:
        basket = _Basket(handed, beneath, keeper, busy)
        named = await on_disk(_named, beneath, folders.path, text) if text else ()
        for path in dict.fromkeys(one.path for one in named):
            await basket.take_named(path)
        # What was handed over or named is taken already; to wait for it to rest would only hold up the reply.
        ready = await folders.waiting({*busy, *basket.marks})
        for seen in ready.files:
            await basket.take_pending(seen)
    return Collected(
        text=replaced(text, named, basket.names),
        offers=tuple(basket.offers.values()),
        refused=tuple(basket.refused),
        waiting=ready.unfinished + basket.left,
    )


class _Basket:
    """What was collected so far, each content once."""

    def __init__(self, handed: Sequence[Offer], beneath: Jail, keeper: Keeper, busy: Collection[str]) -> None:
        self.offers: dict[str, Offer] = {}
        self.names: dict[str, str] = {}
        """What the paths of attached files are replaced by."""
        self.refused: list[Decision] = []
        self.left = 0
        self._beneath = beneath
        self._keeper = keeper
        self._busy = busy
        self.marks: set[str] = set()
        """Of the pending files among them."""
        for offer in handed:
            self._add(offer)

    async def take_named(self, path: str) -> None:
        """A file the text names. One that cannot be opened as it should be is only text."""
        waits = path.startswith(f"{PENDING}/")  # then its turn comes again, and so does its refusal
        if self._full():
            if not waits:
                self._refuse(path, f"a reply brings along {FILES_AT_MOST} files at most")
            return
        try:
            with self._beneath.open(path) as file:
                offer = await self._keeper.keep(file.pieces(), name=file.seen.name)
                mark = mark_of(file.seen)
        except MediaError as error:
            if isinstance(error, MediaTooLarge) and not waits:
                self._refuse(path, str(error))
            return
        self._add(replace(offer, pending=mark if waits and mark not in self._busy else None))
        self.names[path] = offer.name

    async def take_pending(self, seen: Seen) -> None:
        """A file that waits. One that cannot be sent is told of, for somebody put it there to be sent."""
        mark = mark_of(seen)
        if self._full():
            self.left += 1
            return
        try:
            with self._beneath.open(seen.path) as file:
                if file.seen.identity != seen.identity:
                    self.left += 1
                    return
                offer = await self._keeper.keep(file.pieces(), name=seen.name)
        except MediaNotFound:
            return  # somebody took it back
        except Unfinished:
            self.left += 1
            return
        except MediaError as error:
            self._refuse(seen.path, str(error), mark)
            return
        self._add(replace(offer, pending=mark))

    def _add(self, offer: Offer) -> None:
        """Take it in; the same bytes again are sent once, with everything that was said of them."""
        first = self.offers.get(offer.sha256)
        if offer.pending:
            self.marks.add(offer.pending)
        if first is not None:
            offer = replace(
                first,
                caption="\n".join(dict.fromkeys(words for words in (first.caption, offer.caption) if words)),
                wanted=first.wanted or offer.wanted,
                pending=joined(first.pending, offer.pending),
            )
        self.offers[offer.sha256] = offer

    def _refuse(self, path: str, reason: str, mark: str | None = None) -> None:
        offer = Offer(name=shown_name(path), mime="", size=0, sha256="", pending=mark)
        self.refused.append(Decision(offer=offer, action=Action.REFUSE, reason=reason))

    def _full(self) -> bool:
        return len(self.offers) >= FILES_AT_MOST


def _named(beneath: Jail, folder: Path, text: str) -> tuple[FileMention, ...]:
    """Where the text names a plain file of `outgoing/`."""
    outgoing = f"{folder}/{OUTGOING}"
    roots = [(OUTGOING, f"{root}/") for root in dict.fromkeys((outgoing, os.path.realpath(outgoing)))]
    roots += [(OUTGOING, ""), (PENDING, "")]
    there = (seen.path for seen in beneath.files(OUTGOING, most=LOOKED_AT) if seen.plain)
    return find_named(text, there, roots)
