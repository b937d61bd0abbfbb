"""belino pair [CODE]: accept a person who wrote to the agent directly, list requests, revoke a pairing."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.cli import OK
from belino.cli.client import GatewayClient, ask
from belino.cli.command import NAME
from belino.cli.show import clean, local_time, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey

if TYPE_CHECKING:
    from belino.storage.store import Store

WRONG = "no one is waiting under this code: it was mistyped, has run out, or was refused; `belino pair` shows who waits"


def pair_arguments(parser: ArgumentParser) -> None:
    wish = parser.add_mutually_exclusive_group()
    wish.add_argument(
        "code", type=NAME, metavar="CODE", nargs="?", default="ls", help="the code a stranger was told; or `ls`"
    )
    wish.add_argument(
        "--revoke", metavar="WHO", help="take a pairing back (platform:account:sender, as `belino pair` shows it)"
    )


def run_pair(args: Namespace) -> int:
    if args.revoke is not None:
        return _revoke(args)
    return _list(args) if args.code == "ls" else _approve(args)


def _list(args: Namespace) -> int:
    answer = ask(args, running=lambda gateway: gateway.get("/api/pairings"), resting=_pairings)
    if args.json:
        show_json(answer)
        return OK
    rows = [
        (p["state"], p["who"], p["name"], local_time(p["at"]), local_time(p["expires"])) for p in answer["pairings"]
    ]
    columns = ("state", "who", "calls themselves", "since", "code ends")
    show_table(columns, rows, empty="nobody is paired, and nobody waits; write to the agent directly to get a code")
    return OK


def _approve(args: Namespace) -> int:
    async def resting(store: "Store") -> dict[str, Any] | None:
        from belino.gateway.access import plain_code
        from belino.web.wire import pairing_json

        paired = await store.pair(plain_code(args.code))
        return None if paired is None else pairing_json(paired)

    answer = ask(
        args,
        running=lambda gateway: gateway.found("POST", "/api/pairings", {"code": args.code}),
        resting=resting,
    )
    if answer is None:
        raise BelinoError(WRONG)
    if args.json:
        show_json({"paired": answer})
    else:
        print(clean(f"paired {answer['who']} ({answer['name']}): they may command the agent in direct messages"))
    return OK


def _revoke(args: Namespace) -> int:
    try:
        who = ConversationKey.parse(args.revoke)
    except BelinoError:
        raise BelinoError(
            f"{args.revoke!r} names nobody; write platform:account:sender, as `belino pair` shows it"
        ) from None

    async def resting(store: "Store") -> dict[str, Any]:
        return {"revoked": await store.unpair(who.platform, who.account, who.channel)}

    def running(gateway: GatewayClient) -> dict[str, Any]:
        status, _ = gateway.answer("DELETE", f"/api/pairings?who={quote(args.revoke, safe='')}")
        return {"revoked": status != 404}

    answer = ask(args, running=running, resting=resting)
    if not answer["revoked"]:
        raise BelinoError(f"{args.revoke} is not paired; see `belino pair`")
    if args.json:
        show_json(answer)
    else:
        print(clean(f"revoked {args.revoke}"))
    return OK


async def _pairings(store: "Store") -> dict[str, Any]:
    from belino.web.wire import pairing_json

    return {"pairings": [pairing_json(pairing) for pairing in await store.pairings()]}
