"""Capabilities of the Cloud API: its limits by the documentation, and what works on WhatsApp.

https://developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers/media
"""

from dataclasses import replace

from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Markup, Once, SendAs

MB = 1024 * 1024
SOUND_BYTES, DOCUMENT_BYTES = 16 * MB, 100 * MB
TEMPLATE_CHARS = 900  # a template has 1024 characters, of which the operator's own words are a part

_OFFICE = "application/vnd.openxmlformats-officedocument."
UPLOADS = frozenset({
    "text/plain", "application/pdf", "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint",
    f"{_OFFICE}wordprocessingml.document", f"{_OFFICE}spreadsheetml.sheet", f"{_OFFICE}presentationml.presentation",
})  # fmt: skip
"""The documents that Meta takes."""
TEXTS = frozenset({
    "text/csv", "text/markdown", "text/html", "text/xml", "text/calendar", "text/x-python", "application/json",
    "application/xml", "application/x-yaml",
})  # fmt: skip
"""What is text, too: it is uploaded as such, under its own name."""

_SOUNDS = frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"})
_WEBP = FileLimit(max_bytes=100 * 1024, moving_bytes=500 * 1024, mimes=frozenset({"image/webp"}))
_OPUS = FileLimit(max_bytes=SOUND_BYTES, codecs=frozenset({"opus"}), caption=False)
_FILES = {
    SendAs.PHOTO: FileLimit(max_bytes=5 * MB, mimes=frozenset({"image/jpeg", "image/png"})),
    SendAs.VIDEO: FileLimit(max_bytes=SOUND_BYTES, mimes=frozenset({"video/mp4", "video/3gpp"})),
    SendAs.AUDIO: FileLimit(max_bytes=SOUND_BYTES, mimes=_SOUNDS, caption=False, apart={"audio/ogg": _OPUS}),
    SendAs.VOICE: replace(_OPUS, mimes=frozenset({"audio/ogg"})),
    SendAs.STICKER: replace(_WEBP, max_side=512, caption=False),
    SendAs.DOCUMENT: FileLimit(max_bytes=DOCUMENT_BYTES, mimes=UPLOADS | TEXTS),
}

TYPES = {form: form.value for form in SendAs} | {SendAs.PHOTO: "image", SendAs.VOICE: "audio"}
"""What WhatsApp calls a file of this form."""

LIMITS = Limits(
    text_chars=4_096,
    split_chars=4_096,
    caption_chars=1_024,
    markup=Markup.LIGHT,
    once=Once.UNCERTAIN,
    files=_FILES,
    fetch_bytes=DOCUMENT_BYTES,
)

WORKS = (
    Capabilities(thing=Capability.TEXT, comes="yes, captions too", goes="yes, formatted, in several messages if long"),
    Capabilities(thing=Capability.PICTURE, comes=YES, goes="yes, up to 5 MB"),
    Capabilities(thing=Capability.VIDEO, comes=YES, goes="yes, up to 16 MB"),
    Capabilities(thing=Capability.SOUND, comes=YES, goes="yes, up to 16 MB"),
    Capabilities(thing=Capability.VOICE, comes=YES, goes="yes; other sound is made into one if the agent asks for it"),
    Capabilities(
        thing=Capability.FILE, comes="yes, up to 100 MB", goes="PDF, Office and text, up to 100 MB; no others"
    ),
    Capabilities(thing=Capability.STICKER, comes="yes, animated too", goes="WebP of 512 pixels, if the agent asks"),
    Capabilities(thing=Capability.ALBUM, comes="as several messages"),
    Capabilities(thing=Capability.REPLY, comes="yes, with the media of what is answered", goes="answers in groups"),
    Capabilities(thing=Capability.FORWARD, comes="yes; WhatsApp does not say from whom"),
    Capabilities(thing=Capability.MENTION, comes="in groups: `@` and the number, and replies to the agent"),
    Capabilities(thing=Capability.PREVIEW, comes="advertisements that people came from", goes="of links"),
    Capabilities(thing=Capability.PLACE, comes="as lines of text; orders and filled forms too; no polls"),
    Capabilities(thing=Capability.EDIT, comes="yes, where the number is used in the WhatsApp Business app, too"),
    Capabilities(thing=Capability.DELETION, comes="yes, where the number is used in the WhatsApp Business app, too"),
    Capabilities(thing=Capability.REACTION, comes="yes, to messages of the agent", goes="yes, one to a message"),
    Capabilities(thing=Capability.TYPING, goes="in direct chats, while a turn runs; it marks the message as read"),
    Capabilities(thing=Capability.OTHER, comes="told as unsupported, with what it was: polls, pins, changed numbers"),
)
