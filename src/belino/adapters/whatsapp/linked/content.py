"""Content of a message: its text, its file as a ref, and the words for what has neither.

The locator of a ref is the media part of its message: type, path and hashes. The key is sealed.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from belino.adapters.whatsapp.content import KINDS
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import SourceMessage
from belino.net.json_fields import Raw, count, has, line, measure, mime, real, table, tables, words, yes
from belino.net.message_lines import contact_line, place_line, poll_lines

VIEW_ONCE = ("IsViewOnce", "IsViewOnceV2", "IsViewOnceV2Extension")
ONCE = "once"
_WRAPPED = (
    "ephemeralMessage", "viewOnceMessage", "viewOnceMessageV2", "viewOnceMessageV2Extension",
    "documentWithCaptionMessage", "deviceSentMessage", "editedMessage", "lottieStickerMessage",
    "groupMentionedMessage", "associatedChildMessage", "spoilerMessage",
)  # fmt: skip
MEDIA = {f"{kind}Message": kind for kind in MediaKind if kind is not MediaKind.VOICE} | {"ptvMessage": MediaKind.VIDEO}
_POLLS = ("pollCreationMessage", *(f"pollCreationMessageV{version}" for version in range(2, 7)))
_PLACES = {"locationMessage": "Location", "liveLocationMessage": "Live location"}
_EVENTS = ("albumMessage", "senderKeyDistributionMessage")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def unwrapped(content: Raw) -> tuple[Raw, bool]:
    """The message inside its wrappers, and whether it may be viewed only once."""
    once, around = False, table(content, "messageContextInfo")
    for _ in range(8):
        wrapper = next((name for name in _WRAPPED if has(table(content, name), "message")), "")
        content, once = table(table(content, wrapper), "message") or content, once or wrapper.startswith("viewOnce")
    return {"messageContextInfo": around, **content}, once


def type_in_links(kind: str) -> str:
    """The type of media in WhatsApp's links, where stickers are images."""
    return "image" if kind == MediaKind.STICKER else kind


def media_refs(content: Raw, source: SourceMessage, *, once: bool) -> tuple[MediaRef, ...]:
    """The ref of a message's file, of which it has one at most."""
    name = next((name for name in MEDIA if table(content, name)), None)
    if name is None:
        return ()
    raw, kind = table(content, name), MEDIA[name]
    hashes = {"encrypted": words(raw, "fileEncSHA256"), "plain": words(raw, "fileSHA256")}
    once = once or yes(raw, "viewOnce")
    ref = source.ref(
        item="0",
        kind=MediaKind.VOICE if yes(raw, "PTT") else kind,
        mime=mime(raw, "mimetype"),
        locator={ONCE: "yes"} if once else {"type": type_in_links(kind), "path": words(raw, "directPath"), **hashes},
        file_name=line(raw, "fileName") or line(raw, "title") or None,
        size=count(raw, "fileLength"),
        duration=measure(raw, "seconds"),
        width=count(raw, "width") or None,
        height=count(raw, "height") or None,
        caption=words(raw, "caption") or None,
    )
    key = words(raw, "mediaKey")
    return (replace(ref, sealed={"key": key}) if key and not once else ref,)


def text_of(content: Raw) -> str:
    """The text of a message, its caption, and what it shows, as lines."""
    said = words(content, "conversation") or words(table(content, "extendedTextMessage"), "text")
    captions = [words(table(content, name), "caption") for name in MEDIA]
    return "\n".join(part for part in (said, *captions, *_facts(content)) if part)


def _facts(content: Raw) -> Iterator[str]:
    for key, place in ((key, table(content, key)) for key in _PLACES if table(content, key)):
        labels = [line(place, part) for part in ("name", "address", "caption")]
        spot = real(place, "degreesLatitude"), real(place, "degreesLongitude")
        yield place_line(*spot, *labels, kind=_PLACES[key])
    contacts = tables(table(content, "contactsArrayMessage"), "contacts")
    for contact in filter(None, (table(content, "contactMessage"), *contacts[:50])):
        lines = words(contact, "vcard").splitlines()
        numbers = [each.rpartition(":")[2].strip() for each in lines if "TEL" in each.partition(":")[0].upper()]
        yield contact_line(line(contact, "displayName"), *numbers[:10])
    for poll in filter(None, (table(content, name) for name in _POLLS)):
        yield from poll_lines(line(poll, "name"), (line(each, "optionName") for each in tables(poll, "options")[:50]))


def what_is_in(content: Raw) -> tuple[str, bool]:
    """The words for a message without text and files, and whether it is an event and no message."""
    known = {key: KINDS.get(_HUMP.sub("_", key).lower().removesuffix("_message"), "") for key in content}
    known.pop("messageContextInfo", None)
    key = next((key for key in known if known[key]), next(iter(known), ""))
    says = f"a message of the kind {key[:64]}" if key else "an empty message"
    return known.get(key) or says, key in _EVENTS or not key
