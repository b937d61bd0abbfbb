"""The program with neonize: never a download, its own messages as our samples have them, no connection in tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from belino.adapters.whatsapp.linked import socket
from belino.adapters.whatsapp.linked.client import PROGRAM

SAMPLES = Path(__file__).parent.parent / "samples" / "whatsapp" / "linked"
NOWHERE = "http://127.0.0.1:9"
SENT = [
    {"conversation": "hi"},
    {"extendedTextMessage": {"text": "hi", "contextInfo": {"stanzaID": "3A", "participant": "1@s.whatsapp.net"}}},
    {"reactionMessage": {"key": {"remoteJID": "1@g.us", "fromMe": False, "ID": "3A"}, "senderTimestampMS": "1"}},
    {"protocolMessage": {"key": {"remoteJID": "1@g.us", "fromMe": True, "ID": "3A"}, "type": "REVOKE"}},
    {"audioMessage": {"PTT": True, "waveform": "AAAA", "mimetype": "audio/ogg", "seconds": 2, "fileLength": "5"}},
    {"documentMessage": {"fileName": "a", "title": "a", "mediaKey": "AAAA", "fileSHA256": "AAAA", "directPath": "/v"}},
    {"videoMessage": {"fileEncSHA256": "AAAA", "URL": "https://x", "width": 1, "height": 1, "caption": "c"}},
]
CHECK = """
import json, os, sys
import belino.adapters.whatsapp.linked.socket as socket
assert socket.library_problem() == "", socket.library_problem()
import pylibmagic, neonize.download
def never(*_, **__):
    raise AssertionError("a download")
neonize.download.download = never
from google.protobuf.json_format import ParseDict
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import Message
given = json.load(sys.stdin)
for message in given["sent"]:
    ParseDict(message, Message())
for message in given["come"]:
    again = socket.plain(ParseDict(message, Message()))
    assert again == message, (again, message)
print("checked", flush=True)
os._exit(0)
"""


def program(**environment: str) -> subprocess.Popen[str]:
    proxies = dict.fromkeys(("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"), NOWHERE)
    return subprocess.Popen(
        PROGRAM,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **proxies, **environment},
        text=True,
    )


@pytest.mark.parametrize(
    ("version", "machine", "says"),
    [("0.5.1", "x86_64", "neonize 0.5.2 is installed"), (socket.VERSION, "riscv64", "has no library for")],
)
def test_another_library_is_never_imported(
    monkeypatch: pytest.MonkeyPatch, version: str, machine: str, says: str
) -> None:
    monkeypatch.setattr(socket, "VERSION", version)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert says in socket.library_problem()


def test_without_the_extra_the_reason_is_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'belino[whatsapp]'" in socket.library_problem()


def test_the_ticket_for_uploads_is_found_in_the_error_of_an_upload_that_reached_nobody() -> None:
    error = (
        'failed to execute request: Post "https://media-fra3-1.cdn.whatsapp.net/mms/document/AbC%3D?auth=AWR%2Bx%3D%3D'
        '&token=AbC%3D": proxyconnect tcp: dial tcp 127.0.0.1:9: connect: connection refused'
    )
    found = socket._TICKET.search(error)
    assert found is not None
    assert unquote(found[1]) == "AWR+x=="


def test_addresses_and_numbers_are_plain_and_thumbnails_are_dropped() -> None:
    raw = {"Chat": {"User": "1", "Server": "s.whatsapp.net", "Device": 3}, "Sender": {"User": "", "Server": ""}}
    raw |= {"fileLength": "12", "JPEGThumbnail": "AAAA", "list": [{"Timestamp": "5"}]}
    plain: Any = {"Chat": "1@s.whatsapp.net", "Sender": "", "fileLength": 12, "list": [{"Timestamp": 5}]}
    assert socket._plain(raw) == plain


@pytest.mark.slow
def test_what_comes_and_what_is_sent_are_messages_of_neonize() -> None:
    come = [json.loads(path.read_text("utf-8"))["data"].get("Message", {}) for path in SAMPLES.glob("*.json")]
    given = json.dumps({"sent": SENT, "come": come})
    done = subprocess.run([sys.executable, "-c", CHECK], input=given, capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("checked"), done.stderr


@pytest.mark.slow
def test_the_program_says_what_it_cannot_do_and_keeps_its_session_private(tmp_path: Path) -> None:
    session = tmp_path / "session.db"
    with program() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps({"session": str(session)}), file=process.stdin, flush=True)
        ended = json.loads(process.stdout.readline())
        answers = {}
        calls = {
            "send": {"to": "1@s.whatsapp.net", "message": {"conversation": "hi"}},
            "media": {},
            "groups": {},
            "reupload": {},
        }
        for number, (name, arguments) in enumerate(calls.items()):
            print(json.dumps({"call": number, "name": name, "arguments": arguments}), file=process.stdin, flush=True)
            answers[name] = json.loads(process.stdout.readline())["error"]
        process.stdin.close()
        assert process.wait(30) == 0
    assert ended["event"] == "stopped"
    assert answers == {"send": "unlinked", "media": "unreached", "groups": "unreached", "reupload": "unsupported"}
    assert session.stat().st_mode & 0o777 == 0o600
