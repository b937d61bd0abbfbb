"""Contract of an adapter: what every adapter promises, checked against a platform you bring."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from belino.domain.errors import AdapterError, RateLimited, Unauthorized, Undeliverable
from belino.domain.limits import Once
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Adapter, Connects, Drafts, ReadsBack, StreamsDrafts, Taken
from belino.domain.reply import Parcel, ParcelKind

WAIT_SECONDS = 10.0
LARGEST_CHUNK = 4 * 1024 * 1024


async def check_cassette(path: Path) -> Mapping[str, int]:
    """Replay a cassette and return the number of compared records by kind; AssertionError lists the differences."""
    from belino.cassette.file import read_cassette
    from belino.gateway.replay import replay

    replayed = await replay(read_cassette(path))
    told = "\n".join("\n".join([each.where, *each.diff]) for each in replayed.differences)
    assert not replayed.differences, f"{path.name} does not replay as it was recorded:\n{told}"
    return replayed.counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Your adapter, and enough of a platform to test it. A missing field skips the checks that need it."""

    make: Callable[[], Adapter]
    """Makes the adapter, connected to your platform: `lambda: Adapter(config, FakeContext())`."""
    parse: Callable[[Any], Sequence[Arrival]]
    """Your pure parse function: one raw update in, arrivals out."""
    samples: Sequence[Any]
    """Raw updates as the platform really sends them; at least one message."""
    conversation: ConversationKey
    """Where a parcel may be sent."""
    secrets: Sequence[str] = ()
    """The secrets of your config, which must never be visible; use recognisable words."""
    deliver: Callable[[Adapter, Any], Awaitable[None]] | None = None
    """Passes one raw update to the running adapter, and returns when the platform received its acknowledgement."""
    media: Mapping[str, bytes] = field(default_factory=dict)
    """The platform's bytes, by the `item` of the refs in your samples."""
    refuse: Callable[[int, Mapping[str, str]], None] | None = None
    """Makes the platform answer the next call with this status and these headers."""
    in_thread: Any = None
    """A raw message of a person in a thread, topic or chain of replies that mentions no one."""
    to_another: Any = None
    """The same, with a mention of another person."""
    cassettes: Sequence[Path] = ()
    """Recorded conversations on your platform; your package must be installed, as the replay finds it by name."""


async def check_adapter(trial: Trial) -> tuple[str, ...]:
    """Run all checks that the trial allows and return their names; raises AssertionError with advice."""
    checks = _checks(trial)
    for name, check in checks.items():
        try:
            async with asyncio.timeout(WAIT_SECONDS * 3):
                await check(trial)
        except TimeoutError:
            raise AssertionError(
                f"{name}: not finished within {WAIT_SECONDS * 3:g} s; something waits for ever"
            ) from None
    return tuple(checks)


def _checks(trial: Trial) -> dict[str, Callable[[Trial], Awaitable[None]]]:
    """The checks that a trial allows, by name."""
    checks: dict[str, Callable[[Trial], Awaitable[None]]] = {
        "names itself": check_names_itself,
        "parse is pure": check_parse_is_pure,
        "refs are plain and secret-free": check_refs_are_plain_and_secret_free,
        "ids round-trip": check_ids_round_trip,
        "cancellation is prompt": check_cancellation_is_prompt,
        "a parcel is seen once": check_a_parcel_is_seen_once,
    }
    able = (
        (Connects, "says when it is connected", check_says_when_it_is_connected),
        (Drafts, "a draft becomes the answer", check_a_draft_becomes_the_answer),
        (StreamsDrafts, "a preview is no message", check_a_preview_is_no_message),
    )
    checks |= {name: check for port, name, check in able if isinstance(trial.make(), port)}
    if trial.media:
        checks["bytes stream in chunks"] = check_bytes_stream_in_chunks
    if trial.refuse is not None:
        checks["429 is RateLimited"] = check_429_is_rate_limited
        checks["401 is Unauthorized"] = check_401_is_unauthorized
    if trial.deliver is not None:
        checks["nothing is acknowledged before it is stored"] = check_nothing_is_acknowledged_before_it_is_stored
    if trial.in_thread is not None and trial.to_another is not None:
        checks["a thread can be continued"] = check_a_thread_can_be_continued
    if trial.cassettes:
        checks["cassettes replay"] = check_cassettes_replay
    return checks


async def check_names_itself(trial: Trial) -> None:
    """The adapter is an Adapter, and its platform's name is valid in a conversation's key."""
    adapter = trial.make()
    assert isinstance(adapter, Adapter), "an adapter needs platform, limits, run(), send() and open_media()"
    platform = type(adapter).platform
    assert platform and platform == platform.lower() and platform.isidentifier(), (
        f"platform = {platform!r} must be a lower-case word: it is the name in belino.toml"
    )
    assert adapter.limits.text_chars > 0, "limits.text_chars must say how long a text may be"
    if adapter.limits.once is Once.READ_BACK:
        assert isinstance(adapter, ReadsBack), "limits.once = READ_BACK needs find_sent(parcel)"


async def check_parse_is_pure(trial: Trial) -> None:
    """The same update twice gives equal arrivals, and is not modified."""
    assert trial.samples, "give the trial some samples of what the platform sends"
    for sample in trial.samples:
        before = deepcopy(sample)
        first, second = list(trial.parse(sample)), list(trial.parse(sample))
        assert sample == before, f"parse changed the update it was given: {_short(before)}"
        assert first == second, f"parse gave two different answers for the same update: {_short(before)}"
        assert first, f"parse dropped an update without a word; say Unsupported instead: {_short(before)}"
        for arrival in first:
            _check_times(arrival)


async def check_a_thread_can_be_continued(trial: Trial) -> None:
    """What participation needs: the thread or the replied-to message, and whether another person is mentioned."""
    from belino.config import AccessConfig, ChannelAccess
    from belino.domain.context import AgentSpoke, ChannelFacts
    from belino.gateway.access import decide

    for raw, continues in ((trial.in_thread, True), (trial.to_another, False)):
        (said,) = trial.parse(raw)
        assert isinstance(said, Message), f"not a message: {_short(raw)}"
        assert not said.addressed, f"addressed must be False without a mention of the agent: {_short(raw)}"
        in_thread = said.conversation.thread is not None or said.reply_to is not None
        assert in_thread, f"neither conversation.thread nor reply_to is set: {_short(raw)}"
        assert said.mentions_another is not continues, f"mentions_another must be {not continues}: {_short(raw)}"
        access = AccessConfig(channels={said.conversation.channel: ChannelAccess(senders=("*",))})
        verdict = decide(said, access, facts=ChannelFacts(spoke=AgentSpoke(at=said.sent, turn=1)))
        assert verdict.answer is continues, f"participation decides otherwise ({verdict.reason}): {_short(raw)}"


async def check_refs_are_plain_and_secret_free(trial: Trial) -> None:
    """The stored form of a ref is JSON and holds neither a secret nor an address."""
    for ref in _refs(trial):
        assert not ref.id, f"parse gave the ref of item {ref.item!r} an id; ids are given at intake"
        for name, held in (("locator", ref.locator), ("sealed", ref.sealed)):
            plain = json.loads(json.dumps(dict(held)))
            assert plain == dict(held), f"{name} of {ref.item!r} does not survive JSON; use strings only"
            assert all(isinstance(value, str) for value in plain.values()), f"{name} of {ref.item!r} must hold strings"
        for value in ref.locator.values():
            assert "://" not in value, f"the locator of {ref.item!r} holds a URL; keep the id it is made from"
    for sample in trial.samples:
        for arrival in trial.parse(sample):
            shown = json.dumps(_visible(arrival), default=str, ensure_ascii=False)
            for number, secret in enumerate(trial.secrets, 1):
                assert secret not in shown, f"secret number {number} of the trial stands in what parse returns"
    for number, secret in enumerate(trial.secrets, 1):
        assert secret not in repr(trial.make()), f"secret number {number} of the trial stands in the adapter's repr"


async def check_ids_round_trip(trial: Trial) -> None:
    """Conversations can be written and read back, and items of one message are distinguishable."""
    platform = type(trial.make()).platform
    for sample in trial.samples:
        for arrival in trial.parse(sample):
            key = arrival.conversation
            assert ConversationKey.parse(str(key)) == key, f"{key!r} does not survive being written as text"
            assert key.platform == platform, f"parse says platform {key.platform!r}, the adapter {platform!r}"
            assert arrival.id, "every arrival needs the platform's own id: duplicates are recognised by it"
            media = arrival.media if isinstance(arrival, Message) else ()
            items = [ref.item for ref in media]
            assert len(set(items)) == len(items), f"two items of message {arrival.id} share one item id: {items}"
            for ref in media:
                mine = (ref.platform, ref.account, ref.channel_id, ref.message_id)
                assert mine == (key.platform, key.account, key.channel, arrival.id), (
                    f"the ref of item {ref.item!r} does not name the message it came with"
                )


async def check_cancellation_is_prompt(trial: Trial) -> None:
    """A listening adapter stops when cancelled."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(trial.make().run(_accept, None))
        await asyncio.sleep(0)
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=WAIT_SECONDS)
        assert done, f"run() did not stop within {WAIT_SECONDS:g} s of being cancelled; re-raise CancelledError"
    assert running.cancelled(), "run() swallowed its cancellation; re-raise CancelledError"


async def check_says_when_it_is_connected(trial: Trial) -> None:
    """An adapter with `connected` is not connected before it runs, and soon after it starts."""
    adapter = trial.make()
    assert isinstance(adapter, Connects)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(adapter.connected())
        for _ in range(50):
            await asyncio.sleep(0)
        early = waiting.done()
        running = group.create_task(adapter.run(_accept, None))
        await asyncio.wait({waiting, running}, timeout=WAIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        late = not waiting.done()
        waiting.cancel()
        running.cancel()
    assert not early, "connected() returned before run() was called; parcels would leave before the platform let us in"
    assert not late, f"connected() did not return within {WAIT_SECONDS:g} s of run(); no parcel would ever leave"


async def check_a_parcel_is_seen_once(trial: Trial) -> None:
    """A sent parcel has a receipt; where the platform supports our keys, the same key gives the same message."""
    adapter = trial.make()
    parcel = Parcel(key="contract-parcel-1", conversation=trial.conversation, text="hello from the contract")
    first = await adapter.send(parcel)
    assert first.message_id, "a receipt must carry the platform's message id"
    assert _is_utc(first.sent), "a receipt's time must be in UTC"
    if adapter.limits.once is Once.KEY:
        again = await adapter.send(parcel)
        assert again.message_id == first.message_id, (
            "limits.once = KEY promises one message per key, but sending the same parcel twice made two; "
            "hand parcel.key to the platform, or say Once.UNCERTAIN"
        )
    elif isinstance(adapter, ReadsBack):
        found = await adapter.find_sent(parcel)
        assert found is not None, "find_sent() does not find a parcel that was just sent"
        assert found.message_id == first.message_id, "find_sent() found another message than the one sent"


async def check_a_draft_becomes_the_answer(trial: Trial) -> None:
    """A draft is one message, which edits and the answer change; and edits have a pace."""
    adapter = trial.make()
    assert isinstance(adapter, Drafts)
    pause = adapter.draft_pause(trial.conversation)
    assert pause is None or pause > 0, "draft_pause() must be None or some seconds, or edits would never end"
    draft = Parcel(key="contract-draft", conversation=trial.conversation, kind=ParcelKind.DRAFT, text="hello from …")
    shown = await adapter.send(draft)
    grown = await adapter.edit(shown.message_id, replace(draft, kind=ParcelKind.EDIT, text="hello from the …"))
    answer = replace(draft, kind=ParcelKind.EDIT, text="hello from the contract", edits=shown.message_id)
    sent = await adapter.send(answer)
    assert {grown.message_id, sent.message_id} == {shown.message_id}, (
        "an edit made another message than the draft; raise NothingToEdit if the platform cannot edit it"
    )


async def check_a_preview_is_no_message(trial: Trial) -> None:
    """A preview can be shown and changed under one key, or is refused as Undeliverable and not offered again."""
    adapter = trial.make()
    assert isinstance(adapter, StreamsDrafts)
    pause = adapter.stream_pause(trial.conversation)
    if pause is None:
        return
    assert pause > 0, "stream_pause() must be None or some seconds"
    draft = Parcel(key="contract-preview", conversation=trial.conversation, kind=ParcelKind.DRAFT, text="hello …")
    try:
        await adapter.stream_draft(draft)
        await adapter.stream_draft(replace(draft, text="hello from …"))
    except RateLimited:
        return  # the checks before have used up the pace; belino then sends the answer whole
    except Undeliverable:
        refused = adapter.stream_pause(trial.conversation)
        assert refused is None, "a refused preview must not be offered again: stream_pause() is None from then on"


async def check_bytes_stream_in_chunks(trial: Trial) -> None:
    """open_media yields exactly the platform's bytes, piece by piece."""
    tried = 0
    for ref in _refs(trial):
        if ref.item not in trial.media:
            continue
        tried += 1
        pieces: list[bytes] = []
        async with trial.make().open_media(ref) as chunks:
            async for piece in chunks:
                assert len(piece) <= LARGEST_CHUNK, (
                    f"open_media handed out {len(piece)} bytes at once; stream them, a file may be larger than memory"
                )
                pieces.append(piece)
        assert b"".join(pieces) == trial.media[ref.item], (
            f"open_media of {ref.item!r} gave other bytes than the platform"
        )
    assert tried, "no ref in the samples belongs to trial.media; its keys are the refs' `item`"


async def check_429_is_rate_limited(trial: Trial) -> None:
    """A rate limit is recognised, and its wait is reported to the second."""
    assert trial.refuse is not None
    trial.refuse(429, {"Retry-After": "7"})
    try:
        await trial.make().send(Parcel(key="contract-parcel-2", conversation=trial.conversation, text="hello again"))
    except RateLimited as error:
        assert abs(error.retry_after - 7) < 1, f"the platform asked for 7 s, RateLimited says {error.retry_after:g}"
        for number, secret in enumerate(trial.secrets, 1):
            assert secret not in str(error), f"secret number {number} of the trial stands in the error's text"
        return
    raise AssertionError(
        "an answer with status 429 must raise RateLimited(retry_after=…); see belino.net.client.error_for"
    )


async def check_401_is_unauthorized(trial: Trial) -> None:
    """Refused credentials are recognised: the account is shown as unauthorized, and no answer is lost."""
    assert trial.refuse is not None
    trial.refuse(401, {})
    try:
        await trial.make().send(
            Parcel(key="contract-parcel-3", conversation=trial.conversation, text="hello once more")
        )
    except AdapterError as error:
        for number, secret in enumerate(trial.secrets, 1):
            assert secret not in str(error), f"secret number {number} of the trial stands in the error's text"
        if isinstance(error, Unauthorized):
            return
    raise AssertionError("an answer with status 401 must raise Unauthorized; see belino.net.client.error_for")


async def check_nothing_is_acknowledged_before_it_is_stored(trial: Trial) -> None:
    """The platform gets an acknowledgement only after accept() returned: before that it must redeliver."""
    assert trial.deliver is not None
    adapter = trial.make()
    asked, may_store = asyncio.Event(), asyncio.Event()

    async def accept(arrival: Arrival, *, cursor: str | None = None) -> Taken:
        asked.set()
        await may_store.wait()
        return Taken(outcome=MessageOutcome.WAITING)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(adapter.run(accept, None))
        delivery = group.create_task(_awaited(trial.deliver(adapter, deepcopy(trial.samples[0]))))
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asked.wait()
            for _ in range(50):
                await asyncio.sleep(0)
            assert not delivery.done(), "the platform was told an update is seen before accept() returned"
            may_store.set()
            async with asyncio.timeout(WAIT_SECONDS):
                await delivery
        except TimeoutError:
            what = "told the platform that it is seen" if asked.is_set() else "passed it to accept()"
            raise AssertionError(f"an update was delivered, but the adapter never {what}") from None
        finally:
            delivery.cancel()
            running.cancel()


async def check_cassettes_replay(trial: Trial) -> None:
    """A replay gives the same results: arrivals, outcomes, prompts, calls and parcels."""
    for path in trial.cassettes:
        await check_cassette(path)


async def _accept(arrival: Arrival, *, cursor: str | None = None) -> Taken:
    return Taken(outcome=MessageOutcome.WAITING)


async def _awaited(delivery: Awaitable[None]) -> None:
    await delivery


def _refs(trial: Trial) -> Iterable[MediaRef]:
    for sample in trial.samples:
        for arrival in trial.parse(sample):
            if isinstance(arrival, Message):
                yield from arrival.media


def _visible(value: object) -> Any:
    """A value as JSON-like pieces; without `sealed`, which is encrypted before it is shown."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _visible(getattr(value, f.name)) for f in fields(value) if f.name != "sealed"}
    if isinstance(value, Mapping):
        return {str(key): _visible(inner) for key, inner in value.items()}
    return [_visible(inner) for inner in value] if isinstance(value, tuple | list) else value


def _check_times(arrival: Arrival) -> None:
    assert _is_utc(arrival.sent), f"arrival {arrival.id} says {arrival.sent!r}; times must be aware and in UTC"


def _is_utc(moment: datetime) -> bool:
    return moment.utcoffset() == timedelta(0)


def _short(sample: object) -> str:
    text = repr(sample)
    return text if len(text) <= 200 else text[:199] + "…"
