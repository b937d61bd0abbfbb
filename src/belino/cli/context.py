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


def context_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("conversation", metavar="CONVERSATION", help="platform:account:channel[:thread]")
    parser.add_argument(
        "--at",
        type=text_up_to(MESSAGE_ID_CHARS),
        metavar="MESSAGE",
        help="the id of the message to answer (default: the last one)",
    )


def run_context(args: Namespace) -> int:
    conversation = ConversationKey.parse(args.conversation)

    async def resting(store: "Store") -> Any:
        from belino.config import load
        from belino.net.clock import SystemClock
        from belino.turns.preview import as_json, preview

        home = Home.at(args.home)
        config, key = load(home).context, home.key_file.read_bytes()
        return as_json(await preview(store, conversation, args.at, config, clock=SystemClock(), key=key))

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
