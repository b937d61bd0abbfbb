"""An agent is told that a picture was sent here before, in the list and when it is shown."""

import json
from pathlib import Path

import pytest

from belino.domain.media import Block, TextBlock
from belino.domain.message import ConversationKey
from belino.media.render import make_renderer
from media.pictures import saved
from media.scenery import cropped, scene
from media.templates import receipt
from media.videos import Here
from tools.town import HERE, File, Town

PICTURE = scene(1)
PART = saved(cropped(PICTURE, 0.1, 0.15, 0.1, 0.05), "JPEG", quality=70)
COPY = saved(PICTURE.resize((320, 240)), "WEBP", quality=60)
ELSEWHERE = ConversationKey(platform="telegram", account="default", channel="elsewhere")


@pytest.fixture(autouse=True)
def eyes(town: Town, tmp_path: Path) -> None:
    """The sandbox's jobs without its walls."""
    town.renderer = make_renderer(Here(), tmp_path / "scratch", town.store)


async def sent(town: Town, content: bytes, where: ConversationKey = HERE) -> str:
    _, (ref,) = await town.say("", File(content=content, name="a.jpg", mime="image/jpeg"), where=where)
    return ref


async def fetched(town: Town, ref: str, where: ConversationKey = HERE) -> str:
    return words(await town.toolbox(where).call("fetch_media", {"ref": ref}))


def words(blocks: tuple[Block, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


async def test_a_copy_and_a_part_of_a_picture_name_it_when_they_are_shown_and_listed(town: Town) -> None:
    first, copy, part = await sent(town, saved(PICTURE, "PNG")), await sent(town, COPY), await sent(town, PART)
    assert "same picture" not in await fetched(town, first)
    assert f"It is the same picture as {first}, recompressed." in await fetched(town, copy)
    assert f"It is the same picture as {first}, cropped." in await fetched(town, part)
    listed = words(await town.toolbox().call("list_media", {}))
    assert f"|held, same picture as {first}, cropped|" in listed
    told = json.loads(words(await town.toolbox().call("list_media", {"format": "json"})))["media"]
    assert {item["artifact_id"]: item["likeness"] for item in told} == {
        first: None,
        copy: f"same picture as {first}, recompressed",
        part: f"same picture as {first}, cropped",
    }


async def test_a_picture_of_another_channel_is_not_spoken_of(town: Town) -> None:
    await fetched(town, await sent(town, saved(PICTURE, "PNG")))
    assert "same picture" not in await fetched(town, await sent(town, COPY, ELSEWHERE), ELSEWHERE)


async def test_two_receipts_of_one_shop_are_two_pictures_and_a_copy_names_its_own(town: Town) -> None:
    first = await sent(town, saved(receipt(1), "PNG"))
    second = await sent(town, saved(receipt(2), "PNG"))
    copy = await sent(town, saved(receipt(2).resize((300, 500)), "JPEG", quality=60))
    for ref in (first, second):
        assert "same picture" not in await fetched(town, ref)
    assert f"It is the same picture as {second}, recompressed." in await fetched(town, copy)
