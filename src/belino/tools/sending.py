"""Sending tool send_media: add a file, media of this channel, a public URL or spoken text to the reply."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from belino.delivery.decide import FORM_NAMES, Action, Decision
from belino.delivery.folders import PENDING, mark_of
from belino.delivery.outgoing_files import Keeper
from belino.delivery.speakable import speakable
from belino.domain.errors import (
    AdapterError,
    AddressRefused,
    MediaError,
    MediaNotFound,
    ProviderError,
    StoreError,
    ToolError,
)
from belino.domain.limits import SendAs
from belino.domain.media import Block, MediaKind, TextBlock, kind_of
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock, HttpClient
from belino.domain.reply import Offer
from belino.domain.safe_text import clean_mime, clean_name
from belino.domain.turn import ToolSpec
from belino.domain.units import format_size
from belino.media.daily_limit import Meter
from belino.media.image.header import HEADER_BYTES
from belino.media.jail import Jail
from belino.media.session_files import IPC_MEDIA, safe_name
from belino.net.guard import parse_url
from belino.net.stream import bounded
from belino.tools.arguments import Arguments
from belino.tools.tool_context import ToolContext, find_ref, held
from belino.understanding.speaker import Speaker, Spoken, price_words

PATH_CHARS = 4_096
URL_CHARS = 2_048
CAPTION_CHARS = 4_000
TEXT_CHARS = 20_000
FETCH_SECONDS = 120.0
ANSWER_SECONDS = 30.0
FOLDERS = ("outgoing/pending", "outgoing", "incoming")
"""Where a bare name is looked up, in this order."""
AUTO = "auto"
NO_FILE = "there is no such file in this conversation's folders; save it there first, then give its path"

_PROPERTIES: Mapping[str, object] = {
    "path": {"type": "string"},
    "ref": {"type": "string"},
    "url": {"type": "string"},
    "caption": {"type": "string"},
    "alt": {"type": "string"},
    "as": {
        "type": "string",
        "enum": [AUTO, *(form.value for form in SendAs)],
    },
}
SEND_MEDIA = ToolSpec(
    name="send_media",
    description=(
        "Send a file with your answer: one in this conversation's own folders (path), media of this channel "
        "(ref), or one at a public http(s) URL; give exactly one. You are told how it will be sent."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": _PROPERTIES,
    },
)


SPEAKS = (
    " Or text to speak as a voice message (as=voice), at most {most} characters, {price}; your written answer goes too."
)


def send_media_spec(speaker: Speaker | None) -> ToolSpec:
    """The tool's specification; text is offered where there is a voice, with its price."""
    if speaker is None:
        return SEND_MEDIA
    usd = speaker.config.price(1_000)
    price = "the price is not known" if usd is None else f"{price_words(usd)} for 1000 characters"
    text = {"type": "string", "description": "In the listener's language."}
    properties = {**_PROPERTIES, "text": text}
    return replace(
        SEND_MEDIA,
        description=SEND_MEDIA.description + SPEAKS.format(most=speaker.config.max_chars, price=price),
        schema={**SEND_MEDIA.schema, "properties": properties},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where files are sent from; like the tool context, it is bound to one conversation, whatever the arguments."""

    folder: Path
    """The conversation's own folder, with `incoming/` and `outgoing/` in it."""
    keeper: Keeper
    http: HttpClient
    prepare: Callable[[Offer], Awaitable[Decision]]
    """Make a file ready for this platform, as far as this installation can; ends in `send` or `refuse`."""
    clock: Clock
    metered: Callable[[], AbstractAsyncContextManager[Meter]]
    """A meter for the bytes that the channel may still fetch today."""
    give: Callable[[Offer], Awaitable[str]]
    """Accept the file for sending; returns a sentence that says when it is sent. ToolError if it is one too many."""
    speaker: Speaker | None = None
    """Speaks text, if a voice is configured."""


async def send_media(context: ToolContext, outlet: Outlet, given: Mapping[str, object]) -> tuple[Block, ...]:
    """Add one file to the reply, and report how it will be sent."""
    ways = ("path", "ref", "url", *(("text",) if outlet.speaker is not None else ()))
    arguments = Arguments(given, (*ways, "caption", "alt", "as"))
    named = [name for name in ways if arguments.has(name)]
    if len(named) != 1:
        raise ToolError(f"give exactly one of {', '.join(ways[:-1])} or {ways[-1]}")
    caption = arguments.words("caption", most=CAPTION_CHARS) if arguments.has("caption") else ""
    wanted = arguments.choice("as", [AUTO, *SendAs], AUTO)
    wanted = "" if wanted == AUTO else wanted
    if named == ["text"] and outlet.speaker is not None:
        offer, told = await _spoken(outlet.speaker, arguments, wanted, context.conversation)
    else:
        offer, told = await _offered(context, outlet, arguments, named[0]), ""
    alt = arguments.words("alt", most=CAPTION_CHARS) if arguments.has("alt") else ""
    offer = replace(offer, caption=caption, alt=alt, wanted=SendAs(wanted) if wanted else offer.wanted)
    decision = await outlet.prepare(offer)
    if decision.action is Action.REFUSE:
        raise ToolError(f"{clean_name(offer.name)} cannot be sent here: {decision.reason}")
    # What was made ready now is sent, in the form that is told now.
    when = await outlet.give(replace(decision.offer, wanted=decision.send_as))
    return (TextBlock(text=f"{_about(offer)} {when} {_plan(decision)}.{told}"),)


async def _spoken(
    speaker: Speaker, arguments: Arguments, wanted: str, conversation: ConversationKey
) -> tuple[Offer, str]:
    """A voice message of a text, and what it took."""
    if wanted not in ("", SendAs.VOICE):
        raise ToolError("text can only be sent as=voice; write your answer for anything else")
    spoken, is_cut = await speak_words(speaker, arguments.words("text", most=TEXT_CHARS), conversation)
    cut = f" Only the beginning is spoken: at most {speaker.config.max_chars} characters are." if is_cut else ""
    return spoken.offer(), f" Spoken by {spoken}.{cut}"


async def speak_words(speaker: Speaker, text: str, conversation: ConversationKey) -> tuple[Spoken, bool]:
    """A voice message of a text, and whether only the beginning is spoken; ToolError if it cannot be spoken."""
    said = speakable(text, max_chars=speaker.config.max_chars, language=speaker.config.language)
    if not said.text:
        raise ToolError("there is nothing in this text that can be spoken; give plain words")
    try:
        return await speaker.speak(said.text, conversation), said.cut
    except ProviderError as error:
        raise ToolError(f"the text could not be spoken: {error}; answer in writing") from error


async def _offered(context: ToolContext, outlet: Outlet, arguments: Arguments, way: str) -> Offer:
    try:
        match way:
            case "path":
                return await _from_path(outlet, arguments.words("path", most=PATH_CHARS))
            case "ref":
                return await _from_ref(context, outlet, arguments.ref("ref") or "")
            case _:
                return await _from_url(outlet, arguments.words("url", most=URL_CHARS))
    except StoreError as error:
        raise ToolError("the file could not be kept: the disk is full or failing; tell the operator") from error


async def _from_path(outlet: Outlet, path: str) -> Offer:
    with Jail(outlet.folder) as jail:
        for place in _places(outlet.folder, path):
            try:
                with jail.open(place) as file:
                    offer = await outlet.keeper.keep(file.pieces(), name=file.seen.name)
                    waits = place.startswith(f"{PENDING}/")
                    return replace(offer, pending=mark_of(file.seen)) if waits else offer
            except MediaNotFound:
                continue
            except MediaError as error:
                raise ToolError(f"{clean_name(file_name(path))} cannot be sent: {error}") from error
    raise ToolError(NO_FILE)


def _places(folder: Path, path: str) -> Iterator[str]:
    """The candidates for a path, below the conversation's folder; opening them in the jail is the check."""
    inside = path.removeprefix(f"{folder}/")
    if inside.startswith(("outgoing/", "incoming/", f"{IPC_MEDIA}/")):
        yield inside
    if not path.startswith("/"):
        yield from (f"{place}/{path.removeprefix('./')}" for place in FOLDERS)


async def _from_ref(context: ToolContext, outlet: Outlet, ref_id: str) -> Offer:
    record = await find_ref(context, ref_id)
    blob = await held(context, record)
    head = await context.fetcher.read(blob, HEADER_BYTES)
    ref = record.ref
    offer = await outlet.keeper.held(
        blob, name=ref.file_name or safe_name(None, mime=blob.mime, kind=ref.kind), head=head
    )
    forms = {MediaKind.VOICE: SendAs.VOICE, MediaKind.STICKER: SendAs.STICKER}
    return replace(offer, wanted=forms.get(ref.kind))


async def _from_url(outlet: Outlet, url: str) -> Offer:
    try:
        name = file_name(unquote(parse_url(url).rest.partition("?")[0]))
        async with (
            outlet.metered() as meter,
            outlet.http.request("GET", url, headers={"Accept": "*/*"}, timeout=ANSWER_SECONDS) as answer,
        ):
            if answer.status != 200:
                raise ToolError(f"the server has no such file (status {answer.status})")
            declared = clean_mime(answer.headers.get("Content-Type", ""))
            name = safe_name(name, mime=declared, kind=kind_of(declared))
            counted, limit = meter.chunks(answer.chunks()), outlet.keeper.max_bytes
            chunks = bounded(counted, limit=limit, deadline_seconds=FETCH_SECONDS, clock=outlet.clock)
            return await outlet.keeper.keep(chunks, name=name, declared=declared)
    except AddressRefused as error:
        raise ToolError("that is not the address of anything public; only public http(s) URLs are fetched") from error
    except (AdapterError, MediaError) as error:
        raise ToolError(f"the file at that URL could not be had: {error}") from error


def file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _about(offer: Offer) -> str:
    size = f"{offer.width}×{offer.height}, " if offer.width and offer.height else ""
    return f"{clean_name(offer.name)}: {offer.mime}, {size}{format_size(offer.size)}."


def _plan(decision: Decision) -> str:
    how = f"as {FORM_NAMES[decision.send_as]}"
    return f"{how} ({decision.reason})" if decision.reason else how
