"""Attempt to send one parcel: check whether it arrived before, make one call within the lease, compare the receipt."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from belino.aio.deadline import deadline
from belino.delivery.typing import upload_shown
from belino.domain.errors import AdapterError, MarkupRefused, PlaceClosed, Unanswered, Undeliverable, Unfindable
from belino.domain.failpoints import failpoint
from belino.domain.limits import Limits, Markup, Once, SendAs
from belino.domain.ports import Adapter, Clock, ReadsBack, SendsUnkeyed
from belino.domain.reply import CALL_SECONDS, Doubt, OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile, call_seconds
from belino.domain.stored import ClaimedParcel
from belino.net.tap import on_behalf

NOTICE_CHARS = 300
KEPT_AS_THEY_ARE = frozenset({SendAs.DOCUMENT, SendAs.AUDIO, SendAs.VOICE})
"""Forms that platforms store unchanged, so that the size must match; pictures and videos are re-encoded."""


class Uncertain(AdapterError):
    """It may have arrived, and this cannot be checked: the operator decides whether to send it again."""


class TooLate(AdapterError):
    """The lease would end before the call does: only the next claimant may send."""


async def call(
    adapter: Adapter,
    claimed: ClaimedParcel,
    *,
    until: float,
    resend: bool,
    clock: Clock,
    plainly: Callable[[], Awaitable[None]],
) -> Receipt:
    """Send the parcel, once, and return the platform's receipt.

    `until` is when, on the monotonic clock, the lease ends. `resend`: a parcel that may have arrived is sent again.
    `plainly` is called before the parcel is sent again in a simpler format, at last without markup.
    """
    found = await _find(adapter, claimed, resend=resend, clock=clock)
    if found is not None:
        return found
    formats = [claimed.parcel, plain(claimed.parcel)]
    if claimed.parcel.rich:
        formats.insert(1, replace(claimed.parcel, rich=""))
    for simpler, parcel in enumerate(formats, 1):
        try:
            return await _send(adapter, parcel, until, clock)
        except MarkupRefused as error:
            if simpler == len(formats):
                raise Undeliverable(f"{error}, also without markup") from error
            await plainly()
    raise AssertionError("the last format is sent or refused")


def plain(parcel: Parcel) -> Parcel:
    """The same parcel without markup."""
    files = tuple(replace(file, caption=file.plain or file.caption, plain="") for file in parcel.files)
    return replace(parcel, text=parcel.plain or parcel.text, plain="", rich="", markup=Markup.PLAIN, files=files)


def without(parcel: Parcel, culprit: int) -> tuple[Parcel, ...]:
    """The parcel without the file at a place, and that file as a document, which accepts anything."""
    refused = replace(parcel.files[culprit], send_as=SendAs.DOCUMENT)
    left = parcel.files[:culprit] + parcel.files[culprit + 1 :]
    key = f"{parcel.key}-{refused.sha256[:12]}"  # of several that are refused in turn, each has its own
    return replace(parcel, files=left), replace(parcel, key=key, files=(refused,), text="", plain="", reply_to=None)


def apart(parcel: Parcel) -> tuple[Parcel, ...]:
    """Each file of a parcel in its own parcel; the first keeps the key and the text."""
    first, *others = parcel.files
    return replace(parcel, files=(first,)), *(
        replace(parcel, key=f"{parcel.key}-{number}", files=(file,), text="", plain="", reply_to=None)
        for number, file in enumerate(others, 1)
    )


def in_parent(parcel: Parcel, limits: Limits, closed: PlaceClosed) -> tuple[Parcel, ...]:
    """The parcel for the channel of its closed thread, with a line that says why: in its text, or after it."""
    parent = replace(parcel.conversation, thread=None)
    kind = ParcelKind.TEXT if parcel.kind is ParcelKind.EDIT else parcel.kind
    there = replace(parcel, conversation=parent, kind=kind, edits=None, reply_to=closed.reply_to)
    if not closed.is_told:
        return (there,)
    line = f"This answer is here because {closed}."
    text, plain, rich = (part and f"{line}\n\n{part}" for part in (parcel.text, parcel.plain, parcel.rich))
    fits = max(limits.unit.length(text), limits.unit.length(plain)) <= limits.text_chars
    if parcel.files or not parcel.text or not fits:
        return there, Parcel(key=f"{parcel.key}-moved", conversation=parent, text=line, trace=parcel.trace)
    rich = rich if len(rich) <= limits.rich_chars else ""
    return (replace(there, text=text, plain=plain, rich=rich),)


def notices_of(parcel: Parcel, reason: str) -> tuple[Parcel, ...]:
    """The text sent in place of refused files: all their captions, then their names and the reason."""
    words = [replace(parcel, key=f"{parcel.key}-words", kind=ParcelKind.TEXT, files=())] if parcel.text else []
    names = ", ".join(file.name for file in parcel.files)
    said = [file.plain or file.caption for file in parcel.files]
    if len(said) > 1:
        said = [caption and f"{file.name}: {caption}" for file, caption in zip(parcel.files, said, strict=True)]
    notice = f"{names} could not be sent: {reason}"
    told = {f"caption-{number}": caption for number, caption in enumerate(said) if caption}
    told["notice"] = notice if len(notice) <= NOTICE_CHARS else f"{notice[: NOTICE_CHARS - 1]}…"
    return *words, *(
        Parcel(key=f"{parcel.key}-{what}", conversation=parcel.conversation, text=text, trace=parcel.trace)
        for what, text in told.items()
    )


def is_repeatable(adapter: Adapter, parcel: Parcel) -> bool:
    """Whether sending twice shows it once: the platform knows our idempotency key, or the parcel is an edit."""
    keyed = adapter.limits.once is Once.KEY and parcel.only_to is None  # a private answer carries no key
    return (keyed and not was_unkeyed(adapter, parcel)) or parcel.kind is ParcelKind.EDIT


def was_unkeyed(adapter: Adapter, parcel: Parcel) -> bool:
    """Whether a call for the parcel was made without the key that others carry."""
    return isinstance(adapter, SendsUnkeyed) and adapter.was_unkeyed(parcel)


def size_of(parcel: Parcel) -> int:
    """The size of its files in bytes."""
    return sum(file.size for file in parcel.files)


def difference(parcel: Parcel, receipt: Receipt) -> str:
    """What differs from the plan, in words; empty if nothing does, or the platform does not say."""
    if receipt.stored is None:
        return ""
    if len(receipt.stored) != len(parcel.files):
        return f"the platform stored {len(receipt.stored)} of {len(parcel.files)} files"
    pairs = zip(parcel.files, receipt.stored, strict=True)
    return "; ".join(told for file, stored in pairs for told in _file_difference(file, stored))


async def _find(adapter: Adapter, claimed: ClaimedParcel, *, resend: bool, clock: Clock) -> Receipt | None:
    """The receipt of a parcel that arrived without one; None if it must be sent."""
    forgotten = _is_forgotten(adapter, claimed, clock)
    if claimed.doubt is Doubt.NONE or (is_repeatable(adapter, claimed.parcel) and not forgotten):
        return None
    if isinstance(adapter, ReadsBack):
        try:
            async with deadline(clock, CALL_SECONDS):
                failpoint("parcel.find.before")
                return await adapter.find_sent(claimed.parcel)
        except Unfindable as error:
            _check_doubt(claimed, resend=resend, reason=str(error))
            return None
        except TimeoutError:
            # This was only a lookup: nothing new can have arrived.
            raise AdapterError(f"the platform did not say within {CALL_SECONDS:g} seconds whether it arrived") from None
    _check_doubt(claimed, resend=resend, reason="belino stopped while sending it")
    return None


def _check_doubt(claimed: ClaimedParcel, *, resend: bool, reason: str) -> None:
    """Raise Uncertain for a parcel that may have arrived, unless it is to be sent again."""
    again = claimed.insisted or (resend and claimed.doubt < Doubt.AGAIN)
    if claimed.doubt >= Doubt.UNANSWERED and not again:
        raise Uncertain(f"{reason}; it may have arrived")


def _is_forgotten(adapter: Adapter, claimed: ClaimedParcel, clock: Clock) -> bool:
    """Whether the platform may have dropped the idempotency key of an earlier call."""
    limits = adapter.limits
    if limits.once is not Once.KEY or limits.key_seconds is None or claimed.parcel.kind is ParcelKind.EDIT:
        return False
    return (clock.now() - claimed.created).total_seconds() > limits.key_seconds


async def _send(adapter: Adapter, parcel: Parcel, until: float, clock: Clock) -> Receipt:
    seconds = call_seconds(size_of(parcel))
    # A process that was suspended after its claim must not send what another has claimed since: a fencing token in
    # the store cannot stop a platform call, so the lease is checked against our own clock.
    if clock.monotonic() + seconds > until:
        raise TooLate("belino was delayed before the call; the call is made again")
    try:
        async with deadline(clock, seconds), upload_shown(adapter, parcel, clock):
            with on_behalf(parcel.conversation, parcel.trace, parcel.kind):
                failpoint("parcel.send.before")
                receipt = await adapter.send(parcel)
                failpoint("parcel.send.after")
                return receipt
    except TimeoutError:
        raise Unanswered(f"the platform did not answer within {seconds:g} seconds") from None


def _file_difference(file: OutgoingFile, stored: StoredFile) -> list[str]:
    told = []
    if stored.form not in (None, file.send_as):
        told.append(f"{file.name}: sent as {stored.form} instead of {file.send_as}")
    if (
        stored.size not in (None, file.size)
        and file.send_as in KEPT_AS_THEY_ARE
        and stored.form in (None, file.send_as)
    ):
        told.append(f"{file.name}: the platform holds {stored.size} of {file.size} bytes")
    return told
