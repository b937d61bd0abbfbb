"""belino retry MESSAGE: repeat the failed turn of a message."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import GatewayClient, ask
from belino.cli.command import message_argument
from belino.cli.explain import no_message
from belino.cli.show import clean, show_json

if TYPE_CHECKING:
    from belino.storage.store import Store


def retry_arguments(parser: ArgumentParser) -> None:
    message_argument(parser)


def run_retry(args: Namespace) -> int:
    async def resting(store: "Store") -> Any:
        from belino.gateway.explain import explain, retried_json, retry_failed

        message = (await explain(store, args.message)).message
        return retried_json(await retry_failed(store, message))

    def running(gateway: GatewayClient) -> Any:
        found = gateway.found("POST", "/api/retry", {"message": args.message})
        if found is None:
            raise no_message(args.message)
        return found

    answer = ask(args, running=running, resting=resting)
    if args.json:
        show_json(answer)
    else:
        print(clean(f"{answer['name']} waits to be answered again"))
    return OK
