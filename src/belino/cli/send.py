"""belino send: a message and files from a script, with a receipt for each."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from belino.cli import FAILED, OK, UNCERTAIN
from belino.cli.client import GatewayClient, SilentGateway, Unknown, needed_gateway, no_conversation
from belino.cli.command import NAME, number_from
from belino.cli.show import clean, shorten, show_json
from belino.domain.errors import BelinoError
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.storage.home import Home

MARGIN_SECONDS = 120.0
"""Beyond the wait for receipts: time to prepare files."""


def send_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("conversation", metavar="CONVERSATION", help="platform:account:channel[:thread]")
    parser.add_argument("text", metavar="TEXT", nargs="?", default="", help="what to say, in Markdown; - reads stdin")
    parser.add_argument("--file", type=Path, metavar="F", action="append", default=[], help="a file to send")
    parser.add_argument("--as", dest="form", choices=[*SendAs], help="how to send the files; voice also speaks a text")
    parser.add_argument("--reply-to", type=NAME, metavar="MESSAGE", help="the id of a message to answer")
    parser.add_argument(
        "--wait", type=number_from(0, 600), default=60, metavar="SECONDS", help="how long to wait for receipts"
    )


def run_send(args: Namespace) -> int:
    where, gateway = ConversationKey.parse(args.conversation), needed_gateway(Home.at(args.home))
    text = sys.stdin.read() if args.text == "-" else args.text
    if not text.strip() and not args.file:
        raise BelinoError("there is nothing to send; give a text or --file")
    try:
        files = [{"upload_id": _uploaded(gateway, where, path)} for path in args.file]
        body = {"conversation": str(where), "text": text, "files": files, "as": args.form, "reply_to": args.reply_to}
        answer = _sent(gateway, {**body, "wait": args.wait}, args.wait + MARGIN_SECONDS)
    except Unknown:
        raise no_conversation(where) from None
    if answer is None:
        print("belino: the gateway did not answer; it is uncertain whether anything was sent", file=sys.stderr)
        return UNCERTAIN
    if args.json:
        show_json(answer)
    else:
        for parcel in answer["parcels"]:
            print(clean(_line(parcel)))
    return _code(answer["parcels"])


def _sent(gateway: GatewayClient, body: dict[str, Any], seconds: float) -> Any:
    """The gateway's answer; None if it got the request and none came."""
    try:
        return gateway.ask("POST", "/api/send", body, seconds=seconds)
    except SilentGateway:
        return None


def _uploaded(gateway: GatewayClient, where: ConversationKey, path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            named = {"conversation": str(where), "file_name": path.name[-255:], "size": size}
            upload = gateway.post("/api/uploads", named)
            offset, place = 0, f"/api/uploads/{upload['upload_id']}"
            while offset < size and (piece := file.read(upload["chunk_bytes"])):
                offset = int(gateway.append(place, offset, piece)["offset"])
    except OSError as error:
        raise BelinoError(f"{path} cannot be read: {error.strerror}") from None
    if offset != size:
        raise BelinoError(f"{path} changed while it was read; send it again")
    return str(upload["upload_id"])


def _line(parcel: dict[str, Any]) -> str:
    names = [file["name"] for file in parcel["files"]]
    what = shorten(", ".join([*names, *([parcel["text"]] if parcel["text"] else [])]), 60)
    reason = f": {parcel['reason']}" if parcel["reason"] and parcel["state"] != "sent" else ""
    receipt = f" as {parcel['message_id']}" if parcel["message_id"] else ""
    return f"{parcel['state']}{receipt}  {parcel['key']}  {what}{reason}"


def _code(parcels: list[dict[str, Any]]) -> int:
    """Failed if one failed, uncertain if one is uncertain or still under way, else OK."""
    states = [parcel["state"] for parcel in parcels]
    doubtful = [
        parcel["may_have_arrived"] or parcel["state"] in ("uncertain", "ready", "sending") for parcel in parcels
    ]
    if any(state in ("dead", "held") and not doubt for state, doubt in zip(states, doubtful, strict=True)):
        return FAILED
    return UNCERTAIN if any(doubtful) else OK
