"""Capabilities of an account on Signal: its limits, and what works through signal-cli."""

from dataclasses import replace

from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Markup, Once, SendAs, Unit

MIB = 1024 * 1024
FILE_BYTES = 100 * MIB
# The daemon reads a JSON text of at most 20 000 000 characters: https://github.com/AsamK/signal-cli/issues/2127
INLINE_BYTES = 14 * MIB
# Over 2 000 bytes signal-cli sends the text as an attachment, which the apps unfold.
TEXT_BYTES = 6_000
MOST_FILES = 32

_TOGETHER = frozenset(set(SendAs) - {SendAs.VOICE, SendAs.STICKER})


def limits_of(file_bytes: int) -> Limits:
    """The limits for a given size of files."""
    any_file = FileLimit(max_bytes=file_bytes)
    files = {
        SendAs.PHOTO: replace(any_file, mimes=frozenset({"image/jpeg", "image/png", "image/webp"})),
        SendAs.VIDEO: replace(any_file, mimes=frozenset({"video/mp4"})),
        SendAs.AUDIO: any_file,
        SendAs.VOICE: replace(
            any_file,
            mimes=frozenset({"audio/aac", "audio/mp4"}),  # iPhones play no Ogg
            codecs=frozenset({"aac"}),
            caption=False,
            alone=True,
        ),
        SendAs.ANIMATION: replace(any_file, mimes=frozenset({"image/gif"})),
        SendAs.DOCUMENT: any_file,
    }
    return Limits(
        text_chars=TEXT_BYTES,
        unit=Unit.BYTES,
        markup=Markup.HTML,
        counts_markup=False,
        once=Once.UNCERTAIN,  # no keys; what another device reports is read back all the same
        files=files,
        album_items=MOST_FILES,
        album_mixes=(_TOGETHER,),
        text_with_files=True,
        fetch_bytes=FILE_BYTES,
    )


LIMITS = limits_of(INLINE_BYTES)

WORKS = (
    Capabilities(thing=Capability.TEXT, comes="yes, with names instead of ids", goes="yes, formatted"),
    Capabilities(thing=Capability.PICTURE, comes="yes; those to be viewed once are refused", goes=YES),
    Capabilities(thing=Capability.VIDEO, comes=YES, goes=YES),
    Capabilities(thing=Capability.SOUND, comes=YES, goes=YES),
    Capabilities(thing=Capability.VOICE, comes="yes: recordings of the apps, which have no name", goes="yes, marked"),
    Capabilities(thing=Capability.FILE, comes=YES, goes="up to 14 MB; up to 100 MB through a shared folder"),
    Capabilities(thing=Capability.STICKER, comes="yes: a picture (WebP)"),
    Capabilities(thing=Capability.ALBUM, comes="yes, as one message", goes="yes, up to 32 in one message"),
    Capabilities(
        thing=Capability.REPLY,
        comes="yes, with the thumbnails of the quote",
        goes="answers in groups quote what they answer",
    ),
    Capabilities(thing=Capability.MENTION, comes="yes: mentions and quotes of the account"),
    Capabilities(thing=Capability.PREVIEW, comes="titles and descriptions of links"),
    Capabilities(thing=Capability.PLACE, comes="contacts and polls, as lines of text"),
    Capabilities(thing=Capability.EDIT, comes=YES, goes="answers that grow while they are written, if configured"),
    Capabilities(thing=Capability.DELETION, comes="yes, by their sender or an administrator; timers too", goes=YES),
    Capabilities(thing=Capability.REACTION, comes=YES, goes="yes, one to a message"),
    Capabilities(thing=Capability.TYPING, goes="while a turn runs"),
    Capabilities(thing=Capability.OTHER, comes="told as unsupported, with what it was; stories are ignored"),
)
