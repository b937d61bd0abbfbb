"""An agent of your own in the web chat: `.venv/bin/python examples/own_agent.py`, then open the address it prints."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from belino import Final, Gateway, Home, ReplyPart, TextBlock, Turn, load, serve


class Librarian:
    """Takes in what a message brings, and answers with the list of what was sent to the channel."""

    remembers = sees_images = False

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        files = [await turn.open(ref) for ref in turn.message.media]
        blocks = await turn.toolbox.call("list_media", {"limit": 5})
        listing = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        yield Final(text=f"{len(files)} files from {turn.message.author.name}. On my shelf:\n\n```\n{listing}\n```")


async def main() -> None:
    home = Home.at()
    async with Gateway(load(home), home, agent=Librarian()) as gateway, asyncio.TaskGroup() as group:
        group.create_task(serve(gateway, ready=lambda url: print(url, flush=True)))  # noqa: T201
        await gateway.run()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C
        asyncio.run(main())
