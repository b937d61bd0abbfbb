"""belino explain MESSAGE: show what happened to it, and why; belino retry MESSAGE: repeat its failed turn."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import GatewayClient, ask
from belino.cli.command import text_up_to
from belino.cli.context import show_shown_media
from belino.cli.show import clean, local_clock, local_time, paint, shorten, show_json
from belino.domain.errors import BelinoError

if TYPE_CHECKING:
    from belino.storage.store import Store

MESSAGE_CHARS = 1_100
"""Room for a conversation's name and the longest id."""


def explain_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "message",
        type=text_up_to(MESSAGE_CHARS),
        metavar="MESSAGE",
        help="conversation/message id, a trace, or a platform's message id",
    )


def run_explain(args: Namespace) -> int:
    async def resting(store: "Store") -> Any:
        from belino.gateway.explain import as_json, explain

        return as_json(await explain(store, args.message))

    def running(gateway: GatewayClient) -> Any:
        return _found(gateway.find("/api/explain", message=args.message), args.message)

    answer = ask(args, running=running, resting=resting)
    if args.json:
        show_json(answer)
    else:
        _show(answer)
    return OK


def _found(answer: Any, name: str) -> Any:
    """The gateway's answer about a message; an error if it knows none of this name."""
    if answer is None:
        raise BelinoError(f"there is no message {name!r} here; name it by trace, id, or conversation/id")
    return answer


def _show(answer: dict[str, Any]) -> None:
    message = answer["message"]
    who = clean(message["author"]["name"])
    print(f"{paint(message['conversation'], 'bold')} · {who} · {local_time(message['sent'])}")
    if words := message["text"] or message["spoken"]:
        print(f"“{clean(shorten(words, 200))}”")
    print()
    for step in answer["steps"]:
        subject = f" {step['subject']}" if step.get("subject") else ""
        why = f": {step['reason']}" if step.get("reason") else ""
        told = clean(f"{step['outcome']}{subject}{why}")
        print(f"{paint(local_clock(step['at']), 'dim')}  {step['stage']:<9} {told}")
    show_shown_media(answer["session"])


retry_arguments = explain_arguments


def run_retry(args: Namespace) -> int:
    async def resting(store: "Store") -> Any:
        from belino.gateway.explain import explain, retried_json, retry_failed

        message = (await explain(store, args.message)).message
        return retried_json(await retry_failed(store, message))

    def running(gateway: GatewayClient) -> Any:
        return _found(gateway.found("POST", "/api/retry", {"message": args.message}), args.message)

    answer = ask(args, running=running, resting=resting)
    if args.json:
        show_json(answer)
    else:
        print(clean(f"{answer['name']} is queued to be answered again"))
    return OK
