"""Capabilities of a linked device: WhatsApp's limits for its apps, and what works."""

from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Markup, Once, SendAs

MIB = 1024 * 1024
# WhatsApp documents 2 GB for files, and 16 MB for pictures and what its apps play.
FILE_BYTES = 2000 * MIB
SHOWN_BYTES = 16 * MIB

LIMITS = Limits(
    text_chars=60_000,
    split_chars=4_096,
    caption_chars=1_024,
    markup=Markup.LIGHT,
    once=Once.UNCERTAIN,
    files={
        SendAs.PHOTO: FileLimit(max_bytes=SHOWN_BYTES, mimes=frozenset({"image/jpeg", "image/png"})),
        SendAs.VIDEO: FileLimit(max_bytes=SHOWN_BYTES * 4, mimes=frozenset({"video/mp4"})),
        SendAs.AUDIO: FileLimit(
            max_bytes=SHOWN_BYTES, mimes=frozenset({"audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg"}), caption=False
        ),
        SendAs.VOICE: FileLimit(
            max_bytes=SHOWN_BYTES,
            mimes=frozenset({"audio/ogg"}),
            codecs=frozenset({"opus"}),
            caption=False,
            alone=True,
            waveform=True,
        ),
        SendAs.ANIMATION: FileLimit(max_bytes=SHOWN_BYTES, mimes=frozenset({"video/mp4"})),
        SendAs.DOCUMENT: FileLimit(max_bytes=FILE_BYTES),
    },
    fetch_bytes=FILE_BYTES,
)

WORKS = (
    Capabilities(thing=Capability.TEXT, comes=YES, goes="yes, formatted"),
    Capabilities(thing=Capability.PICTURE, comes="yes; those to be viewed once are refused", goes=YES),
    Capabilities(thing=Capability.VIDEO, comes="yes, video notes too", goes=YES),
    Capabilities(thing=Capability.SOUND, comes=YES, goes=YES),
    Capabilities(thing=Capability.VOICE, comes=YES, goes="yes, with their waveform"),
    Capabilities(thing=Capability.FILE, comes=YES, goes="yes, up to 2 GB"),
    Capabilities(thing=Capability.STICKER, comes=YES),
    Capabilities(thing=Capability.ALBUM, comes="yes", goes="each as a message"),
    Capabilities(thing=Capability.REPLY, comes="yes, with their media", goes=YES),
    Capabilities(thing=Capability.FORWARD, comes="yes; WhatsApp does not say who wrote it"),
    Capabilities(thing=Capability.MENTION, comes="yes: the account, and replies to it"),
    Capabilities(thing=Capability.PLACE, comes="yes, as text; votes are encrypted on their own"),
    Capabilities(thing=Capability.EDIT, comes=YES, goes="for fifteen minutes"),
    Capabilities(thing=Capability.DELETION, comes=YES, goes=YES),
    Capabilities(thing=Capability.REACTION, comes=YES, goes="yes, as the agent decides"),
    Capabilities(thing=Capability.TYPING, goes="yes; what is answered is marked as read"),
    Capabilities(thing=Capability.HISTORY, comes="what the phone sends when it is linked"),
    Capabilities(thing=Capability.OTHER, comes="told as unsupported, with what it was"),
)
