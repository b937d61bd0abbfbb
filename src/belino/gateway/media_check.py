"""Media check: send a picture, a voice note, a document and an album, read back what the platform stored, compare."""

import hashlib
import secrets
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from belino.aio.deadline import deadline
from belino.delivery.attempt import KEPT_AS_THEY_ARE
from belino.delivery.connections import Account
from belino.delivery.decide import Action, Decision
from belino.delivery.outgoing_files import Keeper
from belino.delivery.plan import plan
from belino.delivery.prepare import Preparer
from belino.domain.errors import AdapterError, BelinoError, ConfigError, MediaError, RateLimited, StoreError, reason_of
from belino.domain.limits import SendAs
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey
from belino.domain.outcome import Finding
from belino.domain.ports import Adapter, Clock, Deletes
from belino.domain.reply import Offer, OutgoingFile, Parcel, Receipt, Reply, StoredFile, call_seconds
from belino.domain.units import format_size
from belino.gateway.owners import Owners
from belino.media.image.header import image_size
from belino.media.trial import SAMPLES
from belino.net.tap import on_behalf
from belino.storage.store import Store

READ_BYTES = 1024 * 1024
"""More than any sample has."""
READ_SECONDS = 30.0
DELETE_SECONDS = 15.0
LONGEST_WAIT = 30.0
TRIES = 3
CAPTION = "A test of media by belino"

Open = Callable[[MediaRef], AbstractAsyncContextManager[AsyncIterator[bytes]]]
Attempted = Callable[[Exception | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTrial:
    """One kind of media, by the samples that stand for it."""

    kind: str
    samples: tuple[str, ...]
    wanted: SendAs


TRIALS = (
    MediaTrial(kind="picture", samples=("picture.jpg",), wanted=SendAs.PHOTO),
    MediaTrial(kind="voice note", samples=("sound.ogg",), wanted=SendAs.VOICE),
    MediaTrial(kind="document", samples=("report.pdf",), wanted=SendAs.DOCUMENT),
    MediaTrial(kind="album", samples=("picture.jpg", "picture.png"), wanted=SendAs.PHOTO),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaCheckTools:
    """The parts of a gateway that a check sends and reads with."""

    keeper: Keeper
    preparer: Preparer
    open_ref: Open


class Checkable(Protocol):
    """The part of a gateway whose media is checked."""

    @property
    def store(self) -> Store: ...
    @property
    def adapters(self) -> Mapping[Account, Adapter]: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def web(self) -> object: ...
    @property
    def clock(self) -> Clock: ...


async def check_media(
    gateway: Checkable, account: Account, to: ConversationKey | None, *, tools: MediaCheckTools, attempted: Attempted
) -> tuple[Finding, ...]:
    """Check an account in a conversation, by default with its first owner; ConfigError if there is none."""
    name, adapter = ":".join(account), gateway.adapters.get(account)
    if adapter is None or adapter is gateway.web:
        raise ConfigError(f"{name} is no account on a platform; `belino status` lists the accounts")
    where = to or await gateway.owners.direct_on(account)
    if where is None or (where.platform, where.account) != account:
        raise ConfigError(f"name a conversation of {name} to send the test to (--to CONVERSATION)")
    check = MediaCheck(gateway.store, adapter, where, tools=tools, attempted=attempted, clock=gateway.clock)
    return await check.run()


class CannotBeSent(BelinoError):
    """A sample cannot be sent on this platform, by its limits."""


class MediaCheck:
    """Checks the media of one account in one conversation; its messages are not stored, and deleted where possible."""

    def __init__(
        self,
        store: Store,
        adapter: Adapter,
        to: ConversationKey,
        *,
        tools: MediaCheckTools,
        attempted: Attempted,
        clock: Clock,
    ) -> None:
        """`attempted` is called with the result of every send."""
        self._store = store
        self._adapter = adapter
        self._to = to
        self._keeper = tools.keeper
        self._preparer = tools.preparer
        self._open = tools.open_ref
        self._attempted = attempted
        self._clock = clock

    async def run(self) -> tuple[Finding, ...]:
        """One finding for each kind of media."""
        return tuple([await self._tried(trial) for trial in TRIALS])

    async def _tried(self, trial: MediaTrial) -> Finding:
        name = f"{self._to.platform}:{self._to.account} {trial.kind}"
        receipts: list[Receipt] = []
        try:
            says = await self._sent(trial, receipts)
            ok = True
        except (AdapterError, CannotBeSent, MediaError, StoreError, TimeoutError) as error:
            says, ok = (reason_of(error) if isinstance(error, BelinoError) else "no answer in time"), False
        deleted = await self._deleted(receipts)
        return Finding(name=name, ok=ok, says="; ".join(part for part in (says, deleted) if part))

    async def _sent(self, trial: MediaTrial, receipts: list[Receipt]) -> str:
        """Send the samples of a kind, and compare what is read back; the receipts tell what is to be deleted."""
        parcels = await self._parcels(trial)
        told: list[str] = []
        for parcel in parcels:
            receipt = await self._send(parcel)
            receipts.append(receipt)
            stored = receipt.stored or (StoredFile(),) * len(parcel.files)
            if len(stored) != len(parcel.files):
                raise CannotBeSent(f"the platform stored {len(stored)} of {len(parcel.files)} files")
            told += [await self._compared(file, kept) for file, kept in zip(parcel.files, stored, strict=True)]
        if len(trial.samples) > 1 and len(parcels) > 1:
            told.append(f"in {len(parcels)} messages, as the platform has no albums")
        return "; ".join(dict.fromkeys(told))

    async def _parcels(self, trial: MediaTrial) -> tuple[Parcel, ...]:
        offers = [replace(await self._offer(name), wanted=trial.wanted) for name in trial.samples]
        decisions = await self._preparer.prepare(offers, self._adapter.limits)
        for decision in decisions:
            _must_be_sent(decision)
        reply = Reply(conversation=self._to, text="")
        trace = f"media-check-{secrets.token_hex(8)}"
        planned = plan(reply, decisions, self._adapter.limits, turn=0, trace=trace)
        parcels = (replace(each, files=tuple(self._store.opened(file) for file in each.files)) for each in planned)
        found = tuple(parcel for parcel in parcels if parcel.files)
        if self._adapter.limits.fetches_files:
            for file in (file for parcel in found for file in parcel.files):
                await self._hold(file)
        return found

    async def _hold(self, file: OutgoingFile) -> None:
        """Keep bytes for an hour as an upload that no message takes: links to them end with their last use."""
        upload = await self._store.start_upload(
            self._to, file_name=file.name, mime=file.mime, size=file.size, sha256=file.sha256, resumable=False
        )
        await self._store.extend_upload(upload.id, 0, file.chunks())

    async def _offer(self, name: str) -> Offer:
        with zipfile.ZipFile(SAMPLES) as archive:
            content = archive.read(name)
        return replace(await self._keeper.keep(_once(content), name=f"belino-test-{name}"), caption=CAPTION)

    async def _send(self, parcel: Parcel) -> Receipt:
        """One visible call, made again if the platform asks for a short wait."""
        for attempt in range(1, TRIES + 1):
            try:
                async with deadline(self._clock, call_seconds(sum(file.size for file in parcel.files))):
                    with on_behalf(parcel.conversation, parcel.trace, parcel.kind):
                        receipt = await self._adapter.send(parcel)
            except RateLimited as error:
                if attempt == TRIES or error.retry_after > LONGEST_WAIT:
                    raise
                await self._clock.sleep(error.retry_after)
            except AdapterError as error:
                self._attempted(error)
                raise
            else:
                self._attempted(None)
                return receipt
        raise AssertionError("the last attempt returns or raises")

    async def _compared(self, file: OutgoingFile, stored: StoredFile) -> str:
        """What the platform stored of a file, in words; MediaError if it is another one."""
        form = stored.form or file.send_as
        if form is not file.send_as:
            raise CannotBeSent(f"sent as {file.send_as}, and stored as {form}")
        if stored.ref is None:
            return f"sent as {form}; the platform does not say what it stored"
        async with deadline(self._clock, READ_SECONDS):
            content = await self._read(stored.ref)
        if hashlib.sha256(content).hexdigest() == file.sha256:
            return f"sent as {form} and read back, unchanged ({format_size(len(content))})"
        if form in KEPT_AS_THEY_ARE:
            raise CannotBeSent(f"sent as {form}: {file.size} bytes were sent, and {len(content)} others read back")
        return _alike(form, file, content)

    async def _read(self, ref: MediaRef) -> bytes:
        content = bytearray()
        async with self._open(ref) as chunks:
            async for piece in chunks:
                content += piece
                if len(content) > READ_BYTES:
                    raise CannotBeSent(f"more than {READ_BYTES} bytes are read back")
        return bytes(content)

    async def _deleted(self, receipts: Sequence[Receipt]) -> str:
        """Delete the messages again; a sentence if they stay."""
        ids = [own for receipt in receipts for own in (receipt.message_id, *receipt.also)]
        if not ids:
            return ""
        if not isinstance(self._adapter, Deletes):
            return "its messages stay: the platform cannot delete them"
        try:
            async with deadline(self._clock, DELETE_SECONDS):
                for own in ids:
                    await self._adapter.delete(self._to, own)
        except (AdapterError, TimeoutError) as error:
            why = reason_of(error) if isinstance(error, AdapterError) else "no answer in time"
            return f"its messages stay: {why}"
        return "deleted"


def _must_be_sent(decision: Decision) -> None:
    if decision.action is not Action.SEND:
        raise CannotBeSent(f"it cannot be sent here: {decision.reason}")


def _alike(form: SendAs, file: OutgoingFile, content: bytes) -> str:
    """A file that platforms encode again: its kind and its dimensions must be the same."""
    found = image_size(content)
    if found is None:
        raise CannotBeSent(f"sent as {form}, and something that is no picture is read back")
    mime, width, height = found
    if (width, height) != (file.width, file.height):
        raise CannotBeSent(f"sent as {form} with {file.width}×{file.height} pixels, read back with {width}×{height}")
    return f"sent as {form} and read back, encoded again ({mime}, {width}×{height}, {format_size(len(content))})"


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
