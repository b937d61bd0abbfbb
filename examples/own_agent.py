"""An agent of your own in the web chat: `.venv/bin/python examples/own_agent.py`, then open the address it prints."""

from belino import Final, ReplyParts, Turn, run


class Echo:
    remembers = sees_images = False

    async def run_turn(self, turn: Turn) -> ReplyParts:
        words = [f"{turn.message.author.name} wrote: {turn.message.text}"]
        for attachment in turn.message.attachments:
            size = sum([len(chunk) async for chunk in attachment.open()])
            words.append(f"{attachment.name} has {size} bytes")
            await turn.toolbox.call("send_media", {"ref": attachment.ref})
        yield Final(text="\n".join(words))


if __name__ == "__main__":
    run(Echo())
