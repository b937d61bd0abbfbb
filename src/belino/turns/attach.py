"""Attach pictures to a prompt without a tool call: with a message, or again after a compaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from belino.context.line_format import fenced
from belino.context.manifest import suppressed
from belino.domain.errors import ToolError
from belino.domain.media import Block, ImageBlock, MediaKind, MediaRef, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.stored import ManifestEntry, RefRecord
from belino.domain.turn import Toolbox
from belino.media.placeholder import placeholder
from belino.storage.library_verbs import LibraryVerbs

ATTACHED_AT_MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedPictures:
    """The pictures, after a list that numbers them and says why others are missing."""

    blocks: tuple[Block, ...] = ()
    pictures: int = 0
    known: int = 0
    """Shown before: only named."""
    failed: int = 0
    left: int = 0
    """Beyond the limit of pictures that are attached without a tool call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureAttacher:
    """What is needed to attach a picture."""

    library: LibraryVerbs
    channel: ConversationKey
    toolbox: Toolbox
    """Of the same channel; its calls are not recorded, because the agent did not make them."""
    context: Sequence[ManifestEntry]
    turn: int
    fence: str
    again: bool = False
    """Attach pictures even if the agent was shown them before."""

    async def attach(self, refs: Iterable[MediaRef]) -> AttachedPictures:
        """Attach the pictures among these refs, each once, up to a limit."""
        wanted = {ref.id: ref for ref in refs if is_picture(ref)}
        if not wanted:
            return AttachedPictures()
        lines, pictures, known = ["pictures attached, in this order:"], list[ImageBlock](), 0
        for ref in list(wanted.values())[:ATTACHED_AT_MOST]:
            block, told = await self._one(ref)
            known += isinstance(block, ManifestEntry)
            if isinstance(block, ImageBlock):
                pictures.append(block)
                told = f"{told}: picture {len(pictures)} below"
            lines.append(told)
        left = max(0, len(wanted) - ATTACHED_AT_MOST)
        if left:
            lines.append(f"{left} more {'is' if left == 1 else 'are'} not attached; fetch_media shows them")
        failed = min(len(wanted), ATTACHED_AT_MOST) - len(pictures) - known
        listed = TextBlock(text=fenced("media", lines, self.fence))
        return AttachedPictures(
            blocks=(listed, *pictures), pictures=len(pictures), known=known, failed=failed, left=left
        )

    async def _one(self, ref: MediaRef) -> tuple[ImageBlock | ManifestEntry | None, str]:
        """A picture, or the manifest entry of its earlier showing, and the text for it."""
        record = await self.library.ref(self.channel, ref.id)
        if record is None:
            return None, _named(ref, MediaOutcome.NOT_FOUND)
        if known := self._known(record):
            return known, _shown_at(record, known)
        try:
            blocks = await self.toolbox.call("fetch_media", {"ref": ref.id, "as": "image", "again": self.again})
        except ToolError as error:
            return None, f"{_named(ref, await self._outcome(ref))}: not attached: {error}"
        picture = next((block for block in blocks if isinstance(block, ImageBlock)), None)
        fetched = await self.library.ref(self.channel, ref.id) or record
        if picture is None and (known := self._known(fetched)):
            return known, _shown_at(fetched, known)
        if picture is None:
            why = " ".join(block.text for block in blocks if isinstance(block, TextBlock))
            return None, f"{_named(ref, fetched.outcome)}: not attached: {why}"
        return picture, _named(fetched.ref, fetched.outcome)

    async def _outcome(self, ref: MediaRef) -> MediaOutcome:
        record = await self.library.ref(self.channel, ref.id)
        return MediaOutcome.NOT_FOUND if record is None else record.outcome

    def _known(self, record: RefRecord) -> ManifestEntry | None:
        return None if self.again else suppressed(self.context, record.ref.id, record.ref.sha256)


def is_picture(ref: MediaRef) -> bool:
    """Whether a ref is a picture, by what its platform says."""
    return ref.kind in (MediaKind.IMAGE, MediaKind.STICKER) or ref.mime.lower().startswith("image/")


def _named(ref: MediaRef, outcome: MediaOutcome) -> str:
    """Its placeholder without the caption, which is in the message."""
    return placeholder(replace(ref, caption=None), outcome)


def _shown_at(record: RefRecord, entry: ManifestEntry) -> str:
    return f"{_named(record.ref, MediaOutcome.HELD)[:-1]}, shown at turn {entry.included_at_turn}]"
