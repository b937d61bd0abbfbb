"""Rendering of a ref for a person, from any channel."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from belino.domain.errors import MediaError
from belino.domain.media import Blob
from belino.domain.stored import RefRecord
from belino.media import preview
from belino.media.image.header import DRAWN_MIMES
from belino.media.render import Renderer
from belino.media.renditions import (
    CannotRender,
    Item,
    Rendered,
    RenderOptions,
    as_album_sheet,
    reason_of,
    render,
    seen_item,
)
from belino.storage.store import Store
from belino.tools.tool_context import ALBUM_MOST, album_of, title

if TYPE_CHECKING:
    from belino.media.image.images import Fitted

GIF = "image/gif"

Held = Callable[[RefRecord], Awaitable[Blob]]
"""The bytes of a ref, or a MediaError that says why not."""


async def render_ref(
    record: RefRecord, form: str, wish: RenderOptions, *, store: Store, renderer: Renderer, held: Held
) -> Rendered:
    """The ref in this form; a picture's sheet is that of its album. Raises MediaError or NoRange with the reason."""
    item = await _item(record, held, store)
    try:
        if form == "sheet" and item.blob.mime in DRAWN_MIMES:
            records = await album_of(store, record.conversation.whole_channel, record)
            if len(records) > 1:
                return await _album(records, wish, store=store, renderer=renderer, held=held)
            if item.blob.mime != GIF:
                raise CannotRender("it is not part of an album")
        return await render(renderer, item, form, wish)
    except CannotRender as error:
        raise MediaError(error.why) from error  # the list of other forms is worded for an agent


async def glance_at(
    record: RefRecord, look: preview.FilePreview, *, store: Store, renderer: Renderer, held: Held
) -> preview.Glance:
    """A short preview of the ref."""
    return await preview.glance(renderer, await _item(record, held, store), look)


async def picture_of(record: RefRecord, page: int, *, store: Store, renderer: Renderer, held: Held) -> "Fitted":
    """A picture of the ref, or of one of its pages."""
    return await preview.picture(renderer, await _item(record, held, store), page)


async def _item(record: RefRecord, held: Held, store: Store) -> Item:
    ref, blob = record.ref, await held(record)
    try:
        return await seen_item(blob, store.local, name=ref.file_name, title=title(record), declared=ref.mime)
    except OSError as error:
        raise MediaError(f"the bytes of {ref.id} cannot be read just now") from error


async def seen_blob(record: RefRecord, held: Held, store: Store) -> Blob:
    """The bytes of a ref, with the type that they really have."""
    return (await _item(record, held, store)).blob


async def _album(
    records: tuple[RefRecord, ...], wish: RenderOptions, *, store: Store, renderer: Renderer, held: Held
) -> Rendered:
    """The available pictures of an album on one sheet, and a note about the rest."""
    items: list[tuple[str, Item]] = []
    lost: list[str] = []
    for record in records[:ALBUM_MOST]:
        try:
            item = await _item(record, held, store)
        except MediaError as error:
            lost.append(f"{record.ref.id}: {reason_of(error)}")
            continue
        if item.blob.mime in DRAWN_MIMES or item.blob.mime.startswith("video/"):
            items.append((record.ref.id, item))
        else:
            lost.append(f"{record.ref.id} is {item.blob.mime}")
    if not items:
        raise MediaError("; ".join(lost))
    sheet = await as_album_sheet(renderer, items, wish)
    lost += [record.ref.id for record in records[ALBUM_MOST:]]
    return replace(sheet, about=f"{sheet.about} Not on it: {'; '.join(lost)}.") if lost else sheet
