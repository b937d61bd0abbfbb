"""send_media: what it takes, what it says, and what it does not do."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from belino.delivery.decide import Decision
from belino.delivery.outgoing_files import Keeper
from belino.delivery.prepare import Preparer
from belino.domain.errors import MediaExpired, ToolError
from belino.domain.limits import FileLimit, Limits, Once, SendAs
from belino.domain.media import MediaKind, TextBlock
from belino.domain.ports import HttpAnswer
from belino.domain.reply import Offer
from belino.domain.turn import Toolbox
from belino.media.fetch import Fetcher
from belino.net.client import Client
from belino.net.guard import Guard
from belino.testing.files import make_gif, make_jpeg, make_pdf, make_png
from belino.tools.sending import Outlet
from belino.tools.tool_context import ToolContext
from belino.tools.toolbox import make_toolbox
from delivery.test_prepare import Draws, Speaks
from tools.town import FENCE, HERE, THERE, File, Town

ANY = FileLimit(max_bytes=1_000_000)
LIMITS = Limits(
    text_chars=4_000,
    once=Once.KEY,
    files={
        **dict.fromkeys(SendAs, ANY),
        SendAs.PHOTO: replace(ANY, max_bytes=5_000, max_side=100, mimes=frozenset({"image/jpeg", "image/png"})),
    },
)


@dataclass(slots=True, kw_only=True)
class Answer:
    """What a server says."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    async def read(self, limit: int) -> bytes:
        return self.body[:limit]

    async def chunks(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), 1000):
            yield self.body[start : start + 1000]


@dataclass(slots=True, kw_only=True)
class Web:
    """A public web of a few files, that counts who asks; the guard is tested where it lives."""

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def request(self, method: str, url: str, **_: object) -> AsyncIterator[HttpAnswer]:
        self.asked.append(f"{method} {url}")
        yield self.answers.get(url, Answer(status=404))


@dataclass(slots=True, kw_only=True)
class Post:
    """The tools of a conversation with an outlet, and what was handed to it."""

    town: Town
    web: Web = field(default_factory=Web)
    given: list[Offer] = field(default_factory=list)
    outlets: list[Outlet] = field(default_factory=list)
    limits: Limits = LIMITS
    max_bytes: int = 100_000

    @property
    def folder(self) -> Path:
        return self.town.folder.parent

    def put(self, path: str, content: bytes = b"content") -> Path:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return place

    async def prepare(self, offer: Offer) -> Decision:
        preparer = Preparer(self.town.store, Draws, lambda: Speaks(self.folder))
        (decision,) = await preparer.prepare((offer,), self.limits)
        return decision

    def toolbox(self, *, guarded: bool = False) -> Toolbox:
        async def give(offer: Offer) -> str:
            self.given.append(offer)
            return "It goes out"

        town = self.town
        fetcher = Fetcher(town.store, town.store, town.open_media, town.config, town.clock)
        outlet = Outlet(
            folder=self.folder,
            keeper=Keeper(self.town.store, self.town.images, max_bytes=self.max_bytes),
            http=Client(guard=Guard()) if guarded else self.web,
            prepare=self.prepare,
            clock=self.town.clock,
            metered=lambda: fetcher.allowances.take(HERE),
            give=give,
        )
        context = ToolContext(
            conversation=HERE,
            library=self.town.store,
            archive=self.town.store,
            fetcher=fetcher,
            folder=self.town.folder,
            clock=self.town.clock,
            renderer=self.town.rendering(),
            fence=FENCE,
            sees_images=True,
            image_block_bytes=1_000_000,
        )

        def make_outlet() -> Outlet:
            self.outlets.append(outlet)
            return outlet

        return make_toolbox(context, make_outlet, speaker=outlet.speaker)

    async def send(self, **arguments: object) -> str:
        (block,) = await self.toolbox().call("send_media", arguments)
        assert isinstance(block, TextBlock)
        return block.text

    async def refused(self, **arguments: object) -> str:
        with pytest.raises(ToolError) as error:
            await self.toolbox().call("send_media", arguments)
        assert self.given == []
        return str(error.value)


@pytest.fixture
def post(town: Town) -> Post:
    return Post(town=town)


@pytest.mark.parametrize(
    "name", ["{here}/outgoing/pending/a.txt", "a.txt", "./a.txt", "outgoing/pending/a.txt", "pending/a.txt"]
)
async def test_a_file_of_the_folders_is_found_by_any_of_its_paths(post: Post, name: str) -> None:
    post.put("outgoing/pending/a.txt")
    told = await post.send(path=name.format(here=post.folder), caption="look")
    (offer,) = post.given
    assert (offer.name, offer.mime, offer.size, offer.caption) == ("a.txt", "text/plain", 7, "look")
    assert offer.pending
    assert told == "a.txt: text/plain, 7B. It goes out as a document."


async def test_what_sending_needs_is_made_once_something_is_sent(post: Post) -> None:
    post.put("outgoing/a.txt")
    toolbox = post.toolbox()
    assert "send_media" in {spec.name for spec in toolbox.specs}
    await toolbox.call("list_media", {})
    assert post.outlets == []
    await toolbox.call("send_media", {"path": "a.txt"})
    assert len(post.outlets) == 1


async def test_a_file_it_was_given_or_wrote_itself_goes_out_and_stays(post: Post) -> None:
    for path in ("incoming/got.txt", "outgoing/made.txt"):
        post.put(path)
        await post.send(path=str(post.folder / path))
    assert [(offer.name, offer.pending) for offer in post.given] == [("got.txt", None), ("made.txt", None)]


async def test_what_lies_elsewhere_is_not_there(post: Post, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_bytes(b"secret")
    post.put("other/x.txt")
    answers = {
        await post.refused(path=path)
        for path in (
            str(tmp_path / "secret.txt"),
            str(post.folder / "other" / "x.txt"),
            f"{post.folder}-evil/x.txt",
            "../other/x.txt",
            "/etc/passwd",
            "nothing.txt",
            "file:///etc/passwd",
            "~/x",
        )
    }
    assert len(answers) == 1


async def test_links_and_pipes_are_refused_with_the_reason(post: Post, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_bytes(b"secret")
    post.put("outgoing/x.txt").unlink()
    (post.folder / "outgoing" / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.link(tmp_path / "secret.txt", post.folder / "outgoing" / "hard.txt")
    os.mkfifo(post.folder / "outgoing" / "pipe")
    assert await post.refused(path="link.txt") == "link.txt cannot be sent: it is a link"
    assert await post.refused(path="hard.txt") == "hard.txt cannot be sent: it is known under another name, too"
    assert await post.refused(path="pipe") == "pipe cannot be sent: it is not a regular file"


async def test_media_of_this_channel_goes_out_again(post: Post) -> None:
    _, (ref,) = await post.town.say("", File(content=make_jpeg(64, 48), name="photo.jpg", mime="image/jpeg"))
    assert (await post.send(ref=ref)).startswith("photo.jpg: image/jpeg, 64×48, ")
    _, (voice,) = await post.town.say("", File(content=b"OggS" + b"\0" * 60, mime="audio/ogg", kind=MediaKind.VOICE))
    await post.send(ref=voice, **{"as": "document"})
    assert [offer.wanted for offer in post.given] == [SendAs.PHOTO, SendAs.DOCUMENT]
    assert post.given[1].name == "voice.ogg"


async def test_a_ref_of_another_channel_is_as_unknown_as_nonsense_and_fetches_nothing(post: Post) -> None:
    _, (ref,) = await post.town.say("", File(content=make_png(3, 3)), where=THERE)
    answers = {await post.refused(ref=name) for name in (ref, "tg_000000000000", "../x")}
    assert len(answers) == 1
    assert post.town.opened == []


async def test_media_that_cannot_be_had_any_more_is_told(post: Post) -> None:
    _, (ref,) = await post.town.say("", File(content=MediaExpired("gone"), size=9))
    assert "expired" in await post.refused(ref=ref)


async def test_a_public_url_is_fetched_and_named_by_what_it_is(post: Post) -> None:
    url = "https://files.test/reports/Q3%20report?x=1"
    post.web.answers[url] = Answer(body=make_pdf(), headers={"Content-Type": "application/pdf; q=1"})
    told = await post.send(url=url)
    (offer,) = post.given
    assert (offer.name, offer.mime) == ("Q3_report.pdf", "application/pdf")
    assert told.endswith("It goes out as a document.")
    assert post.web.asked == [f"GET {url}"]


async def test_a_url_that_gives_nothing_or_too_much_is_refused(post: Post) -> None:
    post.web.answers["https://files.test/big"] = Answer(body=b"x" * 100_001)
    assert "status 404" in await post.refused(url="https://files.test/nothing")
    assert "it is over 98KB" in await post.refused(url="https://files.test/big")


async def test_what_a_url_brings_counts_to_the_bytes_of_the_day_also_when_it_breaks_off(post: Post) -> None:
    post.town.config = replace(post.town.config, max_bytes=100_000, channel_bytes_per_day=200_000)
    post.web.answers["https://files.test/small"] = Answer(body=b"x" * 60_000)
    post.web.answers["https://files.test/big"] = Answer(body=b"x" * 150_000)
    long_ago = post.town.clock.now() - timedelta(days=1)
    await post.send(url="https://files.test/small")
    assert await post.town.store.bytes_fetched(HERE, long_ago) == 60_000
    assert await post.town.store.bytes_fetched(THERE, long_ago) == 0
    post.given.clear()
    assert "it is over 98KB" in await post.refused(url="https://files.test/big")
    assert await post.town.store.bytes_fetched(HERE, long_ago) == 161_000
    says = await post.refused(url="https://files.test/small")
    assert says == "the file at that URL could not be had: the file is larger than what is left for today"
    asked = len(post.web.asked)
    assert "the channel has 0B left for today" in await post.refused(url="https://files.test/small")
    assert len(post.web.asked) == asked
    post.town.clock.shift(24 * 3600 + 1)
    await post.send(url="https://files.test/small")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:80/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://2130706433/",
        "file:///etc/passwd",
        "ftp://files.test/",
        "http://user@files.test/",
        "//files.test/x",
    ],
)
async def test_no_url_reaches_what_is_not_public(post: Post, url: str) -> None:
    with pytest.raises(ToolError, match="only public http"):
        await post.toolbox(guarded=True).call("send_media", {"url": url})


@pytest.mark.parametrize(
    "arguments",
    [{}, {"path": "a", "ref": "b"}, {"path": "a", "url": "https://x.test"}, {"caption": "x"}, {"path": None}],
)
async def test_exactly_one_of_the_three_is_given(post: Post, arguments: dict[str, object]) -> None:
    assert await post.refused(**arguments) == "give exactly one of path, ref or url"


async def test_odd_arguments_are_told_in_a_sentence(post: Post) -> None:
    post.put("outgoing/a.txt")
    assert "photo, video" in await post.refused(path="a.txt", **{"as": "hologram"})
    assert "caption" in await post.refused(path="a.txt", caption="x" * 5_000)
    assert "unknown argument 'conversation'" in await post.refused(path="a.txt", conversation="other")
    assert await post.refused(path=7) == "path must be a text of 1 to 4096 characters"


async def test_the_plan_is_told(post: Post) -> None:
    post.put("outgoing/big.png", make_png(400, 300))
    post.put("outgoing/still.gif", make_gif(20, 10))
    told = await post.send(path="big.png")
    why = "400×300 pixels are more than a photo may have here, so it was made image/jpeg, 10×20, 6B"
    assert f"It goes out as a photo ({why})." in told
    assert (post.given[0].size, post.given[0].wanted) == (6, SendAs.PHOTO)
    assert "as a document" in await post.send(path="big.png", **{"as": "document"})
    assert "as a photo" in await post.send(path="still.gif")


async def test_what_can_never_be_sent_is_refused_at_once(post: Post) -> None:
    post.limits = Limits(text_chars=100, once=Once.KEY)
    post.put("outgoing/a.txt")
    post.put("outgoing/empty.txt", b"")
    assert await post.refused(path="a.txt") == "a.txt cannot be sent here: a document cannot be sent here"
    assert await post.refused(path="empty.txt") == "empty.txt cannot be sent here: it is empty"


def test_where_nothing_can_be_sent_there_is_no_such_tool(town: Town) -> None:
    assert "send_media" not in [spec.name for spec in town.toolbox().specs]
