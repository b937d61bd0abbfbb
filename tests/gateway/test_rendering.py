"""A person is given any form of a ref, and told in a sentence what is not in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.domain.errors import MediaError
from belino.domain.media import Blob
from belino.domain.stored import RefRecord
from belino.gateway.rendering import render_ref
from belino.media.fetch import Fetcher
from belino.media.render import make_renderer
from belino.media.renditions import Rendered, RenderOptions
from belino.testing.files import make_png, make_wav
from media.videos import Here
from tools.town import HERE, File, Town, settled


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with settled(tmp_path / "home") as found:
        found.renderer = make_renderer(Here(), tmp_path / "scratch", found.store)
        yield found


async def rendered(town: Town, ref: str, form: str) -> Rendered:
    fetcher = Fetcher(town.store, town.store, town.open_media, town.config, town.clock)
    record = await town.store.ref(HERE, ref)
    assert record is not None and town.renderer is not None

    async def held(wanted: RefRecord) -> Blob:
        return await fetcher.fetch(wanted)

    return await render_ref(record, form, RenderOptions(), store=town.store, renderer=town.renderer, held=held)


async def test_what_of_an_album_is_not_on_its_sheet_is_named(town: Town) -> None:
    picture = File(content=make_png(40, 30), name="a.png")
    lost = File(content=MediaError("the platform did not answer"), name="b.png")
    sound = File(content=make_wav(1.0), name="c.wav", mime="audio/wav")
    _, (first, second, third) = await town.say("", picture, lost, sound)
    sheet = await rendered(town, first, "sheet")
    assert sheet.about.startswith(f"An album of 1 on one sheet, by number: 1 {first}. Not on it: {second}: ")
    assert sheet.about.endswith(f"; {third} is audio/wav.") and len(sheet.pictures) == 1


async def test_a_picture_that_came_alone_has_no_sheet(town: Town) -> None:
    _, (ref,) = await town.say("", File(content=make_png(40, 30), name="a.png"))
    with pytest.raises(MediaError, match=r"^it is not part of an album$"):
        await rendered(town, ref, "sheet")


async def test_a_person_is_not_told_what_an_agent_would_ask_for(town: Town) -> None:
    _, (ref,) = await town.say("", File(content=b"%PDF-1.7\nnonsense", name="a.pdf", mime="application/pdf"))
    with pytest.raises(MediaError, match=r"^could not be read: the PDF is broken$"):
        await rendered(town, ref, "text")
