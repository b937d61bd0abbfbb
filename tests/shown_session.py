"""A state folder whose agent was shown three pictures, of which its memory has lost two."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing, TurnState
from belino.domain.stored import ClaimedTurn, ManifestEntry, ReadPosition, TurnEnd, Verdict
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing import make_png

MAIN = ConversationKey(platform="web", account="default", channel="main")
THREAD = "t1"
"""Where one of the pictures was shown; it is not attached again in the channel."""
PICTURES = {"cat.png": make_png(8, 6), "dog.png": make_png(6, 8), "owl.png": make_png(7, 7)}


def show_pictures(home: Path, *, compacted: bool) -> list[ManifestEntry]:
    """Fill the folder; the manifest, in the order the pictures were shown. The first two are lost."""
    return asyncio.run(_fill(home, compacted=compacted))


async def _fill(home: Path, *, compacted: bool) -> list[ManifestEntry]:
    store = await open_store(Home.at(home), clock=SystemClock())
    try:
        entries = [await _shown(store, number, name) for number, name in enumerate(PICTURES, start=1)]
        turn = await _claimed(store, _message("last", "and now?"))
        lost = tuple(entry.artifact_id for entry in entries[:2])
        told = ReadPosition(seq=turn.messages[0].seq, change=0)
        end = TurnEnd(state=TurnState.ANSWERED, lost=lost, compacted=compacted, told=told, context_turn=1, agent="demo")
        await store.finish_turn(turn.id, end)
        return entries
    finally:
        await store.close()


async def _shown(store: Store, number: int, name: str) -> ManifestEntry:
    async def pieces() -> AsyncIterator[bytes]:
        yield PICTURES[name]

    blob = await store.keep(pieces(), mime="image/png", limit=10_000)
    message = _message(f"m{number}", f"look at {name}")
    ref = MediaRef(
        platform="web",
        account="default",
        channel_id="main",
        message_id=message.id,
        item="0",
        kind=MediaKind.IMAGE,
        mime="image/png",
        created=message.sent,
        file_name=name,
        size=blob.size,
        sha256=blob.sha256,
    )
    turn = await _claimed(store, replace(message, media=(ref,)))
    entry = ManifestEntry(
        artifact_id=turn.messages[0].media[0].id,
        display_name=name,
        media_type="image/png",
        content_hash=blob.sha256,
        source_message_id=message.id,
        source_thread_id=THREAD if name == "cat.png" else None,
        included_at_turn=turn.number,
    )
    told = ReadPosition(seq=turn.messages[0].seq, change=0)
    end = TurnEnd(state=TurnState.ANSWERED, shown=(entry,), told=told, agent="demo")
    await store.finish_turn(turn.id, end)
    return entry


def _message(message_id: str, text: str) -> Message:
    author = Author(id="owner", name="You")
    return Message(conversation=MAIN, id=message_id, author=author, sent=SystemClock().now(), text=text)


async def _claimed(store: Store, message: Message) -> ClaimedTurn:
    await store.take_in(message, Verdict(standing=Standing.MAY_COMMAND, reason="test", answer=True))
    turn = await store.claim_turn(MAIN, SystemClock().now())
    assert isinstance(turn, ClaimedTurn)
    return turn
