"""Capabilities of the Messaging API: its limits by the documentation, and what works on LINE."""

from belino.adapters.line.send import MESSAGES, STICKER_NAME
from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Once, SendAs, Unit

MB = 1024 * 1024
PHOTO_BYTES, VIDEO_BYTES, AUDIO_BYTES = 10 * MB, 200 * MB, 200 * MB
LINK_BYTES = 2048 * MB
"""Of what is sent as a link, which is ours: `media.max_bytes` is lower."""
KEY_SECONDS = 24 * 3600.0
"""LINE knows a retry key for a day after its first call."""

_SOUND = FileLimit(
    max_bytes=AUDIO_BYTES,
    mimes=frozenset({"audio/mp4", "audio/mpeg"}),
    codecs=frozenset({"aac", "mp3"}),
    caption=False,
)
_FILES = {
    SendAs.PHOTO: FileLimit(max_bytes=PHOTO_BYTES, mimes=frozenset({"image/jpeg", "image/png"}), caption=False),
    SendAs.VIDEO: FileLimit(max_bytes=VIDEO_BYTES, mimes=frozenset({"video/mp4"}), caption=False),
    SendAs.AUDIO: _SOUND,
    SendAs.VOICE: _SOUND,
    SendAs.STICKER: FileLimit(max_bytes=MB, mimes=frozenset({"image/png"}), names=STICKER_NAME, caption=False),
    SendAs.DOCUMENT: FileLimit(max_bytes=LINK_BYTES, caption=False),
}

# https://developers.line.biz/en/reference/messaging-api/#message-objects
LIMITS = Limits(
    text_chars=5_000,
    unit=Unit.UTF16,
    once=Once.KEY,
    key_seconds=KEY_SECONDS,
    files=_FILES,
    album_items=MESSAGES - 1,  # the text of the same call is a message too
    album_mixes=(frozenset(_FILES),),
    text_with_files=True,
    fetches_files=True,
)

WORKS = (
    Capabilities(thing=Capability.TEXT, comes=YES, goes="yes, plain; long text in several messages"),
    Capabilities(thing=Capability.PICTURE, comes=YES, goes="yes, by a link that LINE fetches, with a preview"),
    Capabilities(thing=Capability.VIDEO, comes="yes, once LINE has encoded it", goes="MP4, by a link, with a preview"),
    Capabilities(thing=Capability.SOUND, comes="as files", goes="yes, M4A and MP3, by a link"),
    Capabilities(thing=Capability.VOICE, comes="yes, once LINE has encoded it", goes="yes: any sound, made M4A"),
    Capabilities(thing=Capability.FILE, comes=YES, goes="as links that end: bots send no files on LINE"),
    Capabilities(thing=Capability.STICKER, comes="yes: a picture, with its words", goes="LINE's own, by their name"),
    Capabilities(thing=Capability.ALBUM, comes="yes, as one turn", goes="yes: up to 4, and the text, in one call"),
    Capabilities(thing=Capability.REPLY, comes="yes, with the media that is quoted", goes="as quotes, in groups"),
    Capabilities(thing=Capability.MENTION, comes="yes: `@youraccount`, and quotes of its messages"),
    Capabilities(thing=Capability.PLACE, comes="yes, as lines of text; presses in menus too"),
    Capabilities(thing=Capability.EDIT, comes="yes, in groups"),
    Capabilities(thing=Capability.DELETION, comes="yes: what was unsent is deleted here too"),
    Capabilities(thing=Capability.TYPING, goes="the loading animation, in direct messages"),
    Capabilities(thing=Capability.OTHER, comes="told as unsupported, with what it was: members, beacons, suspensions"),
)
