"""A phone whose WhatsApp account belino is linked to, its people, and a gateway that listens as a linked device."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belino.adapters.whatsapp.linked.client import SESSION
from belino.domain.message import ConversationKey
from belino.testing.file_server import FakeUpload
from belino.testing.linked import ME, Json, LinkedWorld
from journeys.busy_place import BusyPlace


class BusyPhone(BusyPlace):
    """One account, Ann who writes to it, and a group with Bob in it."""

    platform = "whatsapp"

    def __init__(self, world: LinkedWorld, path: Path, *, linked: bool = True) -> None:
        super().__init__(path)
        self.world = world
        self.ann, self.bob = world.person("491701"), world.person("491702")
        self.room = world.group("Trips", self.ann, self.bob)
        self.folder = self.home.account("whatsapp", "default")
        if linked:
            (self.folder / SESSION).write_text(world.link(), encoding="ascii")
            (self.folder / "linked").touch()

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def adapter(self) -> dict[str, Any]:
        room = {"senders": ["*"], "mention": True}
        access = {"senders": ["491701", ME.partition("@")[0]], "channels": {self.room: room}}
        program = {"linked_program": self.world.linked_program, "media_url": self.world.media_url}
        return {"mode": "linked", "access": access, **program}

    def is_heard(self) -> bool:
        return self.world.is_connected()

    def channel(self) -> ConversationKey:
        return ConversationKey(platform="whatsapp", account="default", channel=self.room)

    @property
    def private(self) -> ConversationKey:
        return ConversationKey(platform="whatsapp", account="default", channel="491701")

    def write(self, text: str, *, files: Sequence[bytes | FakeUpload] = (), **more: Any) -> Json:
        if files:
            return self.world.say(self.ann, text=text, file=files[0], part="documentMessage", **more)
        return self.world.say(self.ann, text=text, **more)

    def in_room(self, sender: str, text: str = "", *, asks: bool = False, **more: Any) -> Json:
        """Someone writes to the group, and to the agent if they ask."""
        mention = [ME] if asks else []
        return self.world.say(
            sender, self.room, f"@{ME.partition('@')[0]} {text}" if asks else text, mention=mention, **more
        )

    @property
    def sent(self) -> Sequence[Json]:
        return self.world.sent

    def answers(self) -> list[str]:
        return [str(message.get("text", "")) for message in self.world.sent]

    @property
    def downloads(self) -> int:
        return self.world.calls["file"]
