"""Give access: belino login for the web chat, belino pair for people and groups, belino token for programs."""

from argparse import ArgumentParser, Namespace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.cli import OK
from belino.cli.client import GatewayClient, Unknown, ask, needed_gateway, no_conversation
from belino.cli.command import NAME, number_from, text_up_to
from belino.cli.show import clean, local_time, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.domain.stored import GrantKind
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store

MOST_DAYS = 3650
NOTE_CHARS = 100
WRONG_CODE = "there is no request with this code: it is mistyped, expired or refused; `belino pair` lists the requests"


def run_login(args: Namespace) -> int:
    answer = needed_gateway(Home.at(args.home)).post("/api/logins", {})
    if args.json:
        show_json(answer)
    else:
        print(answer["url"])
    return OK


def pair_arguments(parser: ArgumentParser) -> None:
    wish = parser.add_mutually_exclusive_group()
    wish.add_argument(
        "code",
        type=NAME,
        metavar="CODE",
        nargs="?",
        default="ls",
        help="the code that the person was sent; or a group that asks, or its code; or `ls`",
    )
    wish.add_argument(
        "--revoke", metavar="WHO", help="revoke a pairing or the decision about a group, as `belino pair` shows it"
    )
    parser.add_argument("--everyone", action="store_true", help="for a group: let every person there command the agent")
    parser.add_argument("--refuse", action="store_true", help="for a group: refuse it, and do not ask again")


def run_pair(args: Namespace) -> int:
    if args.revoke is not None:
        return _revoke_pairing(args)
    return _list_pairings(args) if args.code == "ls" else _approve(args)


def _list_pairings(args: Namespace) -> int:
    answer = _asking(args)
    if args.json:
        show_json(answer)
        return OK
    rows = [
        (p["state"], p["who"], p["name"], local_time(p["at"]), local_time(p["expires"])) for p in answer["pairings"]
    ]
    columns = ("state", "who", "name", "since", "code expires")
    show_table(columns, rows, empty="there are no pairings and no requests; write to the agent directly to get a code")
    if answer["groups"]:
        print()
        groups = [
            (g["state"], g["group"], g["code"], g["name"], _inviter_name(g), _commanders(g), local_time(g["asked"]))
            for g in answer["groups"]
        ]
        show_table(("state", "group", "code", "name", "added by", "may command", "since"), groups, empty="")
    return OK


def _asking(args: Namespace) -> dict[str, Any]:
    """People and groups that ask for access or have it."""
    found: dict[str, Any] = ask(
        args,
        running=lambda gateway: {**gateway.get("/api/pairings"), **gateway.get("/api/groups")},
        resting=_stored_pairings,
    )
    return found


def _inviter_name(group: dict[str, Any]) -> str:
    return str(group["inviter"]["name"] or group["inviter"]["id"]) if group["inviter"] else ""


def _commanders(group: dict[str, Any]) -> str:
    if group["state"] != "allowed":
        return ""
    return "everyone there" if group["everyone"] else " and ".join(filter(None, (_inviter_name(group), "owners")))


def _approve(args: Namespace) -> int:
    typed = args.code.strip()
    groups = _asking(args)["groups"]
    group = next((g for g in groups if typed == g["group"] or typed.upper() == g["code"]), None)
    if group is not None:
        return _decide_group(args, group)
    if args.everyone or args.refuse or ":" in typed:
        raise BelinoError(f"there is no group {typed} that asks for access; `belino pair` lists the groups")
    return _approve_pairing(args)


def _decide_group(args: Namespace, group: dict[str, Any]) -> int:
    if args.refuse and args.everyone:
        raise BelinoError("--refuse and --everyone contradict each other")
    key = ConversationKey.parse(group["group"])

    async def resting(store: "Store") -> dict[str, Any] | None:
        from belino.domain.owner import GroupState
        from belino.web.wire import group_json

        state = GroupState.REFUSED if args.refuse else GroupState.ALLOWED
        decided = await store.decide_group(key, state, everyone=args.everyone)
        return None if decided is None else group_json(decided)

    wish = {"group": group["group"], "allow": not args.refuse, "everyone": args.everyone}
    answer = ask(args, running=lambda gateway: gateway.found("POST", "/api/groups", wish), resting=resting)
    if answer is None:
        raise BelinoError(f"{group['group']} no longer asks for access")
    if args.json:
        show_json({"group": answer})
    elif args.refuse:
        print(clean(f"refused {group['group']} ({group['name']}); it does not ask again"))
    else:
        print(clean(f"allowed {group['group']} ({group['name']}): {_commanders(answer)} may command the agent there"))
    return OK


def _approve_pairing(args: Namespace) -> int:
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
        raise BelinoError(WRONG_CODE)
    if args.json:
        show_json({"paired": answer})
    else:
        print(clean(f"paired {answer['who']} ({answer['name']}): they may command the agent in direct messages"))
    return OK


def _revoke_pairing(args: Namespace) -> int:
    try:
        who = ConversationKey.parse(args.revoke)
    except BelinoError:
        raise BelinoError(
            f"{args.revoke!r} is neither a sender nor a group; write it as `belino pair` shows it"
        ) from None

    async def resting(store: "Store") -> dict[str, Any]:
        unpaired = await store.unpair(who.platform, who.account, who.channel)
        return {"revoked": await store.forget_group(who) or unpaired}

    def running(gateway: GatewayClient) -> dict[str, Any]:
        named = quote(args.revoke, safe="")
        paths = (f"/api/pairings?who={named}", f"/api/groups?group={named}")
        found = [gateway.answer("DELETE", path)[0] != 404 for path in paths]
        return {"revoked": any(found)}

    answer = ask(args, running=running, resting=resting)
    if not answer["revoked"]:
        raise BelinoError(f"{args.revoke} is neither paired nor a group that asked; see `belino pair`")
    if args.json:
        show_json(answer)
    else:
        print(clean(f"revoked {args.revoke}"))
    return OK


async def _stored_pairings(store: "Store") -> dict[str, Any]:
    from belino.web.wire import group_json, pairing_json

    return {
        "pairings": [pairing_json(pairing) for pairing in await store.pairings()],
        "groups": [group_json(group) for group in await store.groups()],
    }


def token_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|ls|revoke", help="what to do")
    create = actions.add_parser(
        "create", help="make a token and print it once", description="Make a token and print it; it is shown once."
    )
    what = create.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--conversation",
        metavar="CONVERSATION",
        help="the conversation it gives access to (platform:account:channel[:thread])",
    )
    what.add_argument(
        "--monitor", action="store_true", help="for a monitoring system: the health of accounts and the metrics"
    )
    create.add_argument(
        "--note", type=text_up_to(NOTE_CHARS, least=0), default="", metavar="TEXT", help="what it is for"
    )
    create.add_argument(
        "--days", type=number_from(1, MOST_DAYS), metavar="N", help="how long it works (default: until revoked)"
    )
    actions.add_parser("ls", help="list tokens", description="List tokens; their secrets are not stored.")
    revoke = actions.add_parser("revoke", help="revoke a token", description="Revoke a token.")
    revoke.add_argument("id", type=NAME, metavar="ID", help="the token's id, as `belino token ls` shows it")


def run_token(args: Namespace) -> int:
    return {"create": _create_token, "ls": _list_tokens, "revoke": _revoke_token}[args.action](args)


def _create_token(args: Namespace) -> int:
    conversation = None if args.monitor else ConversationKey.parse(args.conversation)

    async def resting(store: "Store") -> dict[str, Any]:
        from belino.web.wire import grant_json

        lifetime = None if args.days is None else timedelta(days=args.days)
        kind = GrantKind.MONITOR if args.monitor else GrantKind.CHANNEL
        grant, secret = await store.grant(kind, conversation=conversation, note=args.note, lifetime=lifetime)
        return {**grant_json(grant), "token": secret}

    opens: dict[str, object] = {"monitor": True} if conversation is None else {"conversation": str(conversation)}
    wish = {**opens, "note": args.note, **({} if args.days is None else {"days": args.days})}
    try:
        answer = ask(args, running=lambda gateway: gateway.post("/api/tokens", wish), resting=resting)
    except Unknown:
        raise no_conversation(conversation) from None
    if args.json:
        show_json(answer)
    else:
        print(answer["token"])
    return OK


def _list_tokens(args: Namespace) -> int:
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


def _revoke_token(args: Namespace) -> int:
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
