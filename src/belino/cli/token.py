"""belino token create|ls|revoke: tokens that give a program access to one conversation."""

from argparse import ArgumentParser, Namespace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.cli import OK
from belino.cli.client import GatewayClient, Unknown, ask, no_conversation
from belino.cli.command import NAME, number_from, text_up_to
from belino.cli.show import local_time, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.domain.stored import GrantKind

if TYPE_CHECKING:
    from belino.storage.store import Store

MOST_DAYS = 3650
NOTE_CHARS = 100


def token_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|ls|revoke", help="what to do")
    create = actions.add_parser(
        "create", help="make a token and print it once", description="Make a token and print it; it is shown once."
    )
    create.add_argument(
        "--conversation",
        required=True,
        metavar="CONVERSATION",
        help="what it opens (platform:account:channel[:thread])",
    )
    create.add_argument(
        "--note", type=text_up_to(NOTE_CHARS, least=0), default="", metavar="TEXT", help="what it is for"
    )
    create.add_argument(
        "--days", type=number_from(1, MOST_DAYS), metavar="N", help="how long it works (default: until revoked)"
    )
    actions.add_parser("ls", help="list tokens", description="List tokens; their secrets are not kept.")
    revoke = actions.add_parser("revoke", help="end a token", description="End a token.")
    revoke.add_argument("id", type=NAME, metavar="ID", help="the token's id, as `belino token ls` shows it")


def run_token(args: Namespace) -> int:
    return {"create": _create, "ls": _list, "revoke": _revoke}[args.action](args)


def _create(args: Namespace) -> int:
    conversation = ConversationKey.parse(args.conversation)

    async def resting(store: "Store") -> dict[str, Any]:
        from belino.web.wire import grant_json

        lifetime = None if args.days is None else timedelta(days=args.days)
        grant, secret = await store.grant(
            GrantKind.CHANNEL, conversation=conversation, note=args.note, lifetime=lifetime
        )
        return {**grant_json(grant), "token": secret}

    wish = {"conversation": str(conversation), "note": args.note, **({} if args.days is None else {"days": args.days})}
    try:
        answer = ask(args, running=lambda gateway: gateway.post("/api/tokens", wish), resting=resting)
    except Unknown:
        raise no_conversation(conversation) from None
    if args.json:
        show_json(answer)
    else:
        print(answer["token"])
    return OK


def _list(args: Namespace) -> int:
    async def resting(store: "Store") -> dict[str, Any]:
        from belino.web.wire import grant_json

        return {"tokens": [grant_json(grant) for grant in await store.grants()]}

    answer = ask(args, running=lambda gateway: gateway.get("/api/tokens"), resting=resting)
    if args.json:
        show_json(answer)
        return OK
    rows = [
        (
            token["id"],
            token["kind"],
            token["conversation"],
            token["note"],
            local_time(token["created"]),
            local_time(token["expires"]) or "never",
        )
        for token in answer["tokens"]
    ]
    show_table(("id", "kind", "conversation", "note", "created", "expires"), rows, empty="no token yet")
    return OK


def _revoke(args: Namespace) -> int:
    async def resting(store: "Store") -> dict[str, Any]:
        return {"revoked": await store.revoke(args.id)}

    def running(gateway: GatewayClient) -> dict[str, Any]:
        known = {token["id"] for token in gateway.get("/api/tokens")["tokens"]}
        if args.id in known:
            gateway.delete(f"/api/tokens/{quote(args.id, safe='')}")
        return {"revoked": args.id in known}

    answer = ask(args, running=running, resting=resting)
    if not answer["revoked"]:
        raise BelinoError(f"there is no token {args.id}; see `belino token ls`")
    if args.json:
        show_json(answer)
    else:
        print(f"revoked {args.id}")
    return OK
