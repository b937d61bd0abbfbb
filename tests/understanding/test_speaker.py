"""Text becomes a voice message: by a program or a service, once, and only if it really is one."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import pytest
from aiohttp import web

from belino.domain.errors import ProviderError
from belino.domain.media import Blob
from belino.domain.message import ConversationKey
from belino.media.audio import Sounds
from belino.media.image.images import Runs
from belino.media.sandbox.sandbox import Sandbox
from belino.net.client import Client
from belino.net.guard import host_of
from belino.net.redact import Secret
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from belino.understanding.speaker import SAMPLE, Speaker
from belino.understanding.speech import SpeechConfig
from media.videos import Here
from understanding.voices import KEY, VoiceServer, hum, length_of, program

pytestmark = pytest.mark.slow

HERE = ConversationKey(platform="memory", account="default", channel="here", thread="t")
TEXT = "The train leaves at ten past eight."


@dataclass(slots=True, kw_only=True)
class Studio:
    """A real store and sandbox, in which voices are tried."""

    store: Store
    sandbox: Runs
    clock: FakeClock
    server: VoiceServer
    client: Client
    folder: Path
    files: list[str] = field(default_factory=list)

    def speaker(self, config: SpeechConfig, *keys: str) -> Speaker:
        return Speaker(
            config,
            [Secret(f"KEY_{number}", key) for number, key in enumerate(keys)],
            http=self.client,
            store=self.store,
            sandbox=self.sandbox,
            clock=self.clock,
            secret=b"a key of this house",
        )

    def program(self, **how: object) -> Speaker:
        command, args = program(self.folder, **how)  # type: ignore[arg-type]
        return self.speaker(SpeechConfig(command=command, args=args))

    def service(self, provider: str = "openai", *keys: str, **more: object) -> Speaker:
        config = SpeechConfig(provider=provider, base_url=self.server.url, usd_per_mchar=15.0, **more)  # type: ignore[arg-type]
        return self.speaker(config, *(keys or (KEY,)))

    async def facts(self, blob: Blob) -> tuple[str, int | None, int | None]:
        found = await Sounds(self.sandbox, self.store.scratch, self.store.local).probe(blob)
        return found.codec, found.rate, found.channels

    def leftovers(self) -> list[str]:
        return sorted(path.name for path in self.store.scratch.iterdir())


@pytest.fixture
async def studio(tmp_path: Path) -> AsyncIterator[Studio]:
    """Where sounds are decoded without walls, which is quicker."""
    async with open_studio(tmp_path, Here()) as studio:
        yield studio


@pytest.fixture
async def walled(tmp_path: Path) -> AsyncIterator[Studio]:
    """Where sounds are decoded as in a gateway."""
    async with Sandbox() as sandbox, open_studio(tmp_path, sandbox) as studio:
        yield studio


@asynccontextmanager
async def open_studio(folder: Path, sandbox: Runs) -> AsyncIterator[Studio]:
    clock = FakeClock()
    async with AsyncExitStack() as opened:
        store = await open_store(Home.at(folder / "home"), clock=clock)
        opened.push_async_callback(store.close)
        server = await opened.enter_async_context(VoiceServer().serving())
        client = Client(hosts=(host_of(server.url), "127.0.0.1:1"))
        opened.push_async_callback(client.close)
        yield Studio(store=store, sandbox=sandbox, clock=clock, server=server, client=client, folder=folder)


async def refused(speaker: Speaker, text: str = TEXT) -> str:
    with pytest.raises(ProviderError) as failed:
        await speaker.speak(text, HERE)
    return str(failed.value)


async def test_a_program_speaks_by_pipes_or_files_and_leaves_nothing(walled: Studio) -> None:
    for stdin, stdout in product((True, False), repeat=2):
        spoken = await walled.program(stdin=stdin, stdout=stdout).speak(TEXT, HERE)
        assert await walled.facts(spoken.blob) == ("opus", 48_000, 1)
        assert spoken.blob.mime == "audio/ogg"
        assert spoken.seconds == pytest.approx(length_of(TEXT), abs=0.2)
        assert (spoken.usd, spoken.sent_to, spoken.cached) == (0.0, "", False)
        assert walled.leftovers() == []


async def test_the_text_is_never_an_option_of_a_program(studio: Studio) -> None:
    told = studio.folder / "told"
    code = f"import sys; open({str(told)!r}, 'w').write(repr((sys.argv[1:], sys.stdin.read())))"
    speaker = studio.speaker(SpeechConfig(command=sys.executable, args=("-c", code, "-v", "{{Voice}}"), voice="de"))
    await refused(speaker, "--help; $(id) -w /etc/passwd")
    assert told.read_text() == repr((["-v", "de"], "--help; $(id) -w /etc/passwd\n"))


async def test_a_program_that_hangs_is_ended_in_time(studio: Studio) -> None:
    speaker = studio.speaker(SpeechConfig(command=sys.executable, args=("-c", "import time; time.sleep(600)")))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(refused(speaker))
        await studio.clock.wake(30)
    assert waiting.result() == "command did not speak within 30 s (timeout_seconds)"
    assert studio.leftovers() == []


async def test_openai_speaks_in_every_format_that_can_be_asked_for(walled: Studio) -> None:
    for form in ("mp3", "opus", "flac", "wav", "aac"):
        spoken = await walled.service(format=form, voice="coral").speak(TEXT, HERE)
        asked = {"model": "gpt-4o-mini-tts", "voice": "coral", "input": TEXT, "response_format": form}
        assert walled.server.asked[-1] == asked
        assert await walled.facts(spoken.blob) == ("opus", 48_000, 1)
        assert spoken.seconds == pytest.approx(length_of(TEXT), abs=0.3)
        assert spoken.usd == pytest.approx(15e-6 * len(TEXT))
        assert (spoken.provider, spoken.model, spoken.sent_to) == ("openai", "gpt-4o-mini-tts", "127.0.0.1")
    assert len(walled.server.asked) == 5


async def test_deepgram_speaks_with_the_model_that_is_its_voice(studio: Studio) -> None:
    spoken = await studio.service("deepgram", voice="aura-2-viktoria-de").speak(TEXT, HERE)
    assert studio.server.asked == [{"model": "aura-2-viktoria-de", "encoding": "mp3", "text": TEXT}]
    assert spoken.model == "aura-2-viktoria-de"
    await studio.service("deepgram").speak(TEXT, HERE)
    assert studio.server.asked[1]["model"] == "aura-2-thalia-en"


async def test_any_server_with_openais_interface_speaks(studio: Studio) -> None:
    spoken = await studio.service("house", model="tts-1", voice="nova").speak(TEXT, HERE)
    assert studio.server.asked[0]["model"] == "tts-1"
    assert spoken.provider == "house"


async def test_the_same_words_in_the_same_voice_are_paid_for_once(studio: Studio) -> None:
    first = await studio.service().speak(TEXT, HERE)
    again = await studio.service().speak(TEXT, HERE)
    assert again.blob == first.blob
    assert again.seconds == pytest.approx(first.seconds)
    assert (again.cached, again.usd, again.sent_to) == (True, 0.0, "")
    assert len(studio.server.asked) == 1
    await studio.service(voice="nova").speak(TEXT, HERE)
    await studio.service().speak(f"{TEXT}!", HERE)
    assert len(studio.server.asked) == 3


async def test_words_that_several_ask_for_at_once_are_spoken_once(studio: Studio) -> None:
    speaker = studio.service()
    first, second = await asyncio.gather(speaker.speak(TEXT, HERE), speaker.speak(TEXT, HERE))
    assert first.blob == second.blob
    assert len(studio.server.asked) == 1


async def test_a_voice_message_that_nothing_uses_is_deleted_and_then_made_again(studio: Studio) -> None:
    speaker = studio.service()
    spoken = await speaker.speak(TEXT, HERE)
    await studio.clock.advance(3_700)
    assert (await studio.store.tidy()).unused == 1
    assert await studio.store.blob(spoken.blob.sha256) is None
    assert not (await speaker.speak(TEXT, HERE)).cached


async def test_the_words_are_in_no_row_of_the_store(studio: Studio) -> None:
    await studio.service().speak("canary-7c1e in a cage", HERE)
    await studio.store.close()
    for path in (studio.folder / "home").rglob("*"):
        if path.is_file():
            assert b"canary-7c1e" not in path.read_bytes()


async def test_the_next_key_speaks_where_one_is_refused_or_used_up(studio: Studio) -> None:
    studio.server.keys |= {"sk-used-up-1"}
    studio.server.broke |= {"sk-used-up-1"}
    await studio.service("openai", "sk-wrong-12", "sk-used-up-1", KEY).speak(TEXT, HERE)
    assert studio.server.seen == ["sk-wrong-12", "sk-used-up-1", KEY]


async def test_a_refused_key_is_told_without_the_key(studio: Studio) -> None:
    told = await refused(studio.service("openai", "sk-wrong-12"))
    assert told.startswith("openai refused the key (status 401, invalid_api_key)")
    assert "sk-wrong" not in told


async def test_a_service_without_a_key_says_where_it_is_looked_for(studio: Studio) -> None:
    told = await refused(studio.speaker(SpeechConfig(provider="openai")))
    assert told == "openai has no key; set OPENAI_API_KEY, or profile and its key"


async def test_a_channel_that_has_spent_its_money_hears_nothing_more_that_day(studio: Studio) -> None:
    price = 15e-6 * len(TEXT)
    speaker = studio.service()
    speaker._usd_per_day = 1.5 * price
    await speaker.speak(TEXT, HERE)
    await speaker.speak(TEXT, HERE)
    assert await refused(speaker, f"{TEXT}!") == "over daily limit: $0.00 of $0.00 are spent (usd_per_day)"
    await speaker.speak(f"{TEXT}!", replace(HERE, channel="there"))
    await studio.clock.advance(86_401)
    await speaker.speak(f"{TEXT}?", HERE)
    unpriced = studio.speaker(replace(speaker.config, usd_per_mchar=None), KEY)
    unpriced._usd_per_day = 1.0
    assert "has no price (usd_per_mchar)" in await refused(unpriced, f"{TEXT}…")


async def test_what_a_service_refuses_is_told_with_its_status(studio: Studio) -> None:
    assert await refused(studio.service(model="tts-9")) == "openai refused the request (status 400, invalid_value)"
    text = "ten chars " * 205
    assert "413" in await refused(studio.service("deepgram"), text)


def html(text: str) -> web.StreamResponse:
    return web.Response(text="<!doctype html><html><body>Sign in</body></html>", content_type="audio/mpeg")


def huge(text: str) -> web.StreamResponse:
    return web.Response(body=hum(1) + bytes(50 * 1024 * 1024), content_type="audio/wav")


def truncated(text: str) -> web.StreamResponse:
    return web.Response(body=hum(length_of(text))[:4_000], content_type="audio/wav")


def silent(text: str) -> web.StreamResponse:
    return web.Response(body=hum(length_of(text), loud=0), content_type="audio/wav")


def endless(text: str) -> web.StreamResponse:
    return web.Response(body=hum(85, rate=4_000), content_type="audio/wav")


def empty(text: str) -> web.StreamResponse:
    return web.Response(body=b"", content_type="audio/mpeg")


def noise(text: str) -> web.StreamResponse:
    return web.Response(body=b"\xff\xfb\x90\x00" + bytes(range(256)) * 40, content_type="audio/mpeg")


def elsewhere(text: str) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/steal"})


LIES = {
    html: "it is text/html, not sound",
    huge: "over 16777216 bytes",
    truncated: "it was cut off",
    silent: "it is silent",
    endless: "it is not this text",
    empty: "it is empty",
    noise: "openai",
    elsewhere: "302",
}


async def test_what_is_no_voice_message_of_the_text_is_refused_with_the_reason(walled: Studio) -> None:
    for lie, reason in LIES.items():
        walled.server.instead = lie
        assert reason in await refused(walled.service())
        assert walled.leftovers() == []
    walled.server.instead = None
    assert not (await walled.service().speak(TEXT, HERE)).cached


async def test_a_sound_that_was_written_before_its_length_was_known_is_taken(studio: Studio) -> None:
    """As programs write to a pipe, and services to a connection."""
    whole = hum(length_of(TEXT))
    sound = whole[:4] + b"\xff\xff\xff\xff" + whole[8:40] + b"\xff\xff\xff\xff" + whole[44:]
    studio.server.instead = lambda text: web.Response(body=sound, content_type="audio/wav")
    spoken = await studio.service(format="wav").speak(TEXT, HERE)
    assert spoken.seconds == pytest.approx(length_of(TEXT), abs=0.2)


async def test_a_service_that_cannot_be_reached_is_told_as_such(studio: Studio) -> None:
    config = SpeechConfig(provider="openai", base_url="http://127.0.0.1:1/v1")
    speaker = studio.speaker(config, KEY)
    assert (await refused(speaker)).startswith("openai gave no answer: ")


async def test_the_doctor_hears_the_voice_and_is_told_the_price(studio: Studio) -> None:
    (finding,) = await studio.service().check()
    assert finding.ok
    assert finding.name == "speech openai"
    assert finding.says.startswith("it speaks: 1s of sound in ")
    assert finding.says.endswith(", $0.0003, texts are sent to 127.0.0.1")
    assert studio.server.asked[0]["input"] == SAMPLE
    (local,) = await studio.program().check()
    assert local.says.endswith("no charge, nothing leaves this machine")
    broken = replace(studio.program().config, args=("-c", "import sys; sys.exit('no such voice')"))
    (finding,) = await studio.speaker(broken).check()
    assert not finding.ok
    assert "no such voice" in finding.says
