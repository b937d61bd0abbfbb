"""Attach media to a prompt without a tool call: with a message, or again after a compaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from belino.config import Config
from belino.context.line_format import fenced, placeholder
from belino.context.manifest import suppressed, thread_media
from belino.domain.errors import ToolError
from belino.domain.media import (
    AcceptedMedia,
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    MediaBlock,
    MediaKind,
    MediaRef,
    TextBlock,
)
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.stored import ManifestEntry, RefRecord, Session
from belino.domain.turn import Toolbox
from belino.media.price import is_picture, is_sound, said_type
from belino.media.renditions import LEAST_TOKENS
from belino.storage.library_verbs import LibraryVerbs

ATTACHED_AT_MOST = 8
TOKENS_AT_MOST = 16_000
"""The most tokens of media that is attached without a request, whatever the agent has room for."""

_CALLED = {"image": "picture", "document": "document", "audio": "sound"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedMedia:
    """The media, after a list that numbers it and says why some is missing."""

    blocks: tuple[Block, ...] = ()
    items: int = 0
    known: int = 0
    """Shown before: only named."""
    texts: int = 0
    """Given as text, because the model would not take the file."""
    failed: int = 0
    left: int = 0
    """Beyond the limits of what is attached without a tool call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaAttacher:
    """What is needed to attach media."""

    library: LibraryVerbs
    channel: ConversationKey
    toolbox: Toolbox
    """Of the same channel; its calls are not recorded, because the agent did not make them."""
    context: Sequence[ManifestEntry]
    sees_images: bool
    accepts: AcceptedMedia
    fence: str
    again: bool = False
    """Attach media even if the agent was shown it before."""

    async def attach(self, refs: Iterable[MediaRef], *, most: int = ATTACHED_AT_MOST) -> AttachedMedia:
        """Attach the media among these refs that the agent takes, each once, up to a limit."""
        wanted = {ref.id: (ref, form) for ref in refs if (form := self._form(ref))}
        room = TOKENS_AT_MOST if self.accepts.tokens is None else min(TOKENS_AT_MOST, self.accepts.tokens)
        found: list[_Found] = []
        for ref, form in list(wanted.values())[:most]:
            if room < LEAST_TOKENS:
                break
            found.append(await self._one(ref, form, room, found))
            room -= found[-1].media.tokens if found[-1].media else 0
        return self._listed(found, left=len(wanted) - len(found)) if wanted else AttachedMedia()

    def _listed(self, found: Sequence["_Found"], *, left: int) -> AttachedMedia:
        media = [one.media for one in found if one.media]
        texts = [one.text for one in found if one.text]
        lines = ["media attached, in this order:"]
        for one in found:
            number = f": {_CALLED[one.form]} {media.index(one.media) + 1} below" if one.media else ""
            lines.append(f"{one.line}{number}")
        if left:
            lines.append(f"{left} more {'is' if left == 1 else 'are'} not attached; fetch_media shows them")
        known = sum(one.is_known for one in found)
        return AttachedMedia(
            blocks=(TextBlock(text=fenced("media", lines, self.fence)), *media, *texts),
            items=len(media),
            known=known,
            texts=len(texts),
            failed=len(found) - len(media) - known - len(texts),
            left=left,
        )

    def _form(self, ref: MediaRef) -> str:
        """The form in which the agent takes a ref itself, judging by its declared type; empty if it does not."""
        mime, documents = said_type(ref.mime, ref.file_name), self.accepts.documents
        if is_picture(ref.kind, mime):
            return "image" if self.sees_images else ""
        if documents is not None and mime in documents.mimes:
            return "document"
        heard = is_sound(mime) or ref.kind in (MediaKind.VOICE, MediaKind.AUDIO)
        return "audio" if heard and self.accepts.audio is not None else ""

    async def _one(self, ref: MediaRef, form: str, room: int, before: Sequence["_Found"]) -> "_Found":
        record = await self.library.ref(self.channel, ref.id)
        if record is None:
            return _Found(form=form, line=_named(ref, MediaOutcome.NOT_FOUND))
        if known := self._known(record):
            return _Found(form=form, line=_shown_at(record, known), is_known=True)
        limit = {} if form == "image" else {"max_tokens": room}
        try:
            blocks = await self.toolbox.call("fetch_media", {"ref": ref.id, "as": form, "again": self.again, **limit})
        except ToolError as error:
            return _Found(form=form, line=f"{_named(ref, await self._outcome(ref))}: not attached: {error}")
        fetched = await self.library.ref(self.channel, ref.id) or record
        named = _named(fetched.ref, fetched.outcome)
        media = next((one for one in blocks if isinstance(one, ImageBlock | DocumentBlock | AudioBlock)), None)
        if media is not None:
            return _Found(form=form, line=named, media=media)
        if known := self._known(fetched):
            return _Found(form=form, line=_shown_at(fetched, known), is_known=True)
        if any(one.media and one.media.sha256 == fetched.ref.sha256 for one in before):
            return _Found(form=form, line=f"{named}: the same as one below", is_known=True)
        text = TextBlock(text="\n".join(block.text for block in blocks if isinstance(block, TextBlock)))
        if form == "image":
            return _Found(form=form, line=f"{named}: not attached: {text.text}")
        return _Found(form=form, line=f"{named}: as text below", text=text)

    async def _outcome(self, ref: MediaRef) -> MediaOutcome:
        record = await self.library.ref(self.channel, ref.id)
        return MediaOutcome.NOT_FOUND if record is None else record.outcome

    def _known(self, record: RefRecord) -> ManifestEntry | None:
        return None if self.again else suppressed(self.context, record.ref.id, record.ref.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What became of one ref."""

    form: str
    line: str
    media: MediaBlock | None = None
    text: TextBlock | None = None
    is_known: bool = False
    """Shown before."""


async def to_recover(library: LibraryVerbs, session: Session, conversation: ConversationKey) -> tuple[RefRecord, ...]:
    """What the next prompt attaches again: of the thread's newest media, what left the agent's memory with its turns.

    Older media of the thread, and media of other threads, is fetched on request.
    """
    if not session.compacted:
        return ()
    shown = thread_media(session, conversation.thread)
    records = [await library.ref(conversation.whole_channel, entry.artifact_id) for entry in shown]
    there = sorted((one for one in records if one is not None), key=lambda one: (one.sent, one.seq), reverse=True)
    return tuple(record for record in there[:ATTACHED_AT_MOST] if record.ref.id in session.lost)


def _named(ref: MediaRef, outcome: MediaOutcome) -> str:
    """Its placeholder without the caption, which is in the message."""
    return placeholder(replace(ref, caption=None), outcome)


def _shown_at(record: RefRecord, entry: ManifestEntry) -> str:
    return f"{_named(record.ref, MediaOutcome.HELD)[:-1]}, shown at turn {entry.included_at_turn}]"


def attaches(config: Config) -> bool:
    """Whether media of the message is attached as far as the agent takes it."""
    return config.context.attach_media in ("message", "thread")
