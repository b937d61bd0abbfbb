"""The token of a turn opens the tools of that turn, and nothing after it."""

from collections.abc import Mapping
from pathlib import Path

from belino.domain.media import Block, FileBlock
from belino.domain.message import ConversationKey
from belino.testing.agent_contract import NoTools
from belino.turns.tool_access import NamedFiles, ToolAccess

ONE = ConversationKey(platform="web", account="default", channel="one")
TWO = ConversationKey(platform="web", account="default", channel="two")


def test_a_token_opens_the_tools_of_its_own_turn_until_that_ends() -> None:
    access, first, second = ToolAccess(), NoTools(), NoTools()
    access.serve_at("http://127.0.0.1:8080", None)
    with access.open(ONE, first) as one, access.open(TWO, second) as two:
        assert one is not None and two is not None
        assert (one.url, one.public_url) == ("http://127.0.0.1:8080/mcp/turn",) * 2
        found = access.find(one.token), access.find(two.token)
        assert found == ((ONE, first), (TWO, second))
        assert one.token not in repr(one)
    assert access.find(one.token) is None and access.find(two.token) is None
    assert access.find("") is None


def test_a_server_elsewhere_is_told_the_public_address() -> None:
    access = ToolAccess()
    access.serve_at("http://127.0.0.1:8080", "https://chat.example/")
    with access.open(ONE, NoTools()) as address:
        assert address is not None and address.public_url == "https://chat.example/mcp/turn"


def test_without_a_server_there_is_no_address() -> None:
    with ToolAccess().open(ONE, NoTools()) as address:
        assert address is None


class OneFile(NoTools):
    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        return (FileBlock(path=Path("/state/media/x/incoming/p.pdf"), mime="application/pdf", ref="r", sha256="0"),)


async def test_a_file_is_named_without_the_path_of_this_machine() -> None:
    (block,) = await NamedFiles(OneFile()).call("fetch_media", {})
    assert isinstance(block, FileBlock) and str(block.path) == "p.pdf"
