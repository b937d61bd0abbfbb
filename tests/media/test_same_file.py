"""The same file of an account: downloaded once, shared as bytes and never as a ref, deleted like any other."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from belino.domain.message import ConversationKey, Deletion
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import RefRecord, Verdict
from belino.testing.clock import START
from blob_files import content_of
from media.test_fetch import Platform, fetcher, look
from tools.town import HERE, THERE, File, Town


@pytest.fixture
def platform() -> Platform:
    return Platform()


async def same_file(
    town: Town, where: ConversationKey = HERE, *, file_id: str | None = "AgAD-unique", **changes: Any
) -> RefRecord:
    _, (ref,) = await town.say("", File(content=b"", size=10, file_id=file_id, **changes), where=where)
    return await look(town, ref, where)


async def test_the_same_file_in_another_chat_of_the_account_is_not_downloaded_again_and_counts_no_bytes(
    town: Town, platform: Platform
) -> None:
    fetch = fetcher(town, platform, channel_bytes_per_day=10)
    first, second, elsewhere = await same_file(town), await same_file(town), await same_file(town, THERE)
    blobs = [await fetch.fetch(record) for record in (first, second, elsewhere)]
    assert len(set(blobs)) == 1 and platform.calls == [first.ref.id]
    for record, where in ((second, HERE), (elsewhere, THERE)):
        held = await look(town, record.ref.id, where)
        assert (held.outcome, held.ref.sha256) == (MediaOutcome.HELD, blobs[0].sha256)
    assert await town.store.bytes_fetched(THERE, START) == 0
    assert await town.store.bytes_fetched(HERE, START) == 10
    # The bytes are shared, the refs are not.
    assert await town.store.ref(THERE, first.ref.id) is None


async def test_refs_of_one_file_that_are_fetched_at_once_share_one_download(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform)
    records = [await same_file(town), await same_file(town), await same_file(town, THERE)]
    blobs = await asyncio.gather(*(fetch.fetch(record) for record in records))
    assert len(set(blobs)) == 1 and len(platform.calls) == 1


async def test_another_account_and_a_file_without_an_id_of_its_own_are_downloaded(
    town: Town, platform: Platform
) -> None:
    fetch = fetcher(town, platform)
    work = replace(HERE, account="work")
    records = [await same_file(town), await same_file(town, work), await same_file(town, file_id=None)]
    for record in records:
        await fetch.fetch(record)
    assert platform.calls == [record.ref.id for record in records]


async def test_a_known_file_is_downloaded_again_once_its_bytes_were_deleted(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform)
    first, second = await same_file(town), await same_file(town, THERE)
    await fetch.fetch(first)
    gone = Deletion(conversation=HERE, id="d1", message_id=first.ref.message_id, author=None, sent=START)
    await town.store.take_in(gone, Verdict(standing=Standing.OBSERVED, reason="test"))
    assert len(await fetch.purge()) == 1
    await fetch.fetch(second)
    assert platform.calls == [first.ref.id, second.ref.id]


async def test_a_shared_file_outlives_the_message_that_brought_it_first(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform)
    first, second = await same_file(town), await same_file(town, THERE)
    await fetch.fetch(first)
    blob = await fetch.fetch(second)
    gone = Deletion(conversation=HERE, id="d1", message_id=first.ref.message_id, author=None, sent=START)
    await town.store.take_in(gone, Verdict(standing=Standing.OBSERVED, reason="test"))
    assert await fetch.purge() == ()
    assert await content_of(town.store, blob) == platform.body
    assert await fetch.fetch(await same_file(town)) == blob
    assert platform.calls == [first.ref.id]
