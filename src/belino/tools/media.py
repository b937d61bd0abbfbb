"""Media tools: list the channel's media, and fetch one item."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

from belino.context.json_format import iso_time, json_text, media_json
from belino.context.line_format import line, short_time
from belino.context.search import message_named
from belino.domain.errors import ToolError
from belino.domain.media import TEXT_AND_PICTURES, AcceptedMedia, Block, MediaKind, MediaRef, TextBlock
from belino.domain.outcome import MediaOutcome
from belino.domain.reading import ReadingForm
from belino.domain.safe_text import clean_mime, clean_name, one_line
from belino.domain.stored import RefRecord
from belino.domain.turn import ToolSpec
from belino.domain.units import NoRange, format_duration, format_size, parse_pages, parse_times
from belino.media.price import Price, facts_of
from belino.media.renditions import LEAST_TOKENS, MADE, MOST_TOKENS, RenderOptions
from belino.tools.arguments import Arguments
from belino.tools.native import FORMS as NATIVE
from belino.tools.readings import all_prices
from belino.tools.renditions import FORMS, Ask, fetch_record
from belino.tools.tool_context import ToolContext, find_ref

ANY_KIND = "any"
"""For models that must give every argument."""
FORMATS = ("compact", "json")
BEGINS_CHARS = 60
"""Of the text of an item without a caption: so much says what it is."""
LIST_DEFAULT = 20
LIST_MOST = 100
SEQ_MOST = 2**63 - 1
_MADE_HERE = frozenset({"auto", *MADE, "file"})
"""Forms that need no provider."""
COLUMNS = "ref|kind|name|size|type|from|MM-DD HH:MM UTC|bytes|tokens|caption"

LIST_MEDIA = ToolSpec(
    name="list_media",
    description=(
        "List the media of this channel, newest first: ref, kind, name, length and size, type, sender, time, whether "
        "the bytes are here, the price in tokens of each form, and the caption or first words."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "kind": {"type": "string", "enum": [ANY_KIND, *(kind.value for kind in MediaKind)]},
            "since": {"type": "string", "description": "ISO 8601, or 2h, 3d, yesterday."},
            "near": {"type": "string", "description": "A message id: what was sent around it, nearest first."},
            "limit": {"type": "integer"},
            "cursor": {"type": "string"},
            "format": {"type": "string", "enum": list(FORMATS)},
        },
    },
)

_READ = {
    ReadingForm.TRANSCRIPT: "transcript: what is said in a sound or video, with times",
    ReadingForm.DESCRIPTION: "description: what a picture or video shows",
    ReadingForm.TEXT: "text of a picture, scan or video: what is written in it",
}


def fetch_spec(
    readings: Collection[ReadingForm] = frozenset(ReadingForm), accepts: AcceptedMedia = TEXT_AND_PICTURES
) -> ToolSpec:
    """The description of `fetch_media`, with the readings that can be made here and the blocks that the agent takes."""
    taken = [form for form, formats in zip(NATIVE, (accepts.documents, accepts.audio), strict=True) if formats]
    forms = [form for form in FORMS if form in _MADE_HERE or form in readings or form in taken]
    copy, only = " as a copy in your folder,", "; file: only the copy"
    if not accepts.files:
        forms.remove("file")
        copy = only = ""
    read = "".join(f" {words}." for form, words in _READ.items() if form in readings)
    read += f" {', '.join(taken)}: a PDF or sound itself." if taken else ""
    return ToolSpec(
        name="fetch_media",
        description=(
            "Get one media item of this channel by its ref. as=auto: a picture to look at, anything else"
            f"{copy} with its forms and their price in tokens. text: what a document, table, mail or archive holds; "
            "image, thumb: a picture, or a page of a PDF; frames, sheet: moments of a video, or all pictures of an "
            f"album on one{only}.{read} What was shown to you before is only named, unless again=true."
        ),
        schema={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "ref": {"type": "string", "description": "As in a placeholder: tg_k3v9d0q2m7xa."},
                "mediaRef": {"type": "string"},
                "as": {"type": "string", "enum": forms},
                "pages": {"type": "string", "description": "Pages, sheets or slides: 3, 3-5 or 3-."},
                "time_range": {"type": "string", "description": "Of a sound or video: 0:30-1:10."},
                "find": {"type": "string", "description": "Only the passages with these words, of any text or speech."},
                "max_tokens": {"type": "integer"},
                "cursor": {"type": "string"},
                "again": {"type": "boolean"},
            },
        },
    )


FETCH_MEDIA = fetch_spec()


async def list_media(context: ToolContext, given: Mapping[str, object]) -> tuple[Block, ...]:
    """The channel's media, newest first, a page at a time."""
    arguments = Arguments(given, ("kind", "since", "near", "limit", "cursor", "format"))
    named = arguments.choice("kind", [ANY_KIND, *MediaKind], ANY_KIND)
    kind = MediaKind(named) if named != ANY_KIND else None
    since = arguments.since("since", context.clock.now(), context.archive.zone)
    if context.refs_since is not None:
        since = max(since or context.refs_since, context.refs_since)
    limit = arguments.number("limit", default=LIST_DEFAULT, most=LIST_MOST)
    before, near = read_cursor(arguments.text("cursor")), arguments.text("near")
    style = arguments.choice("format", FORMATS, "compact")
    if near is not None:
        if before is not None:
            raise ToolError("near has no cursor; raise limit to see more around the message")
        message = await message_named(context.library, context.channel, near)
        found = await context.library.refs_near(message, kind=kind, since=since, limit=limit)
        cursor = None
    else:
        page = await context.library.refs(context.channel, kind=kind, since=since, before=before, limit=limit + 1)
        found = page[:limit]
        cursor = str(found[-1].seq) if len(page) > limit else None
    listed = await _listed(context, found)
    order = "nearest" if near is not None else "newest"
    data = _list_json(listed, cursor)
    text = json_text(data) if style == "json" else _list_lines(listed, cursor, order)
    return arguments.reported((TextBlock(text=text, data=data),))


async def fetch_media(context: ToolContext, given: Mapping[str, object]) -> tuple[Block, ...]:
    """One item in the requested form."""
    known = ("ref", "mediaRef", "as", "pages", "time_range", "find", "max_tokens", "cursor", "again")
    arguments = Arguments(given, known)
    ref_id = arguments.ref("ref") or arguments.ref("mediaRef")
    if ref_id is None:
        raise ToolError("ref is missing; list_media shows the refs of this channel")
    wish = wish_of(context, arguments)
    form, find = arguments.choice("as", FORMS, "auto"), arguments.text("find")
    ask = Ask(form=form, wish=wish, find=find, again=arguments.flag("again"))
    return arguments.reported(await fetch_record(context, await find_ref(context, ref_id), ask))


def wish_of(context: ToolContext, arguments: Arguments | None = None) -> RenderOptions:
    """The agent's render options, within the limits of its model."""
    given = arguments or Arguments({}, ())
    pages, times = given.text("pages"), given.text("time_range")
    try:
        return RenderOptions(
            pages=parse_pages(pages) if pages else None,
            times=parse_times(times) if times else None,
            cursor=given.text("cursor"),
            max_tokens=given.number_or_none("max_tokens", least=LEAST_TOKENS, most=MOST_TOKENS),
            sees_images=context.sees_images,
            opens_files=context.accepts.files,
            block_bytes=context.image_block_bytes,
            block_side=context.image_block_side,
        )
    except NoRange as error:
        raise ToolError(str(error)) from error


def read_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > SEQ_MOST:
        raise ToolError("cursor must be what the end of the list before said; leave it out to start from the newest")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A ref, and what is known about it besides the platform's data."""

    record: RefRecord
    prices: Mapping[str, Price]
    begins: str | None
    """How its text begins, if it was read."""
    likeness: str
    """A note that it was sent before, if it has been compared."""

    @property
    def state(self) -> str:
        outcome = self.record.outcome
        told = "not fetched" if outcome is MediaOutcome.REFERENCED else outcome.value
        return ", ".join(filter(None, (told, "read" if self.begins is not None else "", self.likeness)))


async def _listed(context: ToolContext, records: Sequence[RefRecord]) -> list[_Listed]:
    renderer = context.renderer
    read = await renderer.beginnings([record.ref.sha256 for record in records if record.ref.sha256], BEGINS_CHARS)
    ids = [record.ref.id for record in records]
    before = await renderer.likenesses.notes(context.channel, ids) if renderer.likenesses else {}
    listed = []
    for record in records:
        facts = await renderer.known(facts_of(record), record.ref.sha256)
        listed.append(
            _Listed(
                record=record,
                prices=all_prices(context, facts),
                begins=read.get(record.ref.sha256 or ""),
                likeness=before.get(record.ref.id, ""),
            )
        )
    return listed


async def item_json(context: ToolContext, record: RefRecord) -> dict[str, object]:
    """One media item as `list_media` lists it."""
    (listed,) = await _listed(context, (record,))
    return _record_json(listed)


def _list_lines(listed: Sequence[_Listed], cursor: str | None, order: str) -> str:
    if not listed:
        return "No media here."
    lines = [f"{len(listed)} media, {order} first: {COLUMNS}"]
    lines += [line(_fields(each)) for each in listed]
    if cursor:
        lines.append(f"More: cursor={cursor}")
    return "\n".join(lines)


def _fields(listed: _Listed) -> list[str]:
    record, ref = listed.record, listed.record.ref
    return [
        ref.id,
        ref.kind.value,
        clean_name(ref.file_name or ""),
        _length(ref),
        clean_mime(ref.mime),
        clean_name(record.author.name),
        short_time(record.sent),
        listed.state,
        " ".join(f"{form} {price}" for form, price in listed.prices.items()),
        one_line(ref.caption) if ref.caption else _begins(listed),
    ]


def _begins(listed: _Listed) -> str:
    """`reads “HARBOUR CAFE 4 x fish soup…”`: what was found in an item without a caption."""
    return f"reads “{clean_name(listed.begins)}…”" if listed.begins else ""


def _length(ref: MediaRef) -> str:
    """`12s, 40KB`: how long it lasts and how large it is, as far as the platform told."""
    lasts = [] if ref.duration is None else [format_duration(ref.duration)]
    return ", ".join(lasts if ref.size is None else [*lasts, format_size(ref.size)])


def _list_json(listed: Sequence[_Listed], cursor: str | None) -> dict[str, object]:
    return {"media": [_record_json(each) for each in listed], "next_cursor": cursor}


def _record_json(listed: _Listed) -> dict[str, object]:
    record, ref = listed.record, listed.record.ref
    return media_json(ref) | {
        "kind": ref.kind.value,
        "message_id": ref.message_id,
        "author": clean_name(record.author.name),
        "ts": iso_time(record.sent),
        "duration": ref.duration,
        "caption": one_line(ref.caption) if ref.caption else None,
        "outcome": record.outcome.value,
        "is_held": record.outcome is MediaOutcome.HELD,
        "is_read": listed.begins is not None,
        "begins": None if listed.begins is None else one_line(listed.begins),
        "likeness": listed.likeness or None,
        "price": {form: asdict(price) for form, price in listed.prices.items()},
    }
