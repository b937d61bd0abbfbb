"""Readings in the prompt: what a message says, in its author's words and in the text of its media.

That text is in a body that it cannot imitate. One image, sound or video: `[Audio]`, `User text:` if there is any, then
`Transcript:` or `Description:`. Several: the user's text first, then each under `[Audio 1/2]`. Documents follow as
`<file>` blocks.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from belino.domain.graphemes import cut
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import UNKNOWN_NAME, Quote, SpokenText
from belino.domain.outcome import MessageOutcome
from belino.domain.reading import MediaCapability, Reading
from belino.domain.safe_text import clean_mime, clean_name, disarm, fold, one_line
from belino.domain.stored import StoredMessage

LABEL = "read from media:"
MARKERS_AT_MOST = 5

_HEADS = {MediaCapability.IMAGE: "Image", MediaCapability.AUDIO: "Audio", MediaCapability.VIDEO: "Video"}
_TITLES = {"transcription": "Transcript", "description": "Description", "text": "Text"}
_FORMS = {"transcription": "transcript", "description": "description", "text": "text"}
# The lines of a message that are ours; a line of a reading that begins like one is quoted.
_OURS = re.compile(
    r"\W*(?:image|audio|video|voice|document|sticker)\W*(?:[0-9]+\W*){0,2}[\]:]"
    r"|\W*(?:user\W+text|text|(?:quoted\W+|forwarded\W+)?transcript|description)\b[^:\n]{0,60}:"
    r"|\W*(?:read\W+from\W+media|not\W+read|from|time|album|edited|in\W+reply\W+to|forwarded\W+from)\b[^:\n]{0,120}:"
    r"|\W*<\W*file\b|\W*<<<"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaMarker:
    """Why an attachment of the message has no text."""

    ref: MediaRef
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaText:
    """What was read from the media of one message."""

    media: Sequence[MediaRef]
    """The attachments, which the readings name by their index."""
    readings: Sequence[Reading] = ()
    """In the order image, audio, video, document."""
    markers: Sequence[MediaMarker] = ()
    uncounted: int = 0
    """Attachments without text beyond those that have a marker."""

    def covers(self, quote: Quote | None) -> bool:
        """Whether some media of a quoted or forwarded message is read here."""
        read = {self.media[reading.attachment_index].id for reading in self.readings}
        return quote is not None and any(ref.id in read for ref in quote.media)


def words_of(message: StoredMessage) -> str:
    """What a message says: what is written, then what is spoken."""
    if (
        not message.media and message.text and not message.text.isspace()
    ):  # most messages; all are read in a long thread
        return message.text
    return _with_spoken(written_in(message), message.spoken)


def carried_words(quote: Quote) -> str:
    """The same for a message carried inside another."""
    return _with_spoken(quote.text, quote.spoken)


def written_in(message: StoredMessage) -> str:
    """A message's own words, else a description of unsupported content."""
    return own_words(message) or (f"({message.reason})" if message.outcome is MessageOutcome.UNSUPPORTED else "")


def own_words(message: StoredMessage) -> str:
    """What the author wrote: the text, and the captions that are not part of it."""
    text = message.text if message.text.strip() else ""
    if not message.media:
        return text
    captions = dict.fromkeys(ref.caption for ref in message.media if ref.caption and ref.caption.strip())
    return "\n".join(filter(None, (text, *(caption for caption in captions if caption not in text))))


def stored_text(message: StoredMessage) -> MediaText | None:
    """What was read from a message's own voice earlier; None if nothing was."""
    if message.spoken is None:
        return None
    at = next(place for place, ref in enumerate(message.media) if ref.kind is MediaKind.VOICE)
    reading = Reading(
        kind="audio.transcription",
        text=message.spoken.text,
        provider="",
        model="",
        attachment_index=at,
        uncertain=message.spoken.uncertain,
    )
    return MediaText(media=message.media, readings=(reading,))


def body_lines(words: str, read: MediaText, *, chars: int) -> list[str]:
    """The user's words and everything that was read, with at most so many characters of the latter."""
    groups = _groups(read)
    seen = [group for group in groups if group.capability is not MediaCapability.DOCUMENT]
    room = _Room(chars)
    lines: list[str] = []
    if len(groups) == 1 and seen:
        lines += [LABEL, f"[{_HEADS[seen[0].capability]}]", *_user_text(words), *_told(seen[0], room)]
    else:
        lines += [*(_user_text(words) if seen else _plain_text(words)), *([LABEL] if groups else [])]
        of_kind, number = Counter(group.capability for group in seen), Counter[MediaCapability]()
        for group in seen:
            number[group.capability] += 1
            place = f" {number[group.capability]}/{of_kind[group.capability]}" if of_kind[group.capability] > 1 else ""
            lines += [f"[{_HEADS[group.capability]}{place}]", *_told(group, room)]
        for group in groups:
            if group.capability is MediaCapability.DOCUMENT:
                lines += _file(group, room)
    return [*lines, *_marker_lines(read)]


def media_text(text: str) -> str:
    """A reading's text for an agent: nothing invisible, no placeholder, no line that passes for one of ours."""
    return "\n".join(f"> {line}" if _OURS.match(fold(line)) else line for line in disarm(text).split("\n"))


def spoken_lines(reading: Reading) -> str:
    """The text of a transcript; who speaks is named where the provider tells speakers apart."""
    if not any(segment.speaker for segment in reading.segments):
        return reading.text
    turns = groupby(reading.segments, key=lambda segment: segment.speaker)
    return "\n".join(
        f"{clean_name(speaker) or UNKNOWN_NAME}: {' '.join(segment.text for segment in said)}"
        for speaker, said in turns
    )


def _with_spoken(written: str, spoken: SpokenText | None) -> str:
    if spoken is None:
        return written
    return f"{written}\n{spoken.text}" if written.strip() else spoken.text


@dataclass(frozen=True, slots=True)
class _Group:
    """The readings of one attachment."""

    capability: MediaCapability
    ref: MediaRef
    readings: tuple[Reading, ...]


class _Room:
    """The characters that are left for readings."""

    def __init__(self, chars: int) -> None:
        self._left = chars

    def take(self, text: str) -> tuple[str, bool]:
        """As much of the text as there is room for, and whether that is all of it."""
        is_whole = len(text) <= self._left
        kept = text if is_whole else cut(text, self._left) if self._left > 0 else ""
        self._left -= len(kept)
        return kept, is_whole


def _groups(read: MediaText) -> list[_Group]:
    order = list(MediaCapability)
    found: dict[tuple[int, int], list[Reading]] = {}
    for reading in read.readings:
        capability = MediaCapability(reading.kind.partition(".")[0])
        found.setdefault((order.index(capability), reading.attachment_index), []).append(reading)
    return [_Group(order[at], read.media[index], tuple(found[at, index])) for at, index in sorted(found)]


def _user_text(words: str) -> list[str]:
    return ["User text:", disarm(words)] if words.strip() else []


def _plain_text(words: str) -> list[str]:
    return ["text:", disarm(words)] if words.strip() else []


def _told(group: _Group, room: _Room) -> Iterator[str]:
    for reading in group.readings:
        what = reading.kind.partition(".")[2]
        text, is_whole = room.take(media_text(spoken_lines(reading)))
        doubt = " (uncertain: parts of it may be wrong)" if reading.uncertain else ""
        yield f"{_TITLES[what]}{doubt}:"
        if text:
            yield text
        if not is_whole:
            yield f"(cut here; fetch_media with ref={group.ref.id}, as={_FORMS[what]} has all of it)"


def _file(group: _Group, room: _Room) -> Iterator[str]:
    name, mime = clean_name(group.ref.file_name or "") or group.ref.id, clean_mime(group.ref.mime)
    yield f'<file name="{html.escape(name)}" mime="{html.escape(mime)}">'
    for reading in group.readings:
        text, is_whole = room.take(media_text(reading.text))
        yield _escaped(text)
        if not is_whole:
            yield f"(cut here; fetch_media with ref={group.ref.id}, as=text has all of it)"
    yield "</file>"


def _escaped(text: str) -> str:
    """Without anything that opens or closes a file block."""
    return re.sub(r"[<＜﹤‹〈](?=\s*[/∕⁄／]?\s*file)", "&lt;", text, flags=re.IGNORECASE)


def _marker_lines(read: MediaText) -> list[str]:
    lines = [
        f"not read: {clean_name(marker.ref.file_name or '') or marker.ref.id}: {one_line(marker.why)}"
        for marker in read.markers[:MARKERS_AT_MOST]
    ]
    left = len(read.markers) - len(lines) + read.uncounted
    return [*lines, f"not read: {left} more"] if left > 0 else lines
