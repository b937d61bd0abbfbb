"""A package somebody else wrote: found by its entry point, held to the contract, at work in a real gateway."""

import http.client
import json
import shutil
import threading
import tomllib
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from belino import config as settings
from belino import registry
from belino.domain.message import ConversationKey
from belino.domain.ports import Adapter, Hook
from belino.net.client import Client
from belino.net.guard import host_of
from belino.storage.home import Home
from belino.testing import FakeContext, GatewayProcess, Trial, check_adapter, make_png

SOURCE = Path(__file__).parent / "parrot"
CANARY = "canary-parrot-token"
PICTURE = make_png(31, 17)
SAMPLE = {
    "id": "m1",
    "channel": "cage",
    "who": "polly",
    "time": 1_767_268_800,
    "says": "what do you see?",
    "files": [{"file": "f1", "type": "image/png"}],
}


class Parrot(ThreadingHTTPServer):
    """The platform's own server."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ParrotRequest)
        self.said: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.heard = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


class ParrotRequest(BaseHTTPRequestHandler):
    """One request to Parrot."""

    server: Parrot

    def do_POST(self) -> None:
        wish = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls.append(self.path)
        if self.server.refusals:
            return self.answer(*self.server.refusals.pop(0), b"")
        if self.headers["X-Parrot"] != CANARY:
            return self.answer(401, {}, b"")
        self.server.said.setdefault(wish["key"], {**wish, "id": f"said-{len(self.server.said)}"})
        self.server.heard.set()
        return self.answer(200, {}, json.dumps({"id": self.server.said[wish["key"]]["id"]}).encode())

    def do_GET(self) -> None:
        self.server.calls.append(self.path)
        self.answer(200, {}, PICTURE) if self.path == "/file/f1" else self.answer(404, {}, b"")

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Quiet."""


@pytest.fixture
def parrot() -> Iterator[Parrot]:
    with Parrot() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package, installed as an installer would: its modules, its metadata, its entry points."""
    folder = tmp_path / "installed"
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    shutil.copy(SOURCE / "belino_parrot.py", folder)
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (about / "METADATA").write_text(metadata, encoding="utf-8")
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in offered.items())
        for group, offered in project["entry-points"].items()
    )
    (about / "entry_points.txt").write_text(points, encoding="utf-8")
    return folder


@pytest.fixture
def home(tmp_path: Path, parrot: Parrot) -> Home:
    home = Home.at(tmp_path / "home")
    (home.path / "belino.toml").write_text(
        f'[adapters.parrot]\nurl = "{parrot.url}"\ntoken = "env:PARROT_TOKEN"\n'
        '[adapters.parrot.access]\nsenders = ["polly"]\ndirect = "list"\n',
        encoding="utf-8",
    )
    return home


@pytest.fixture
async def http_client(parrot: Parrot) -> AsyncIterator[Client]:
    client = Client(hosts=[host_of(parrot.url)])
    yield client
    await client.close()


async def test_a_package_is_named_in_the_configuration_and_keeps_the_contract(
    installed: Path, parrot: Parrot, home: Home, http_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("PARROT_TOKEN", CANARY)
    plugin = registry.find("adapters", "parrot")
    config = next(a for a in settings.load(home).adapters if a.platform == "parrot")
    assert isinstance(config.options, plugin.config_type)

    async def deliver(adapter: Adapter, raw: Any) -> None:
        hook = Hook(method="POST", path="/", query="", headers={"x-parrot": CANARY}, body=json.dumps(raw).encode())
        answer = await plugin.module.Adapter.take_hook(adapter, hook)
        assert answer.status == 200

    checked = await check_adapter(
        Trial(
            make=lambda: plugin.make(config.options, FakeContext(http=http_client)),
            parse=lambda raw: plugin.module.parse(raw, account="default"),
            samples=[SAMPLE, {key: value for key, value in SAMPLE.items() if key not in ("says", "files")}],
            conversation=ConversationKey(platform="parrot", account="default", channel="cage"),
            secrets=[CANARY],
            deliver=deliver,
            media={"f1": PICTURE},
            refuse=lambda status, headers: parrot.refusals.append((status, dict(headers))),
        )
    )
    assert len(checked) == 10


def call_hook(gateway: GatewayProcess, body: dict[str, Any], token: str) -> int:
    address = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        connection.request("POST", "/hooks/parrot/default", json.dumps(body), {"X-Parrot": token})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.slow
def test_a_package_works_in_a_real_gateway_from_webhook_to_answer(installed: Path, parrot: Parrot, home: Home) -> None:
    environment = {"PYTHONPATH": str(installed), "PARROT_TOKEN": CANARY}
    with GatewayProcess(home.path, environment=environment) as gateway:
        _, status = gateway.call("GET", "/api/status")
        assert ("parrot", "default") in {(a["platform"], a["account"]) for a in status["adapters"]}
        assert call_hook(gateway, SAMPLE, "a stranger's guess") == 403
        assert call_hook(gateway, {**SAMPLE, "id": "m0", "who": "mallory"}, CANARY) == 200
        assert call_hook(gateway, SAMPLE, CANARY) == 200
        assert call_hook(gateway, SAMPLE, CANARY) == 200
        assert parrot.heard.wait(60), gateway.log()
        _, kept = gateway.call("GET", "/api/messages?conversation=parrot:default:cage")
        assert [m["author"]["id"] for m in kept["messages"]][:1] == ["polly"]
        assert gateway.stop() == 0
        assert "Traceback" not in gateway.log()
    assert {said["channel"] for said in parrot.said.values()} == {"cage"}
    assert len(parrot.said) == 1
    everything = [
        gateway.log(),
        *(path.read_bytes().decode("latin-1") for path in home.path.rglob("*") if path.is_file()),
    ]
    assert not [text for text in everything if CANARY in text]
