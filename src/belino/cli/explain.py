"""belino explain MESSAGE: show what happened to it, step by step, and why."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import GatewayClient, ask
from belino.cli.command import message_argument
from belino.cli.show import clean, local_clock, local_time, paint, shorten, show_json
from belino.domain.errors import BelinoError

if TYPE_CHECKING:
    from belino.storage.store import Store


def explain_arguments(parser: ArgumentParser) -> None:
    message_argument(parser)


def run_explain(args: Namespace) -> int:
    async def resting(store: "Store") -> Any:
        from belino.gateway.explain import as_json, explain

        return as_json(await explain(store, args.message))

    def running(gateway: GatewayClient) -> Any:
        found = gateway.find("/api/explain", message=args.message)
        if found is None:
            raise no_message(args.message)
        return found

    answer = ask(args, running=running, resting=resting)
    if args.json:
        show_json(answer)
    else:
        _show(answer)
    return OK


def no_message(name: str) -> BelinoError:
    """The error for an unknown message name."""
    return BelinoError(f"there is no message {name!r} here; name it by trace, id, or conversation/id")


def _show(answer: dict[str, Any]) -> None:
    message = answer["message"]
    who = clean(message["author"]["name"])
    print(f"{paint(message['conversation'], 'bold')} · {who} · {local_time(message['sent'])}")
    if message["text"]:
        print(f"“{clean(shorten(message['text'], 200))}”")
    print()
    for step in answer["steps"]:
        subject = f" {step['subject']}" if step.get("subject") else ""
        why = f": {step['reason']}" if step.get("reason") else ""
        told = clean(f"{step['outcome']}{subject}{why}")
        print(f"{paint(local_clock(step['at']), 'dim')}  {step['stage']:<9} {told}")
