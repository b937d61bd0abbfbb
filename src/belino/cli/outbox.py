"""belino outbox: list unsent and failed parcels, retry or drop them, and send pending files."""

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.cli import FAILED, OK
from belino.cli.client import GatewayClient, Unknown, ask, needed_gateway, no_conversation
from belino.cli.command import NAME
from belino.cli.show import clean, counted, local_time, shorten, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store

LISTED = 500


def outbox_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ls|show|retry|drop|flush", help="what to do (default: ls)")
    listing = actions.add_parser(
        "ls", help="list what was not sent", description="List what waits, is held, uncertain or dead, and why."
    )
    listing.add_argument("--all", action="store_true", help="also what was sent or dropped")
    for name, says, told in (
        ("show", "show one parcel", "Show one parcel, its state and the reason."),
        ("retry", "send one now", "Send a parcel now, regardless of earlier attempts."),
        ("drop", "never send one", "Drop a parcel: it is never sent."),
    ):
        action = actions.add_parser(name, help=says, description=told)
        action.add_argument("key", type=NAME, metavar="KEY", help="the parcel, as `belino outbox` shows it")
    says = "Send the files that wait in the folder pending, without waiting for a reply. Needs a running gateway."
    flush = actions.add_parser("flush", help="send pending files now", description=says)
    flush.add_argument(
        "conversation", metavar="CONVERSATION", nargs="?", help="platform:account:channel[:thread] (default: all)"
    )


def run_outbox(args: Namespace) -> int:
    actions: dict[str | None, Callable[[Namespace], int]] = {
        None: _list,
        "ls": _list,
        "show": _show,
        "retry": _retry,
        "drop": _drop,
        "flush": _flush,
    }
    return actions[args.action](args)


def _list(args: Namespace) -> int:
    everything = bool(getattr(args, "all", False))
    found = _parcels(args, everything=everything, limit=LISTED)
    if args.json:
        show_json({"parcels": found})
        return OK
    rows = [
        (
            _state(one),
            one["key"],
            one["conversation"],
            local_time(one["changed"]),
            shorten(_what(one), 40),
            one["reason"],
        )
        for one in found
    ]
    kept = found or (not everything and _parcels(args, everything=True, limit=1))
    # Sent parcels are deleted with their message, so "nothing was ever sent" would claim more than the store knows.
    nothing = (
        "nothing is waiting: everything was sent or dropped"
        if kept
        else "nothing is waiting, and nothing is on record as sent"
    )
    show_table(("state", "key", "conversation", "since", "what", "why"), rows, empty=nothing)
    return OK


def _parcels(args: Namespace, *, everything: bool, limit: int) -> list[dict[str, Any]]:
    async def resting(store: "Store") -> dict[str, Any]:
        from belino.web.wire import parcel_json

        found = await store.parcels(limit=limit, unsent=not everything)
        return {"parcels": [parcel_json(parcel) for parcel in found]}

    def running(gateway: GatewayClient) -> Any:
        return gateway.get("/api/outbox", limit=limit, unsent=None if everything else 1)

    listed: list[dict[str, Any]] = ask(args, running=running, resting=resting)["parcels"]
    return listed


def _show(args: Namespace) -> int:
    async def resting(store: "Store") -> dict[str, Any] | None:
        from belino.web.wire import parcel_json

        found = await store.parcel(args.key)
        return None if found is None else parcel_json(found)

    answer = _one(args, "GET", "", resting)
    if args.json:
        show_json(answer)
        return OK
    tries = counted(answer["attempts"], "try", "tries")
    lines = [f"{answer['key']}: {_state(answer)}, {tries}", *([answer["reason"]] if answer["reason"] else [])]
    lines += [f"to {answer['conversation']}, made {local_time(answer['created'])}, trace {answer['trace'] or 'none'}"]
    lines += [f"{file['name']}, {file['mime']}, {file['size']} bytes, as {file['send_as']}" for file in answer["files"]]
    for line in (*lines, *answer["text"].splitlines()):
        print(clean(line))
    return OK


def _retry(args: Namespace) -> int:
    return _decide(args, "POST", "/retry", lambda store: store.retry_parcel(args.key), "will be sent")


def _drop(args: Namespace) -> int:
    return _decide(args, "DELETE", "", lambda store: store.drop_parcel(args.key), "is dropped")


def _decide(args: Namespace, method: str, path: str, verb: "Callable[[Store], Any]", done: str) -> int:
    async def resting(store: "Store") -> dict[str, Any] | None:
        from belino.web.outbox import too_late
        from belino.web.wire import parcel_json

        before = await store.parcel(args.key)
        decided = await verb(store)
        if before is not None and decided is None:
            raise BelinoError(too_late(before))
        return None if decided is None else parcel_json(decided)

    answer = _one(args, method, path, resting)
    if args.json:
        show_json(answer)
    else:
        print(clean(f"{answer['key']} {done}: {_what(answer)}"))
    return OK


def _flush(args: Namespace) -> int:
    where = ConversationKey.parse(args.conversation) if args.conversation else None
    body = {"conversation": str(where)} if where else {}
    try:
        answer = needed_gateway(Home.at(args.home)).post("/api/outbox/flush", body)
    except Unknown:
        raise no_conversation(where) from None
    if args.json:
        show_json(answer)
    else:
        for line in _flushed_lines(answer["flushed"]):
            print(clean(line))
    refused = any(one["refused"] for one in answer["flushed"])
    return FAILED if refused else OK


def _one(args: Namespace, method: str, path: str, resting: "Callable[[Store], Awaitable[Any]]") -> Any:
    """The named parcel, or its outcome."""
    where = f"/api/outbox/{quote(args.key, safe='')}{path}"
    found = ask(args, running=lambda gateway: gateway.found(method, where), resting=resting)
    if found is None:
        raise BelinoError(f"there is no parcel {args.key}; see `belino outbox`")
    return found


def _state(parcel: dict[str, Any]) -> str:
    if parcel["state"] == "sent" and parcel["delivery"] in ("delivered", "read"):
        return f"sent, {parcel['delivery']}"
    return "dropped" if parcel["dropped"] else str(parcel["state"])


def _what(parcel: dict[str, Any], most: int = 60) -> str:
    names = [file["name"] for file in parcel["files"]]
    return shorten(", ".join([*names, *([parcel["text"]] if parcel["text"] else [])]), most)


def _flushed_lines(flushed: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in flushed:
        where = one["conversation"]
        lines += [f"{where}: {name} is queued" for name in one["sent"]]
        lines += [f"{where}: {each['name']} was not sent: {each['reason']}" for each in one["refused"]]
        if one["waiting"]:
            lines.append(f"{where}: {one['waiting']} still being written; flush again in a moment")
    return lines or ["nothing is pending"]
