"""Socket of a linked device: neonize as a companion program (`belino.aio.companion`).

In a process of its own, because neonize brings the runtime of Go: a panic there ends the process, its table of clients
has no lock, and it keeps threads of a stopped client for minutes. A callback, on a thread of Go, waits until its event
was processed: at most one is here, then a hundred in neonize, then WhatsApp has to wait.
"""

import ctypes
import importlib.metadata
import importlib.util
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from belino.aio.companion_program import Call, CallFailed, CompanionLines, explained

VERSION = "0.5.2"
# Of a conversation's history: the latest, in parts of bounded size.
MOST_PAST, PAST_AT_ONCE = 200, 50
# Thumbnails, and keys that only the library needs.
DROPPED = frozenset({
    "Raw", "JPEGThumbnail", "pngThumbnail", "thumbnailDirectPath", "thumbnailSHA256", "thumbnailEncSHA256",
    "scansSidecar", "streamingSidecar", "firstFrameSidecar", "firstScanSidecar", "messageSecret", "deviceListMetadata",
    "senderKeyDistributionMessage", "waveform",
})  # fmt: skip
NUMBERS = frozenset({"fileLength", "Timestamp", "Expire"})
NOWHERE = "http://127.0.0.1:9"  # a proxy that refuses every connection
_TICKET = re.compile(r'[?&]auth=([^&"\s]+)')
_KINDS = {
    r"rate-overlimit|\b429\b": "limited",
    r"server returned error 5\d\d": "failed",
    r"not connected": "unreached",
    r"device JID|not-authorized": "unlinked",
    r"timed out|disconnected": "unanswered",
}


def version_problem() -> str:
    """Why the installed neonize is not the one that this is written for; empty if it is."""
    found = importlib.util.find_spec("neonize") and importlib.metadata.version("neonize")
    cure = f"`pip install 'belino[whatsapp]'` installs neonize {VERSION}"
    return "" if found == VERSION else f"neonize {f'{found} is' if found else 'is not'} installed; {cure}"


def library_problem() -> str:
    """Why neonize must not be imported: it downloads its library if that is missing or of another version."""
    if problem := version_problem():
        return problem
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    name = f"neonize-{platform.system().lower()}-{machine}.{'dylib' if sys.platform == 'darwin' else 'so'}"
    file = Path(str(importlib.metadata.distribution("neonize").locate_file("neonize"))) / name
    if not file.is_file():
        return f"neonize {VERSION} has no library for {platform.system()} on {machine}"
    library = ctypes.CDLL(str(file))
    library.GetVersion.restype = ctypes.c_char_p
    is_that = library.GetVersion() == VERSION.encode()
    return "" if is_that else f"the library of neonize is not of version {VERSION}; install neonize again"


def plain(message: Any) -> Any:
    """A message of neonize as JSON: addresses and 64-bit numbers as such, without what nothing reads."""
    from google.protobuf.json_format import MessageToDict

    return _plain(MessageToDict(message, preserving_proto_field_name=True))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "Server" in value:
        return f"{value.get('User', '')}@{value['Server']}" if value["Server"] else ""
    kept = {key: int(each) if key in NUMBERS else each for key, each in value.items() if key not in DROPPED}
    return {key: _plain(each) for key, each in kept.items()}


def past(synced: Any, me: str) -> Iterator[dict[str, Any]]:
    """The latest messages of each conversation in a history, in the form of live ones, in parts."""
    for conversation in synced.conversations:
        chat, latest = conversation.pnJID or conversation.ID, list(conversation.messages)[:MOST_PAST]
        for at in range(0, len(latest), PAST_AT_ONCE):
            yield {"messages": [_past(each.message, chat, me) for each in latest[at : at + PAST_AT_ONCE]]}


def _past(message: Any, chat: str, me: str) -> dict[str, Any]:
    sender = me if message.key.fromMe else message.key.participant or message.participant or chat
    info = {
        "MessageSource": {"Chat": chat, "Sender": sender, "IsFromMe": message.key.fromMe},
        "ID": message.key.ID,
        "Pushname": message.pushName,
        "Timestamp": message.messageTimestamp * 1000,
    }
    return {"Info": info, "Message": plain(message.message)}


class Device:
    """The client of neonize for one session."""

    def __init__(self, lines: CompanionLines, task: Mapping[str, Any]) -> None:
        from neonize import events
        from neonize.client import NewClient
        from neonize.proto.waCompanionReg.WAWebProtobufsCompanionReg_pb2 import DeviceProps

        self._lines, self._phone, self._me = lines, str(task.get("phone") or ""), ""
        props = DeviceProps(os="belino", platformType=DeviceProps.DESKTOP)
        self._client = NewClient(str(task["session"]), props=props, uuid="belino")
        told = {
            "message": events.MessageEv, "receipt": events.ReceiptEv, "undecryptable": events.UndecryptableMessageEv,
            "group": events.GroupInfoEv, "joined": events.JoinedGroupEv, "paired": events.PairStatusEv,
            "disconnected": events.DisconnectedEv, "logged out": events.LoggedOutEv, "banned": events.TemporaryBanEv,
            "replaced": events.StreamReplacedEv, "outdated": events.ClientOutdatedEv,
            "refused": events.ConnectFailureEv,
        }  # fmt: skip
        for name, kind in told.items():
            self._client.event(kind)(lambda _, event, name=name: lines.tell(name, plain(event)))
        self._client.event(events.ConnectedEv)(lambda *_: self._connected())
        self._client.event(events.HistorySyncEv)(lambda _, event: self._tell_past(event.Data))
        self._client.event.qr(lambda _, code: self._tell_codes(code.decode()))

    def _connected(self) -> None:
        me = plain(self._client.get_me())
        self._me = me.get("JID", "")
        self._lines.tell("connected", me)

    def _tell_past(self, synced: Any) -> None:
        for part in past(synced, self._me):
            self._lines.tell("history", part)

    def _tell_codes(self, code: str) -> None:
        self._lines.tell("qr", {"code": code})
        phone, self._phone = self._phone, ""
        if phone:  # the code to type is valid as long as the connection
            self._lines.tell("pairing", {"code": self._client.PairPhone(phone, True)})

    def start(self) -> Mapping[str, Call]:
        """Connect, until the process ends. Returns the calls by their names."""
        from neonize.exc import NeonizeError

        self._lines.keep(self._client.connect, NeonizeError)
        calls = {"send": self._send, "read": self._read, "typing": self._typing, "groups": self._groups}
        calls |= {"media": self._ticket}
        return {name: explained(call, NeonizeError, _KINDS) for name, call in calls.items()}

    def _send(self, told: Mapping[str, Any]) -> object:
        from google.protobuf.json_format import ParseDict
        from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import Message

        sent = self._client.send_message(_jid(told["to"]), ParseDict(told["message"], Message()))
        return {"id": sent.ID, "time": sent.Timestamp}

    def _read(self, told: Mapping[str, Any]) -> object:
        from neonize.utils.enum import ReceiptType

        chat, sender = _jid(told["chat"]), _jid(told["sender"])
        return self._client.mark_read(*told["ids"], chat=chat, sender=sender, receipt=ReceiptType.READ)

    def _typing(self, told: Mapping[str, Any]) -> object:
        from neonize.utils.enum import ChatPresence, ChatPresenceMedia

        media = ChatPresenceMedia(int(bool(told.get("voice"))))
        return self._client.send_chat_presence(_jid(told["chat"]), ChatPresence.CHAT_PRESENCE_COMPOSING, media)

    def _groups(self, _: Mapping[str, Any]) -> object:
        return {plain(group)["JID"]: group.GroupName.Name for group in self._client.get_joined_groups()}

    def _ticket(self, _: Mapping[str, Any]) -> object:
        """The ticket for uploads, which neonize does not tell, and it uploads only what is in memory as a whole."""
        # An upload over a proxy that refuses every connection sends nothing, and its error names the address with it.
        from neonize.exc import UploadError
        from neonize.utils.enum import MediaType

        self._client.set_proxy_address(NOWHERE, no_websocket=True)
        try:
            self._client.upload(b"belino", MediaType.MediaDocument)
        except UploadError as error:
            if (found := _TICKET.search(str(error))) is not None:
                return {"auth": unquote(found[1])}
            raise
        finally:
            self._client.set_proxy_address(None, no_websocket=True)
        raise CallFailed("unsupported", "the ticket for uploads cannot be had")


def _jid(text: str) -> Any:
    from neonize.utils.jid import build_jid

    user, _, server = text.partition("@")
    return build_jid(user, server)


def start(lines: CompanionLines, task: Mapping[str, Any]) -> Mapping[str, Call]:
    """Begin to serve one session."""
    if problem := library_problem():
        raise CallFailed("missing", problem)
    import pylibmagic  # noqa: F401 - libmagic, for python-magic

    return Device(lines, task).start()


if __name__ == "__main__":
    CompanionLines().serve(start)
