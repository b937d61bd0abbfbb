"""Readings over HTTP: read a media item on request, and list every attempt to read one."""

import re

from starlette.responses import Response

from belino.domain.errors import MediaError, MediaTooLarge, ProviderError
from belino.domain.media import MediaKind
from belino.domain.message import ConversationKey
from belino.domain.reading import KINDS, MediaCapability, Reading, ReadingForm
from belino.domain.units import NoRange, parse_pages, parse_times
from belino.gateway.reading_attempts import attempts_json, item_json, reading_json, sums_json
from belino.gateway.readings import WantedReading
from belino.media.price import PDF, Facts
from belino.understanding.request import ItemReading, ReadingPrice
from belino.web.fields import Fields
from belino.web.request_context import RouteCall, Site
from belino.web.responses import Code, Refusal, answer, bad_request, not_found
from belino.web.wire import Json

LISTED = 1_000

_REF = re.compile(r"[a-z0-9]{1,8}_[a-z0-9]{12}")
_SAMPLES = {
    MediaCapability.IMAGE: Facts(mime="image/jpeg", kind=MediaKind.IMAGE, size=100_000),
    MediaCapability.AUDIO: Facts(mime="audio/ogg", kind=MediaKind.VOICE, size=100_000, seconds=60.0),
    MediaCapability.VIDEO: Facts(mime="video/mp4", kind=MediaKind.VIDEO, size=1_000_000, seconds=60.0),
    MediaCapability.DOCUMENT: Facts(mime=PDF, size=100_000),
}
_ANYWHERE = ConversationKey(platform="web", account="default", channel="main")


async def read_media(call: RouteCall) -> Response:
    """Read one media item as text, from the store or by a provider."""
    fields = await call.fields("ref", "as", "pages", "time_range")
    ref_id = fields.text("ref", most=64)
    record = await call.store.find_ref(ref_id) if _REF.fullmatch(ref_id) else None
    if record is None:
        raise not_found()
    wanted = _wanted(fields)
    try:
        read = await call.site.gateway.read(record, wanted)
    except MediaTooLarge:
        raise
    except (MediaError, ProviderError, NoRange) as error:
        raise Refusal(409, Code.CONFLICT, f"{ref_id} cannot be read as {wanted.form}: {error}") from error
    message = await call.store.messages(record.conversation.whole_channel, [record.ref.message_id])
    ids = [ref.id for each in message for ref in each.media]
    index = ids.index(ref_id) if ref_id in ids else 0
    return answer({"ref": ref_id, "reading": {**reading_json(as_reading(read, index)), "next": read.next}})


async def list_readings(call: RouteCall) -> Response:
    """Attempts to read media, newest first, with what they cost together."""
    query = call.query("ref", "channel", "before", "limit")
    found = await call.store.attempts(
        query.conversation("channel").whole_channel if query.has("channel") else None,
        ref=query.text("ref", most=64) if query.has("ref") else None,
        before=query.number("before", least=0, most=2**63 - 1),
        limit=query.number("limit", least=1, most=LISTED) or 50,
    )
    return answer({"attempts": attempts_json(found), "sums": sums_json(found)})


async def show_readings(call: RouteCall) -> Response:
    """Everything that was read from one media item, and every attempt."""
    ref_id = call.request.path_params["ref"]
    found = await item_json(call.store, ref_id) if _REF.fullmatch(ref_id) else None
    if found is None:
        raise not_found()
    return answer(found)


def reads_json(site: Site) -> Json:
    """What can be read here, by kind of media: the forms, each with its price."""
    understanding = site.gateway.understanding
    return {
        capability.value: [
            {"as": form, "usd": usd_words(price, capability), "local": price.local}
            for form, price in understanding.prices(facts, _ANYWHERE).items()
        ]
        for capability, facts in _SAMPLES.items()
    }


def usd_words(price: ReadingPrice, capability: MediaCapability) -> float | str | None:
    """0 for what is read on this machine, the price in words, or None if it is unknown."""
    if price.local or price.usd is None:
        return 0.0 if price.local else None
    unit = "minute" if capability in (MediaCapability.AUDIO, MediaCapability.VIDEO) else "page"
    return f"{price.usd:.4f} per {unit}"


def as_reading(read: ItemReading, index: int) -> Reading:
    """A reading of one attachment, as messages show it."""
    return Reading(
        kind=f"{read.capability}.{KINDS[read.form]}",
        text=read.text,
        provider=read.provider,
        model=read.model,
        attachment_index=index,
        segments=read.segments,
        uncertain=read.uncertain,
    )


def _wanted(fields: Fields) -> WantedReading:
    form = fields.text("as", most=20)
    if form not in [*ReadingForm]:
        raise bad_request(f"The body: as must be one of {', '.join(ReadingForm)}.")
    pages, times = (fields.text(name, most=40, default="") for name in ("pages", "time_range"))
    try:
        return WantedReading(
            form=ReadingForm(form),
            pages=parse_pages(pages) if pages else None,
            times=parse_times(times) if times else None,
        )
    except NoRange as error:
        raise bad_request(f"The body: {error}.") from None
