"""belino context CONVERSATION: print the agent's context, verbatim, and its cost."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import ask
from belino.cli.command import text_up_to
from belino.cli.show import clean, paint, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store

MESSAGE_ID_CHARS = 256
MANIFEST_KEYS = (
    "artifact_id",
    "display_name",
    "media_type",
    "source_message_id",
    "source_thread_id",
    "included_at_turn",
    "content_hash",
)
MANIFEST_COLUMNS = ("ref", "name", "type", "message", "thread", "turn", "sha256", "in memory")


def context_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("conversation", metavar="CONVERSATION", help="platform:account:channel[:thread]")
    parser.add_argument(
        "--at",
        type=text_up_to(MESSAGE_ID_CHARS),
        metavar="MESSAGE",
        help="the id of the message to answer, as if nothing had come after it (default: the last one)",
    )


def run_context(args: Namespace) -> int:
    conversation = ConversationKey.parse(args.conversation)

    async def resting(store: "Store") -> Any:
        from belino.config import load
        from belino.net.clock import SystemClock
        from belino.turns.preview import as_json, preview

        home = Home.at(args.home)
        config, key = load(home), home.key_file.read_bytes()
        side = config.media.image_block_side
        return as_json(
            await preview(store, conversation, args.at, config.context, clock=SystemClock(), key=key, picture_side=side)
        )

    answer = ask(
        args,
        running=lambda gateway: gateway.find("/api/context", conversation=conversation, at=args.at),
        resting=resting,
    )
    if answer is None:
        missing = "there are no recent messages" if args.at is None else f"there is no message {args.at!r}"
        raise BelinoError(f"{missing} in {conversation}")
    if args.json:
        show_json(answer)
    else:
        _show(answer)
    return OK


def _show(answer: dict[str, Any]) -> None:
    print(f"{paint(answer['conversation'], 'bold')} · a session that begins with message {clean(answer['message_id'])}")
    if answer["session"]["has_context"]:
        print("The current session already has the context of its channel: its next turn adds only what is new.")
    for text in answer["told"]:
        print()
        lines = [clean(line) for line in text.splitlines()]
        for place, line in enumerate(lines):
            is_marker = place in (0, len(lines) - 1)  # by position: messages may begin like a marker
            print(paint(line, "dim") if is_marker else line)
    print()
    rows = [(part["part"], part["tokens"], part["told"] or "", part["left_out"] or "") for part in answer["parts"]]
    show_table(("part", "tokens", "included", "left out"), [*rows, ("all", answer["tokens"], "", "")], empty="")
    for part in answer["parts"]:
        for why in part["why"]:
            print(f"{paint(part['part'], 'yellow')}: {why}")
    if answer["note"]:
        print(f"{paint('note', 'yellow')}: {answer['note']}")
    show_shown_media(answer["session"])


def show_shown_media(session: dict[str, Any]) -> None:
    """The manifest of a session, what its memory lost, and what is attached again."""
    records, lost, again = session["manifest"], set(session["lost"]), session["reattach"]
    if not records:
        return
    print(f"\n{paint('Media shown to the agent', 'bold')}")
    rows = [(*(one[key] for key in MANIFEST_KEYS), "lost" if one["artifact_id"] in lost else "yes") for one in records]
    show_table(MANIFEST_COLUMNS, rows, empty="")
    if session["compacted"]:
        print(clean(f"The agent's memory was shortened; its next turn attaches again: {', '.join(again) or 'nothing'}"))
    elif again:
        print(clean(f"If the agent's memory is shortened, these are attached again: {', '.join(again)}"))
