"""Socket of a linked device: neonize in a process of its own, which speaks the lines of `belino.aio.companion`.

It is run by its path and imports nothing of belino. In a process of its own because neonize brings the runtime of Go:
a panic there ends the process, its table of clients is not locked, it prints, and it keeps a stopped thread for minutes.
Its callbacks come on threads of Go; one writes its event and waits for the acknowledgement, so that at most one is here.
"""

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

VERSION = "0.5.2"
CALLS_AT_ONCE = 4
# Of a conversation's history: the latest, in parts of bounded size.
MOST_PAST, PAST_AT_ONCE = 200, 50
# Thumbnails, and keys that only the library needs.
DROPPED = frozenset(
    "Raw JPEGThumbnail pngThumbnail thumbnailDirectPath thumbnailSHA256 thumbnailEncSHA256 scansSidecar streamingSidecar "
    "firstFrameSidecar firstScanSidecar messageSecret deviceListMetadata senderKeyDistributionMessage waveform".split()
)
# Refuses every connection: https://www.rfc-editor.org/rfc/rfc863 is not served any more.
NOWHERE = "http://127.0.0.1:9"
_AUTH = re.compile(r'"https://([^/"\s]+)/[^"\s]*[?&]auth=([^&"\s]+)')
_KINDS = (
    ("rate-overlimit", "limited"),
    ("429", "limited"),
    ("not connected", "unreached"),
    ("device JID", "unlinked"),
    ("not-authorized", "unlinked"),
    ("timed out", "unanswered"),
    ("disconnected", "unanswered"),
)


class Refused(Exception):
    """A call that cannot be done, with its kind."""

    def __init__(self, kind: str, says: str) -> None:
        super().__init__(says)
        self.kind = kind


class Lines:
    """The lines to the gateway: answers at once, events one by one."""

    def __init__(self) -> None:
        # Go and neonize print to the standard output, too.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        self._writing, self._telling = threading.Lock(), threading.Lock()
        self._acked = threading.Semaphore(0)
        self._count = 0

    def tell(self, event: str, data: object) -> None:
        """Write an event and wait until it was processed."""
        with self._telling:
            self._count += 1
            self.write({"n": self._count, "event": event, "data": data})
            self._acked.acquire()

    def ack(self) -> None:
        self._acked.release()

    def write(self, line: object) -> None:
        with self._writing:
            self._out.write(json.dumps(line) + "\n")
            self._out.flush()


def library_problem() -> str:
    """Why neonize must not be imported: it downloads its library if that is missing or of another version."""
    cure = f"install it by pip install 'belino[whatsapp]', which has neonize {VERSION}"
    found = importlib.util.find_spec("neonize")
    if found is None or not found.submodule_search_locations:
        return f"neonize is not installed; {cure}"
    if (version := importlib.metadata.version("neonize")) != VERSION:
        return f"neonize {version} is installed; {cure}"
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    system, ending = platform.system().lower(), "dylib" if sys.platform == "darwin" else "so"
    file = Path(found.submodule_search_locations[0]) / f"neonize-{system}-{machine}.{ending}"
    if not file.is_file():
        return f"neonize {VERSION} has no library for {system} on {machine}"
    library = ctypes.CDLL(str(file))
    library.GetVersion.restype = ctypes.c_char_p
    held = library.GetVersion().decode()
    return "" if held == VERSION else f"the library of neonize is of version {held}; {cure}"


def plain(message: Any) -> Any:
    """A message of neonize as JSON."""
    from google.protobuf.json_format import MessageToDict

    return _without(MessageToDict(message, preserving_proto_field_name=True))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(inner) for key, inner in value.items() if key not in DROPPED}
    return [_without(inner) for inner in value] if isinstance(value, list) else value


def past(synced: Any) -> Iterator[dict[str, Any]]:
    """The latest messages of each conversation in a history, in parts."""
    for conversation in synced.conversations:
        latest = [each.message for each in list(conversation.messages)[:MOST_PAST]]
        for at in range(0, len(latest), PAST_AT_ONCE):
            part = [plain(message) for message in latest[at : at + PAST_AT_ONCE]]
            chat = conversation.pnJID or conversation.ID
            yield {"chat": chat, "name": conversation.name, "messages": part}


class Device:
    """The client of neonize for one session."""

    def __init__(self, lines: Lines, task: dict[str, Any]) -> None:
        from neonize.client import NewClient
        from neonize.proto.waCompanionReg.WAWebProtobufsCompanionReg_pb2 import DeviceProps

        self._lines, self._phone, self._has_code = lines, str(task.get("phone") or ""), False
        props = DeviceProps(os="belino", platformType=DeviceProps.DESKTOP, requireFullSync=False)
        self._client = NewClient(str(task["session"]), props=props, uuid="belino")
        self._calls = ThreadPoolExecutor(CALLS_AT_ONCE)
        self._subscribe()

    def _subscribe(self) -> None:
        from neonize import events

        ended = {
            events.LoggedOutEv: "logged out",
            events.StreamReplacedEv: "replaced",
            events.TemporaryBanEv: "banned",
            events.ClientOutdatedEv: "outdated",
            events.ConnectFailureEv: "refused",
        }
        told = {
            events.MessageEv: "message",
            events.ReceiptEv: "receipt",
            events.UndecryptableMessageEv: "undecryptable",
            events.GroupInfoEv: "group",
            events.JoinedGroupEv: "joined",
            events.PairStatusEv: "paired",
            events.DisconnectedEv: "disconnected",
        }
        for kind, name in told.items():
            self._client.event(kind)(lambda _, event, name=name: self._lines.tell(name, plain(event)))
        for kind, why in ended.items():
            self._client.event(kind)(
                lambda _, event, why=why: self._lines.tell("ended", {"why": why, "told": plain(event)})
            )
        self._client.event(events.ConnectedEv)(lambda *_: self._lines.tell("connected", self._me()))
        self._client.event(events.HistorySyncEv)(lambda _, event: self._tell_past(event.Data))
        self._client.event.qr(lambda _, code: self._tell_code(code))

    def _me(self) -> Any:
        return plain(self._client.get_me())

    def _tell_past(self, synced: Any) -> None:
        for part in past(synced):
            self._lines.tell("history", part)

    def _tell_code(self, code: bytes) -> None:
        self._lines.tell("qr", {"code": code.decode()})
        if self._phone and not self._has_code:
            self._has_code = True
            self._lines.tell("pairing", {"code": self._client.PairPhone(self._phone, True)})

    def connect(self) -> None:
        """Keep the connection, until the process ends."""
        try:
            self._client.connect()
            why = "the connection has ended"
        except Exception as error:
            why = str(error)
        self._lines.tell("ended", {"why": "stopped", "told": {"Message": why}})

    def take(self, number: int, name: str, arguments: dict[str, Any]) -> None:
        """Answer a call, by a thread."""
        self._calls.submit(self._answer, number, name, arguments)

    def _answer(self, number: int, name: str, arguments: dict[str, Any]) -> None:
        known: dict[str, Callable[[dict[str, Any]], Any]] = {
            "send": self._send,
            "read": self._read,
            "typing": self._typing,
            "groups": self._groups,
            "media": self._media,
        }
        try:
            if name not in known:
                raise Refused("unsupported", f"neonize {VERSION} has no call for {name}")
            self._lines.write({"answer": number, "result": known[name](arguments)})
        except Refused as error:
            self._lines.write({"answer": number, "error": error.kind, "says": str(error)})
        except Exception as error:
            says = re.sub(r"https?://\S+", "…", str(error))[:300]
            kind = next((kind for mark, kind in _KINDS if mark in says), "refused")
            self._lines.write({"answer": number, "error": kind, "says": says})

    def _send(self, arguments: dict[str, Any]) -> Any:
        from google.protobuf.json_format import ParseDict
        from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import Message

        sent = self._client.send_message(_jid(arguments["to"]), ParseDict(arguments["message"], Message()))
        return {"id": sent.ID, "time": sent.Timestamp}

    def _read(self, arguments: dict[str, Any]) -> Any:
        from neonize.utils.enum import ReceiptType

        chat, sender = _jid(arguments["chat"]), _jid(arguments["sender"])
        self._client.mark_read(*arguments["ids"], chat=chat, sender=sender, receipt=ReceiptType.READ)

    def _typing(self, arguments: dict[str, Any]) -> Any:
        from neonize.utils.enum import ChatPresence, ChatPresenceMedia

        media = ChatPresenceMedia.CHAT_PRESENCE_MEDIA_AUDIO if arguments.get("voice") else None
        self._client.send_chat_presence(
            _jid(arguments["chat"]),
            ChatPresence.CHAT_PRESENCE_COMPOSING,
            media or ChatPresenceMedia.CHAT_PRESENCE_MEDIA_TEXT,
        )

    def _groups(self, _: dict[str, Any]) -> Any:
        return {f"{group.JID.User}@{group.JID.Server}": group.GroupName.Name for group in self._client.get_joined_groups()}

    def _media(self, _: dict[str, Any]) -> Any:
        """Where files are uploaded, and the ticket for it.

        neonize only uploads a file that is in memory as a whole, and does not tell the ticket. An upload over a proxy
        that refuses every connection sends nothing, and its error names the address with the ticket.
        """
        from neonize.utils.enum import MediaType

        self._client.set_proxy_address(NOWHERE, no_websocket=True)
        try:
            self._client.upload(b"belino", MediaType.MediaDocument)
        except Exception as error:
            if (found := _AUTH.search(str(error))) is not None:
                return {"host": found[1], "auth": found[2]}
            raise Refused("unreached", "WhatsApp did not tell where files are uploaded") from None
        finally:
            self._client.set_proxy_address(None, no_websocket=True)
        raise Refused("unsupported", "the ticket for uploads cannot be had")


def _jid(text: str) -> Any:
    from neonize.utils.jid import build_jid

    user, _, server = text.partition("@")
    return build_jid(user, server)


def main() -> None:
    """Serve one session until the input ends."""
    os.umask(0o077)
    lines = Lines()
    task = json.loads(sys.stdin.readline())
    if problem := library_problem():
        threading.Thread(target=lines.tell, args=("ended", {"why": "missing", "told": {"Message": problem}})).start()
        device = None
    else:
        import pylibmagic  # noqa: F401 - libmagic, for python-magic

        device = Device(lines, task)
        threading.Thread(target=device.connect, daemon=True).start()
    for line in sys.stdin:
        told = json.loads(line)
        if "ack" in told:
            lines.ack()
        elif device is not None:
            device.take(told["call"], told["name"], told.get("arguments") or {})
    os._exit(0)  # threads of Go and of neonize would keep the process


if __name__ == "__main__":
    main()
