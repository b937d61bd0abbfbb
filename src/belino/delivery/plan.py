"""Plan a reply as parcels: one platform call each, within the adapter's limits, with keys that survive a retry."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from belino.delivery.decide import Action, Decision
from belino.delivery.markup import as_code, literal
from belino.delivery.text import Text, caption, length, plain_text, texts
from belino.domain.limits import Limits
from belino.domain.reply import Offer, OutgoingFile, Parcel, ParcelKind, Reply

REFUSALS_TOLD = 5
UNPREPARED = "it was not made ready to be sent"
_SILENT = Text(text="")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """The content of one call, before it has a key."""

    text: Text = _SILENT
    files: tuple[OutgoingFile, ...] = ()


def plan(
    reply: Reply, decisions: Sequence[Decision], limits: Limits, *, turn: int, trace: str, retries: int = 0
) -> tuple[Parcel, ...]:
    """The parcels of a turn's reply, in sending order; none for a reply without visible content.

    Files come first, in the order they were named, then the text, which names refused files with the reason. Where text
    is sent with files, it is sent with the first that take it.
    """
    leaving = [decision for decision in decisions if decision.action is Action.SEND]
    albums = list(_albums(leaving, limits))
    words = "\n\n".join(part for part in (reply.text.strip("\r\n"), _refusals(decisions)) if part.strip())
    carrier = next((place for place, album in enumerate(albums) if _carries_text(album, limits)), None)
    if not _fits_comment(texts(words, limits), limits):
        carrier = None
    loads: list[_Load] = []
    for place, album in enumerate(albums):
        loads.extend(_loads(album, limits, words if place == carrier else ""))
    if carrier is None:
        loads.extend(_Load(text=text) for text in texts(words, limits))
    keys = [parcel_key(turn, position, trace, retries=retries) for position in range(len(loads))]
    return tuple(_parcel(load, reply, limits, position, keys[position], trace) for position, load in enumerate(loads))


def parcel_key(turn: int, position: int, trace: str, *, retries: int = 0) -> str:
    """The same key for the same turn and position, so that an answer planned twice is shown once.

    A retry changes the keys: the apology was a separate parcel, and the new answer must not be mistaken for it.
    """
    return f"p-{turn}-{position}-{turn_hash(trace, retries)}"


def turn_hash(trace: str, retries: int) -> str:
    """Identifies one run of a turn in the keys of its parcels; it stays the same across crashes."""
    seed = f"{trace} {retries}" if retries else trace
    return sha256(seed.encode()).hexdigest()[:12]


def _parcel(load: _Load, reply: Reply, limits: Limits, position: int, key: str, trace: str) -> Parcel:
    return Parcel(
        key=key,
        conversation=reply.conversation,
        kind=ParcelKind.FILES if load.files else ParcelKind.TEXT,
        text=load.text.text,
        plain=load.text.plain,
        rich=load.text.rich,
        markup=limits.markup,
        files=load.files,
        reply_to=reply.reply_to if position == 0 else None,
        trace=trace,
    )


def _albums(leaving: Sequence[Decision], limits: Limits) -> Iterator[list[Decision]]:
    """Group adjacent files that may share a call, up to its limit; the order stays."""
    album: list[Decision] = []
    for decision in leaving:
        if album and not _joins(album, decision, limits):
            yield album
            album = []
        album.append(decision)
    if album:
        yield album


def _joins(album: Sequence[Decision], decision: Decision, limits: Limits) -> bool:
    forms = {each.send_as for each in (*album, decision)}
    size = sum(each.offer.size for each in (*album, decision))
    return (
        len(album) < limits.album_items
        and any(forms <= mix for mix in limits.album_mixes)
        and (limits.album_bytes is None or size <= limits.album_bytes)
    )


def _loads(album: Sequence[Decision], limits: Limits, words: str) -> Iterator[_Load]:
    """The files in one call, and the captions that do not fit: in the same call where it takes text, else after it."""
    files, left = [], list[tuple[Offer, str]]()
    for decision in album:
        shown = _own_caption(decision, limits)
        if shown is None:
            left.append((decision.offer, decision.offer.caption))
        files.append(_outgoing(decision, shown or _SILENT))
    said = texts("\n\n".join(part for part in (_captions(left, alone=len(album) == 1), words) if part), limits)
    if said and _carries_text(album, limits) and _fits_comment(said, limits):
        yield _Load(files=tuple(files), text=said[0])
        said = said[1:]
    else:
        yield _Load(files=tuple(files))
    yield from (_Load(text=text) for text in said)


def _own_caption(decision: Decision, limits: Limits) -> Text | None:
    """The caption that is sent with a file; None if it must follow as text."""
    words = decision.offer.caption
    if not words.strip():
        return _SILENT
    limit = limits.files.get(decision.send_as)
    return caption(words, limits) if limit is None or limit.caption else None


def _carries_text(album: Sequence[Decision], limits: Limits) -> bool:
    """Whether text may be sent in the same call as these files."""
    forms = (limits.files.get(decision.send_as) for decision in album)
    return limits.text_with_files and not any(limit is not None and limit.alone for limit in forms)


def _fits_comment(said: Sequence[Text], limits: Limits) -> bool:
    """Whether text may be sent with files: it is short enough, and needs no richer format, which files do not have."""
    most = limits.comment_chars
    return most is None or (sum(length(text, limits) for text in said) <= most and not any(text.rich for text in said))


def _captions(left: Sequence[tuple[Offer, str]], *, alone: bool) -> str:
    """Captions as text: for one file as they are, for several each with its file's name."""
    if alone:
        return "\n\n".join(words for _, words in left)
    return "\n\n".join(f"{as_code(offer.name)}: {words}" for offer, words in left)


def _refusals(decisions: Sequence[Decision]) -> str:
    """What is not sent, and why: the last few by name, the rest counted; with all captions."""
    refused = [decision for decision in decisions if decision.action is not Action.SEND]
    lines = [f"{as_code(each.offer.name)} was not sent: {literal(_why(each))}." for each in refused[-REFUSALS_TOLD:]]
    if len(refused) > REFUSALS_TOLD:
        lines.insert(0, f"{len(refused) - REFUSALS_TOLD} more files were not sent.")
    return "\n".join([*(each.offer.caption for each in refused if each.offer.caption.strip()), *lines])


def _why(decision: Decision) -> str:
    if decision.action is not Action.REFUSE:
        return UNPREPARED
    return decision.reason.rstrip(".") or "no reason was given"


def _outgoing(decision: Decision, shown: Text) -> OutgoingFile:
    offer = decision.offer
    file = OutgoingFile(
        name=offer.name,
        mime=offer.mime,
        size=offer.size,
        sha256=offer.sha256,
        send_as=decision.send_as,
        width=offer.width,
        height=offer.height,
        seconds=offer.seconds,
        waveform=offer.waveform,
        pending=offer.pending,
        source=offer.source,
    )
    return replace(file, caption=shown.text, plain=shown.plain, alt=_alt(offer))


def _alt(offer: Offer) -> str:
    """The alternative text of a picture: the one given, else its caption without markup."""
    return (offer.alt.strip() or plain_text(offer.caption)) if offer.mime.startswith("image/") else ""
