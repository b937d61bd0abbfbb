"""Commands as clients of a running gateway, and how serve begins and ends."""

import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from belino.testing import GatewayProcess
from cli.shell import Belino, read

pytestmark = pytest.mark.slow


MAIN = "web:default:main"

HEAPS = """
import ctypes, threading
from belino.cli.serve import share_heap
share_heap()
system = ctypes.CDLL(None)
gate = threading.Barrier(8)
def allocate():
    gate.wait()
    system.malloc(100)
    gate.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
system.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(system.fdopen(1, b"w"))
system.malloc_info(0, out)
system.fflush(out)
"""

# An agent that never answers, as an installed package would bring it.
SLEEPER = """
import asyncio
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    pass

class Agent:
    remembers = sees_images = True
    def __init__(self, config): ...
    async def run_turn(self, turn):
        await asyncio.Event().wait()
        yield
"""


@pytest.fixture
def gateway(home: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(home) as running:
        yield running


def until_answered(gateway: GatewayProcess, messages: int) -> list[dict[str, Any]]:
    """Ask until the conversation holds so many messages; the socket tells pages, tests of the socket are elsewhere."""
    for _ in range(2_000):
        status, answer = gateway.call("GET", f"/api/messages?conversation={MAIN}&limit=50")
        assert status == 200, answer
        if len(answer["messages"]) >= messages:
            found: list[dict[str, Any]] = answer["messages"]
            return found
    raise AssertionError("the agent did not answer")


def test_serve_says_where_it_is_in_exactly_one_line_and_hides_the_rest(gateway: GatewayProcess, home: Path) -> None:
    assert gateway.line.startswith(f"belino is at {gateway.url}/#token=")
    run = json.loads((home / "run.json").read_text(encoding="utf-8"))
    assert sorted(run) == ["pid", "started", "token", "url", "version"]
    assert run["pid"] == gateway.pid
    for path in [home, *home.rglob("*")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    secret = gateway.login_url.partition("#token=")[2]
    assert gateway.call("POST", "/api/login", {"token": secret})[0] == 200
    assert gateway.call("POST", "/api/login", {"token": secret})[0] == 401
    assert gateway.stop() == 0
    assert not (home / "run.json").exists()
    assert not [word for word in (secret, run["token"]) if word in gateway.log()]


def test_serve_can_say_it_in_json(home: Path) -> None:
    with GatewayProcess(home, arguments=("--json",)) as gateway:
        assert json.loads(gateway.line)["url"].startswith(f"{gateway.url}/#token=")
        assert gateway.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly_and_it_starts_again(
    gateway: GatewayProcess, home: Path, belino: Belino, number: signal.Signals
) -> None:
    assert gateway.stop(number) == 0
    assert "Traceback" not in gateway.log()
    assert read(belino("status", "--json"))["running"] is False
    gateway.start()
    assert read(belino("status", "--json"))["running"] is True


def test_a_second_gateway_on_the_same_folder_is_refused(gateway: GatewayProcess, belino: Belino) -> None:
    done = belino("serve", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "in use by another gateway" in done.stderr
    assert gateway.call("GET", "/healthz") == (200, {"ok": True})


def test_a_port_that_is_taken_is_one_sentence(belino: Belino) -> None:
    class Nobody(BaseHTTPRequestHandler):
        """Never asked."""

    with HTTPServer(("127.0.0.1", 0), Nobody) as taken:
        done = belino("serve", "--port", str(taken.server_port))
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.count("\n") == 1
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert "set server.port, or --port" in done.stderr


def test_a_message_is_answered_and_its_story_is_told_while_it_runs_and_after(
    gateway: GatewayProcess, belino: Belino
) -> None:
    wish = {"conversation": MAIN, "message": "hello\x1b[31m there", "attachments": [], "id": "mine-1"}
    status, taken = gateway.call("POST", "/api/messages", wish)
    assert status in (200, 201), taken
    asked, answered = until_answered(gateway, 2)[:2]
    assert (asked["id"], answered["author"]["is_agent"]) == ("mine-1", True)
    while_running = read(belino("explain", f"{MAIN}/mine-1", "--json"))
    stages = [step["stage"] for step in while_running["steps"]]
    assert [stage for stage in ("received", "stored", "gate", "turn", "reply", "delivery") if stage not in stages] == []
    shown = belino("explain", taken["trace"]).stdout
    assert shown.startswith(f"{MAIN} · ")
    assert "\x1b" not in shown
    assert gateway.stop() == 0
    afterwards = read(belino("explain", f"{MAIN}/mine-1", "--json"))
    assert afterwards == while_running


def test_every_answer_has_the_same_shape_with_and_without_a_gateway(gateway: GatewayProcess, belino: Belino) -> None:
    made = read(belino("token", "create", "--conversation", MAIN, "--note", "lab", "--json"))
    assert gateway.call("GET", f"/api/messages?conversation={MAIN}", token=made["token"])[0] == 200
    assert gateway.call("GET", "/api/status", token=made["token"])[0] in (401, 403, 404)
    questions = [("channels",), ("media", "ls"), ("doctor",)]
    running = [read(belino(*question, "--json")) for question in questions]
    tokens = read(belino("token", "ls", "--json"))["tokens"]
    assert gateway.stop() == 0
    resting = [read(belino(*question, "--json")) for question in questions]
    assert running[:2] == resting[:2]
    assert sorted(running[2]) == sorted(resting[2]) == ["findings", "ok"]
    assert [t for t in tokens if t["kind"] == "channel"] == [
        t for t in read(belino("token", "ls", "--json"))["tokens"] if t["kind"] == "channel"
    ]
    assert read(belino("token", "revoke", made["id"], "--json")) == {"revoked": True}


def test_login_prints_a_fresh_link_that_works_once(gateway: GatewayProcess, belino: Belino) -> None:
    done = belino("login")
    url, _, secret = done.stdout.strip().partition("/#token=")
    assert url == gateway.url
    assert gateway.call("POST", "/api/login", {"token": secret})[0] == 200
    assert gateway.call("POST", "/api/login", {"token": secret})[0] == 401


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("explain", "nope"), "there is no message 'nope' here; name it by trace, id, or conversation/id"),
        (("media", "fetch", "web_000000000000"), "there is no media web_000000000000; see `belino media ls`"),
        (("media", "fetch", "x", "--as", "text"), "there is no media x; see `belino media ls`"),
        (
            ("token", "create", "--conversation", "web:default:no"),
            "there is no conversation web:default:no; see `belino channels`",
        ),
        (
            ("outbox", "flush", "web:default:no"),
            "there is no conversation web:default:no; see `belino channels`",
        ),
        (("mcp", "--conversation", "web:default:no"), "there is no conversation web:default:no; see `belino channels`"),
        (("outbox", "show", "p", "--json"), "there is no parcel p; see `belino outbox`"),
        (("token", "revoke", "t", "--json"), "there is no token t; see `belino token ls`"),
        (("pair", "--revoke", "x"), "'x' is neither a sender nor a group; write it as `belino pair` shows it"),
        (
            ("pair", "--revoke", "web:a:b", "--json"),
            "web:a:b is neither paired nor a group that asked; see `belino pair`",
        ),
    ],
    ids=["message", "ref", "form", "conversation", "pending", "tools", "parcel", "token", "person", "pairing"],
)
def test_what_is_unknown_is_named_with_the_way_to_what_is_known(
    gateway: GatewayProcess, belino: Belino, command: tuple[str, ...], says: str
) -> None:
    done = belino(*command)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"belino: {says}\n")


def test_a_token_is_revoked_while_it_runs(gateway: GatewayProcess, belino: Belino) -> None:
    made = read(belino("token", "create", "--conversation", MAIN, "--json"))
    assert read(belino("token", "revoke", made["id"], "--json")) == {"revoked": True}
    assert gateway.call("GET", f"/api/messages?conversation={MAIN}", token=made["token"])[0] == 401
    assert belino("token", "revoke", made["id"]).returncode == 1


def test_after_a_kill_commands_answer_from_the_store(gateway: GatewayProcess, belino: Belino, home: Path) -> None:
    gateway.kill()
    assert (home / "run.json").exists()
    assert read(belino("status", "--json"))["running"] is False
    gateway.start()
    assert read(belino("status", "--json"))["running"] is True


def test_a_second_signal_ends_it_at_once(home: Path, tmp_path: Path) -> None:
    package = tmp_path / "installed"
    about = package / "sleeper-1.0.dist-info"
    about.mkdir(parents=True)
    (package / "sleeper.py").write_text(SLEEPER, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sleeper\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[belino.agents]\nsleeper = sleeper\n", encoding="utf-8")
    home.mkdir(mode=0o700)
    settings = '[agent]\nkind = "sleeper"\n[sessions]\nshutdown_seconds = 3600\n'
    (home / "belino.toml").write_text(settings, encoding="utf-8")
    with GatewayProcess(home, environment={"PYTHONPATH": str(package)}) as gateway:
        gateway.call("POST", "/api/messages", {"conversation": MAIN, "message": "hi", "attachments": []})
        for _ in range(2_000):
            if gateway.call("GET", "/api/status")[1]["waiting"]:
                break
        gateway.signal(signal.SIGINT)
        # Two signals at once may be delivered as one: the second waits until the first was heard.
        for _ in range(10_000):
            if "stopping; a second signal" in gateway.log():
                break
            gateway.call("GET", "/healthz")
        assert gateway.stop(signal.SIGINT) == 130


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of our own for a name nobody on this machine has."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "belino.test")])
    start = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start - timedelta(days=1))
        .not_valid_after(start + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(Encoding.PEM))
    key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return cert_file, key_file


def test_commands_reach_a_gateway_that_serves_https(home: Path, tmp_path: Path, belino: Belino) -> None:
    cert_file, key_file = write_certificate(tmp_path)
    home.mkdir(mode=0o700)
    settings = f'[server]\ntls_cert = "{cert_file}"\ntls_key = "{key_file}"\n'
    (home / "belino.toml").write_text(settings, encoding="utf-8")
    with GatewayProcess(home) as gateway:
        assert gateway.url.startswith("https://")
        assert read(belino("status", "--json"))["running"] is True
        assert belino("login").stdout.startswith("https://")
        assert gateway.stop() == 0


def test_all_threads_of_the_gateway_share_one_heap() -> None:
    done = subprocess.run([sys.executable, "-c", HEAPS], capture_output=True, text=True, check=True)
    assert done.stdout.count("<heap nr=") == 1
