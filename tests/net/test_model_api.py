"""Model APIs: bodies are streamed and as long as announced, answers bounded, errors without content."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import ProviderError, RateLimited, Unauthorized, Undeliverable
from belino.domain.reading import Material, Skill
from belino.net.client import Client
from belino.net.model_api import (
    PIECE,
    ApiAnswer,
    FileUpload,
    InlineFile,
    JsonBody,
    ModelApi,
    RemoteConfig,
    data_url,
    file_name,
    hosts,
)
from belino.net.redact import Secret
from belino.testing import FakeClock, FakeProviderContext
from belino.testing.models import ModelRaw
from belino.testing.models.openai import OpenAIServer

KEY = "canary-key-of-the-api"


def material(path: Path, content: bytes, mime: str = "image/png") -> Material:
    path.write_bytes(content)
    return Material(path=path, mime=mime, size=len(content))


async def collected(chunks: AsyncIterator[bytes]) -> list[bytes]:
    return [chunk async for chunk in chunks]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 5])
async def test_a_file_inside_json_is_standard_base64_of_the_announced_length(size: int, tmp_path: Path) -> None:
    content = bytes(n % 251 for n in range(size))
    file = material(tmp_path / "a", content)
    body = JsonBody({"model": "ü", "parts": [{"data": InlineFile(material=file)}, {"url": data_url(file)}]})
    chunks = await collected(body.chunks())
    whole = b"".join(chunks)
    assert len(whole) == int(body.headers["Content-Length"])
    assert max(map(len, chunks)) <= PIECE // 3 * 4
    sent = json.loads(whole)
    assert base64.b64decode(sent["parts"][0]["data"], validate=True) == content
    assert sent["parts"][1]["url"].startswith("data:image/png;base64,")
    assert sent["model"] == "ü"


async def test_a_prompt_with_a_lone_surrogate_is_still_json() -> None:
    body = JsonBody({"text": "a\ud800b"})
    whole = b"".join(await collected(body.chunks()))
    assert json.loads(whole)["text"] == "a?b"
    assert len(whole) == int(body.headers["Content-Length"])


async def test_a_file_that_became_shorter_is_not_sent_as_if_it_were_whole(tmp_path: Path) -> None:
    file = material(tmp_path / "a", b"12345")
    file.path.write_bytes(b"123")
    for body in (JsonBody(InlineFile(material=file)), FileUpload(file)):
        with pytest.raises(Undeliverable):
            await collected(body.chunks())
        assert body.trouble is not None


def test_an_upload_is_named_by_its_type_only(tmp_path: Path) -> None:
    sound = material(tmp_path / "my holiday.ogg", b"x", "audio/flac")
    assert file_name(sound) == "audio.flac"


def api(url: str, client: Any = None, *, clock: Any = None) -> ModelApi:
    config = RemoteConfig(base_url=url, key=Secret("KEY", KEY))
    return ModelApi(
        "Test", config, FakeProviderContext(http=client or Client(), clock=clock), own_url="https://api.example.com"
    )


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (b"", "application/json", "is empty"),
        (b"  \n", "application/json", "is empty"),
        (b'{"text": "priv', "application/json", "breaks off"),
        (b'["private"]', "application/json", "not a JSON object"),
        (b"<p>private</p>", "text/html; charset=utf-8", "with text/html instead of JSON"),
        (b"{}", "", "an unknown type"),
        (b"[" * 50_000, "application/json", "not valid JSON"),
        (b"\xff\xfe", "application/json", "not valid JSON"),
    ],
)
def test_an_answer_that_is_not_a_json_object_is_refused(body: bytes, kind: str, reason: str) -> None:
    with pytest.raises(ProviderError, match=reason) as caught:
        api("https://api.example.com").parsed(ApiAnswer(headers={"content-type": kind}, body=body))
    assert "priv" not in str(caught.value)


def test_a_kind_of_json_is_json() -> None:
    answer = ApiAnswer(headers={"Content-Type": "application/problem+json"}, body=b'{"a": 1}')
    assert api("https://api.example.com").parsed(answer) == {"a": 1}


def refused(status: int, body: Mapping[str, Any] | None = None, *, wait: str | None = None) -> Any:
    headers = {} if wait is None else {"retry-after": wait}
    return api("https://api.example.com").refusal(status, headers, body or {})


def test_errors_are_told_by_who_must_act() -> None:
    assert [type(refused(status)) for status in (401, 402, 403)] == [Unauthorized] * 3
    assert type(refused(400, {"error": {"code": "invalid_api_key"}})) is Unauthorized
    assert [type(refused(status)) for status in (400, 404, 413, 500, 503)] == [ProviderError] * 5
    waits = [refused(429), refused(529), refused(503, wait="20"), refused(429, wait="3.5")]
    assert [type(error) for error in waits] == [RateLimited] * 4
    assert [error.retry_after for error in waits] == [5.0, 5.0, 20.0, 3.5]


@pytest.mark.parametrize("code", [KEY, "two words", "x" * 100, "sk-123", "a\nb", 17, None, ["a"]])
def test_a_code_that_may_be_something_else_is_not_shown(code: object) -> None:
    assert str(refused(400, {"error": {"code": code, "message": "private"}})).endswith("(status 400)")


def test_only_urls_of_the_same_host_are_its_own() -> None:
    own = api("https://api.example.com/v1")
    assert own.is_own("https://api.example.com/upload?id=1")
    others = ["http://api.example.com/", "https://api.example.com:444/", "https://evil.example/", "", "https://a@b/"]
    assert not any(own.is_own(url) for url in others)


def test_the_host_of_a_base_url_gets_the_key_and_a_private_one_needs_its_port() -> None:
    assert hosts(RemoteConfig(base_url="https://api.example.com/v1")) == ("api.example.com",)
    assert hosts(RemoteConfig(base_url="http://localhost:11434/v1")) == ("localhost:11434",)


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


async def asked(server: OpenAIServer, reply: ModelRaw, *, clock: Any = None) -> Any:
    server.script = [reply]
    client = Client(hosts=[server.url.removeprefix("http://")])
    made = api(f"{server.url}/v1", client, clock=clock)
    try:
        async with made.within(30.0):
            body = {"model": "m", "messages": [{"role": "user", "content": str(Skill.DESCRIBE)}]}
            return await made.post("/chat/completions", JsonBody(body), seconds=60.0)
    finally:
        await client.close()


async def test_an_answer_of_fifty_megabytes_is_given_up_after_five(server: OpenAIServer) -> None:
    with pytest.raises(ProviderError, match="over 5242880 bytes"):
        await asked(server, ModelRaw(body=b" " * 1024 * 1024, times=50))


async def test_a_connection_that_breaks_in_the_answer_is_an_error(server: OpenAIServer) -> None:
    with pytest.raises(ProviderError):
        await asked(server, ModelRaw(body=b'{"choices": [', cut=True))


async def test_an_answer_that_stops_in_the_middle_ends_at_the_time_limit(server: OpenAIServer) -> None:
    clock = FakeClock()

    async def late() -> str:
        with pytest.raises(ProviderError) as caught:
            await asked(server, ModelRaw(body=b'{"choices": [', stalls=True), clock=clock)
        return str(caught.value)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(late())
        await server.arrived.wait()
        await clock.wake(30.0)
    assert task.result() == "Test did not finish within 30 seconds"


async def test_a_redirect_is_not_followed_with_the_key(server: OpenAIServer) -> None:
    with pytest.raises(ProviderError, match="status 307"):
        await asked(server, ModelRaw(status=307, headers={"Location": "http://127.0.0.1:9/"}))


def test_a_key_is_in_no_repr() -> None:
    assert KEY not in repr(api("https://api.example.com")) + repr(
        RemoteConfig(base_url="https://a", key=Secret("K", KEY))
    )
