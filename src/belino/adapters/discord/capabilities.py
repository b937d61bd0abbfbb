"""Capabilities of a bot: Discord's limits by the documentation, and what works."""

from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Markup, Once, SendAs, Unit

MIB = 1024 * 1024
UPLOAD_BYTES = 10 * MIB
# The maximum size of a request, and the part of it left for files.
REQUEST_BYTES = 25 * MIB
FORM_BYTES = 64 * 1024
FETCH_BYTES = 500 * MIB
TEXT_CHARS = 2_000
MOST_FILES = 10
# The documentation of enforced nonces says "the past few minutes".
KEY_SECONDS = 120.0

# A voice message is one sound without text.
_TOGETHER = frozenset(set(SendAs) - {SendAs.VOICE, SendAs.STICKER})


def limits_of(upload_bytes: int) -> Limits:
    """The limits for a given file size, even if it exceeds the documented request size."""
    together = max(upload_bytes, REQUEST_BYTES) - FORM_BYTES
    upload_bytes = min(upload_bytes, together)
    files = {
        SendAs.PHOTO: FileLimit(
            max_bytes=upload_bytes, mimes=frozenset({"image/jpeg", "image/png", "image/webp"}), max_side=16_384
        ),
        SendAs.VIDEO: FileLimit(
            max_bytes=upload_bytes, mimes=frozenset({"video/mp4", "video/webm", "video/quicktime"})
        ),
        SendAs.AUDIO: FileLimit(max_bytes=upload_bytes),
        SendAs.VOICE: FileLimit(
            max_bytes=upload_bytes,
            mimes=frozenset({"audio/ogg"}),
            codecs=frozenset({"opus"}),
            caption=False,
            alone=True,
            waveform=True,
        ),
        SendAs.ANIMATION: FileLimit(max_bytes=upload_bytes, mimes=frozenset({"image/gif", "video/mp4"})),
        SendAs.DOCUMENT: FileLimit(max_bytes=upload_bytes),
    }
    return Limits(
        text_chars=TEXT_CHARS,
        split_chars=TEXT_CHARS,
        unit=Unit.UTF16,
        markup=Markup.CHAT,
        once=Once.KEY,
        buttons=True,
        key_seconds=KEY_SECONDS,
        files=files,
        album_items=MOST_FILES,
        album_mixes=(_TOGETHER,),
        album_bytes=together,
        text_with_files=True,
        fetch_bytes=FETCH_BYTES,
    )


LIMITS = limits_of(UPLOAD_BYTES)


WORKS = (
    Capabilities(
        thing=Capability.TEXT,
        comes="yes, with names instead of ids",
        goes="yes, formatted; long text in several messages",
    ),
    Capabilities(thing=Capability.PICTURE, comes="yes, with their alt text", goes=YES),
    Capabilities(thing=Capability.VIDEO, comes="yes, clips too", goes=YES),
    Capabilities(thing=Capability.SOUND, comes=YES, goes=YES),
    Capabilities(
        thing=Capability.VOICE,
        comes=YES,
        goes="yes, with their waveform; other sound is made into one if the agent asks",
    ),
    Capabilities(
        thing=Capability.FILE, comes="yes, of any size up to 500 MB", goes="yes, up to 10 MB, or what `upload_mb` says"
    ),
    Capabilities(
        thing=Capability.STICKER, comes="yes: PNG, APNG, GIF and Lottie (`application/json`), with their name"
    ),
    Capabilities(thing=Capability.ALBUM, comes="up to ten", goes="up to ten, with the first part of the text"),
    Capabilities(
        thing=Capability.REPLY,
        comes="yes, with the media of the message that is answered",
        goes="answers in servers are replies to what they answer",
    ),
    Capabilities(
        thing=Capability.FORWARD, comes="yes, with their media and channel; Discord does not say who wrote them"
    ),
    Capabilities(
        thing=Capability.THREAD, comes="yes: each thread and forum post is a conversation of its own", goes=YES
    ),
    Capabilities(
        thing=Capability.MENTION, comes="yes: the bot, its role, slash and menu commands", goes="they notify no one"
    ),
    Capabilities(thing=Capability.PREVIEW, comes="embeds, cards, buttons and menus, as text; files in them as files"),
    Capabilities(thing=Capability.PLACE, comes="polls and their results, as text"),
    Capabilities(
        thing=Capability.EDIT,
        comes="yes, without the previews Discord adds later",
        goes="answers that grow while they are written",
    ),
    Capabilities(thing=Capability.DELETION, comes="yes, many at once too"),
    Capabilities(thing=Capability.REACTION, comes=YES, goes="yes, as the agent decides"),
    Capabilities(thing=Capability.TYPING, goes="while a turn runs, and while a file is uploaded"),
    Capabilities(thing=Capability.HISTORY, comes="yes: channels, threads, and what was missed while belino was away"),
    Capabilities(
        thing=Capability.OTHER, comes="told as unsupported, with what it was: joins, pins, boosts, calls, stages"
    ),
)
