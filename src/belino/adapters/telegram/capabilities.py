"""Capabilities of the Bot API: its limits by the documentation, and what works on Telegram."""

from dataclasses import replace

from belino.adapters.telegram.media import FETCH_BYTES, LOCAL_FETCH_BYTES
from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Markup, Once, Rich, SendAs, Unit

UPLOAD_BYTES = 50 * 1024 * 1024
LOCAL_UPLOAD_BYTES = 2000 * 1024 * 1024
PHOTO_BYTES = 10 * 1024 * 1024
STICKER_BYTES, TGS_BYTES, WEBM_BYTES = 512 * 1024, 64 * 1024, 256 * 1024
STICKER_SIDE, STICKER_SECONDS = 512, 3.0

_FILES = {
    SendAs.PHOTO: FileLimit(
        max_bytes=PHOTO_BYTES,
        mimes=frozenset({"image/jpeg", "image/png", "image/webp"}),
        max_sides=10_000,
        max_ratio=20,
    ),
    SendAs.VIDEO: FileLimit(max_bytes=UPLOAD_BYTES, mimes=frozenset({"video/mp4"})),
    SendAs.AUDIO: FileLimit(max_bytes=UPLOAD_BYTES, mimes=frozenset({"audio/mpeg", "audio/mp4"})),
    SendAs.VOICE: FileLimit(
        max_bytes=UPLOAD_BYTES,
        mimes=frozenset({"audio/ogg", "audio/mpeg", "audio/mp4"}),
        codecs=frozenset({"opus", "mp3", "aac"}),
    ),
    SendAs.ANIMATION: FileLimit(max_bytes=UPLOAD_BYTES, mimes=frozenset({"image/gif", "video/mp4"})),
    # Stickers: images (WebP), animations (TGS), and videos (WebM): see "Stickers" in the documentation.
    SendAs.STICKER: FileLimit(
        max_bytes=STICKER_BYTES,
        mimes=frozenset({"image/webp"}),
        max_side=STICKER_SIDE,
        caption=False,
        apart={
            "application/x-tgsticker": FileLimit(max_bytes=TGS_BYTES, caption=False),
            "video/webm": FileLimit(
                max_bytes=WEBM_BYTES,
                codecs=frozenset({"vp9"}),
                side=STICKER_SIDE,
                max_seconds=STICKER_SECONDS,
                caption=False,
            ),
        },
    ),
    SendAs.DOCUMENT: FileLimit(max_bytes=UPLOAD_BYTES),
}

# Telegram accepts 4096 characters; the margin allows for differences in counting. It has no idempotency keys.
LIMITS = Limits(
    text_chars=4_000,
    split_chars=4_096,
    caption_chars=1_024,
    unit=Unit.UTF16,
    markup=Markup.HTML,
    rich=Rich.HTML,
    rich_chars=32_768,
    counts_markup=False,
    styles=90,  # it reads a hundred, and counts bold words with code in them as several
    once=Once.UNCERTAIN,
    buttons=True,
    files=_FILES,
    album_items=10,
    album_mixes=(
        frozenset({SendAs.PHOTO, SendAs.VIDEO}),
        frozenset({SendAs.DOCUMENT}),
        frozenset({SendAs.AUDIO}),
    ),
    fetch_bytes=FETCH_BYTES,
)


def local_limits() -> Limits:
    """The same for a self-hosted Bot API server, which has larger file limits."""
    large = {
        form: replace(limit, max_bytes=LOCAL_UPLOAD_BYTES) if limit.max_bytes == UPLOAD_BYTES else limit
        for form, limit in _FILES.items()
    }
    return replace(LIMITS, files=large, fetch_bytes=LOCAL_FETCH_BYTES)


WORKS = (
    Capabilities(
        thing=Capability.TEXT, comes="yes, captions too", goes="yes, formatted; long text in several messages"
    ),
    Capabilities(thing=Capability.PICTURE, comes="yes, in the largest size", goes=YES),
    Capabilities(thing=Capability.VIDEO, comes="yes; round videos and GIFs too", goes="video, animation"),
    Capabilities(thing=Capability.SOUND, comes=YES, goes=YES),
    Capabilities(thing=Capability.VOICE, comes=YES, goes="yes; other sound is made into one if the agent asks for it"),
    Capabilities(
        thing=Capability.FILE,
        comes="yes, up to 20 MB; one that says it is a picture, video or sound counts as that",
        goes="yes, up to 50 MB",
    ),
    Capabilities(
        thing=Capability.STICKER,
        comes="yes: picture (WebP), animated (`application/x-tgsticker`) or video (WebM), with its emoji and set",
        goes="animated (TGS) and video stickers (WebM) that keep Telegram's rules; a picture if the agent asks for one",
    ),
    Capabilities(
        thing=Capability.ALBUM, comes="yes, as one turn, every caption by its item", goes="yes, 2 to 10 to an album"
    ),
    Capabilities(
        thing=Capability.REPLY,
        comes="yes, with the media of the message that is answered, also from another chat",
        goes="answers in groups are replies to what they answer",
    ),
    Capabilities(thing=Capability.FORWARD, comes="yes, with who said it first"),
    Capabilities(thing=Capability.THREAD, comes="yes: each topic is a conversation of its own", goes=YES),
    Capabilities(thing=Capability.MENTION, comes="yes: `@yourbot`, `/command@yourbot`"),
    Capabilities(
        thing=Capability.PREVIEW, comes="live photos, paid media and rich messages, as far as bots are shown them"
    ),
    Capabilities(
        thing=Capability.PLACE, comes="yes, as lines of text; venues, dice, checklists, games and invoices too"
    ),
    Capabilities(thing=Capability.EDIT, comes=YES, goes="answers that grow while they are written"),
    Capabilities(thing=Capability.DELETION, comes="**only in chats of business accounts**: nowhere else are bots told"),
    Capabilities(
        thing=Capability.REACTION, comes="yes, where the bot is an administrator", goes="yes, one to a message"
    ),
    Capabilities(thing=Capability.TYPING, goes="while a turn runs, and while a file is uploaded"),
    Capabilities(
        thing=Capability.OTHER,
        comes="told as unsupported, with what it was: joins, pins, titles, stories, giveaways, news",
    ),
)
