"""belino channels: list channels, and what belino holds of them."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import ask
from belino.cli.show import local_time, show_json, show_table

if TYPE_CHECKING:
    from belino.storage.store import Store


def run_channels(args: Namespace) -> int:
    answer = ask(args, running=lambda gateway: gateway.get("/api/channels"), resting=_channels)
    if args.json:
        show_json(answer)
        return OK
    rows = [
        (c["channel"], c["name"], c["messages"], c["media"], c["media_held"], local_time(c["last"]))
        for c in answer["channels"]
    ]
    show_table(("channel", "name", "messages", "media", "held", "last"), rows, empty="no channel yet")
    return OK


async def _channels(store: "Store") -> dict[str, Any]:
    from belino.web.wire import channel_json

    return {"channels": [channel_json(summary) for summary in await store.channels()]}
