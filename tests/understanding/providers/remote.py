"""What the tests of remote providers share: material, a client that reaches one server, and the contract."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from belino.domain.provider import Provider
from belino.domain.reading import Material, ReadingOptions, Skill
from belino.net.client import Client
from belino.net.redact import Secret
from belino.registry import find
from belino.testing import FakeProviderContext, ProviderTrial, RawAnswer, check_provider, make_jpeg, make_png
from belino.testing.models import ModelAnswer, ModelHang, ModelRaw, ModelReply, ModelServer, ModelSpeech, SpokenPart

KEY = "canary-key-of-the-provider"
FLAC = b"fLaC" + bytes(range(256)) * 40
MP4 = b"\0\0\0\x18ftypisom" + bytes(2000)
SEEN = "A blue square on a white wall."
SPEECH = ModelSpeech(
    parts=(
        SpokenPart(text="Good morning, Ada.", start=0.5, end=2.0, speaker=0),
        SpokenPart(text="The train leaves at nine.", start=2.4, end=5.0, speaker=1),
    )
)


NO_WORDS: Mapping[Skill, str] = {}


def said_in(reply: ModelReply) -> str:
    assert isinstance(reply, ModelAnswer | ModelSpeech)
    return reply.text


class Room:
    """One server, and providers that may reach it."""

    def __init__(self, name: str, server: ModelServer, base_url: str, folder: Path) -> None:
        self.server = server
        self.plugin = find("providers", name)
        self._settings = {"base_url": base_url, "key": Secret("KEY", KEY)}
        self._folder = folder
        self.clients: list[Client] = []

    def provider(self, *, clock: Any = None, **settings: Any) -> Provider:
        config = self.plugin.config_type(**{**self._settings, **settings})
        client = Client(hosts=self.plugin.module.hosts(config))
        self.clients.append(client)
        made: Provider = self.plugin.make(config, FakeProviderContext(http=client, clock=clock))
        return made

    def file(self, name: str, content: bytes, mime: str, **more: Any) -> Material:
        path = self._folder / name
        path.write_bytes(content)
        return Material(path=path, mime=mime, size=len(content), **more)

    @property
    def sound(self) -> Material:
        return self.file("sound.flac", FLAC, "audio/flac", seconds=6.0)

    @property
    def picture(self) -> Material:
        return self.file("picture.png", make_png(64, 48), "image/png")

    @property
    def frames(self) -> list[Material]:
        return [self.file(f"frame{n}.jpg", make_jpeg(32, 24), "image/jpeg", at=n * 65.0) for n in range(3)]

    async def close(self) -> None:
        for client in self.clients:
            await client.close()

    async def keeps_the_contract(
        self,
        replies: Mapping[Skill, ModelReply],
        material: Mapping[Skill, Sequence[Material]],
        *,
        expects: Mapping[Skill, str] = NO_WORDS,
    ) -> tuple[str, ...]:
        """Check the provider against its server, which answers each skill with its reply."""
        told: list[ModelReply] = []
        usual = replies_by_path(replies)

        def answer(raw: RawAnswer) -> None:
            rest = {name: value for name, value in raw.headers.items() if name != "Content-Type"}
            kind = raw.headers.get("Content-Type", "")
            told.append(ModelRaw(body=raw.body, content_type=kind, status=raw.status, times=raw.times, headers=rest))

        def hang() -> asyncio.Event:
            self.server.arrived.clear()
            told.append(ModelHang())
            return self.server.arrived

        self.server.script = lambda asked: told.pop(0) if told else usual(asked)
        return await check_provider(
            ProviderTrial(
                make=self.provider,
                material=material,
                expects={**{skill: said_in(reply) for skill, reply in replies.items()}, **expects},
                secrets=[KEY],
                answer=answer,
                hang=hang,
            )
        )


def replies_by_path(replies: Mapping[Skill, ModelReply]) -> Callable[[Any], ModelReply]:
    """Speech for requests with a sound, and words about pictures for the rest."""
    speech = replies.get(Skill.TRANSCRIBE)
    seen = next((reply for skill, reply in replies.items() if skill is not Skill.TRANSCRIBE), ModelAnswer(text=""))

    def reply(asked: Any) -> ModelReply:
        is_speech = b"Transcribe" in asked.raw or "transcriptions" in asked.path or "listen" in asked.path
        return speech if is_speech and speech is not None else seen

    return reply


def quick(**more: Any) -> ReadingOptions:
    return ReadingOptions(**{"timeout": 20.0, **more})
