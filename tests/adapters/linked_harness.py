"""A linked device of WhatsApp that talks to a world of our own: a real program, real files."""

from pathlib import Path

from adapters.harness import Harness
from belino.adapters.whatsapp import Config
from belino.adapters.whatsapp.linked import LinkedAdapter
from belino.adapters.whatsapp.linked.client import SESSION
from belino.domain.message import ConversationKey, Message
from belino.domain.ports import Clock
from belino.testing.linked import LinkedWorld


class Phone(Harness[LinkedAdapter]):
    """One linked device and everything it accepted."""

    def __init__(self, world: LinkedWorld, folder: Path, *, clock: Clock | None = None, linked: bool = True) -> None:
        program = tuple(world.linked_program)
        settings = Config(mode="linked", media_url=world.media_url, linked_program=program)
        super().__init__(LinkedAdapter, settings, [world.url.partition("://")[2]], clock)
        self.world = world
        self.recalled: list[Message] = []
        self.context.keeps(folder)
        if linked:
            (folder / SESSION).write_text(world.link(), encoding="ascii")
            (folder / "linked").touch()

    async def connected(self, *, waits: bool) -> None:
        if waits:
            await self.adapter.connected()


def place(address: str) -> ConversationKey:
    channel = address.removesuffix("@s.whatsapp.net")
    return ConversationKey(platform="whatsapp", account="default", channel=channel)
