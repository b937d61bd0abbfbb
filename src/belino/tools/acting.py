"""Acting tools: send, change, ask or stay silent, where the platform and the operator allow it."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from belino.delivery.attempt import plain
from belino.delivery.plan import plan
from belino.domain.choice import LEAST, MOST, Choice, wrong_choices
from belino.domain.errors import AdapterError, MarkupRefused, NothingToEdit, RateLimited, ToolError, reason_of
from belino.domain.media import Block, TextBlock
from belino.domain.message import Author, ConversationKey, Deletion, Edit, Reaction
from belino.domain.outcome import Standing
from belino.domain.ports import Adapter, Deletes, Edits, Reacts
from belino.domain.reply import Parcel, Reply
from belino.domain.stored import StoredMessage, Verdict
from belino.domain.turn import ToolSpec
from belino.storage.choices import ANYONE
from belino.tools.arguments import Arguments
from belino.tools.tool_context import ToolContext

EMOJI_CHARS = 64
EDIT_CHARS = 20_000
QUESTION_CHARS = 2_000
REASON_CHARS = 200
OWN = Verdict(standing=Standing.OBSERVED, reason="the agent did it")

_TEXT: Mapping[str, object] = {"type": "string"}
_MESSAGE: Mapping[str, object] = {"message_id": _TEXT}
_LABELLED: Mapping[str, object] = {
    "type": "object",
    "properties": {"label": _TEXT, "value": _TEXT},
    "required": ["label", "value"],
}


def _spec(name: str, description: str, properties: Mapping[str, object], *, optional: tuple[str, ...] = ()) -> ToolSpec:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": [each for each in properties if each not in optional],
    }
    return ToolSpec(name=name, description=description, schema=schema)


SEND_MESSAGE = _spec("send_message", "Send a message.", {"text": _TEXT, "reply_to": _TEXT}, optional=("reply_to",))
REACT = _spec("react", "React to a message with one emoji.", {**_MESSAGE, "emoji": _TEXT})
EDIT_MESSAGE = _spec("edit_message", "Edit a message you sent.", {**_MESSAGE, "text": _TEXT})
DELETE_MESSAGE = _spec("delete_message", "Delete a message you sent.", _MESSAGE)
STAY_SILENT = _spec("stay_silent", "Send no answer.", {"reason": _TEXT})
ASK_USER = _spec(
    "ask_user",
    "Ask with buttons. The choice comes as a message.",
    {
        "question": _TEXT,
        "choices": {"type": "array", "items": {"anyOf": [_TEXT, _LABELLED]}, "minItems": LEAST, "maxItems": MOST},
        "anyone": {"type": "boolean"},
    },
    optional=("anyone",),
)

Tool = Callable[[Mapping[str, object]], Awaitable[tuple[Block, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """What the agent may do in a conversation besides answering."""

    adapter: Adapter | None
    may: frozenset[str]
    """Of react, edit and delete, what the operator permits here."""
    author: Author
    told: Callable[[ConversationKey, Sequence[str]], Awaitable[None]]
    """Called with the ids of messages that changed."""
    silence: Callable[[str], None] | None = None
    """Ends the turn without an answer; None outside a turn."""
    ask: Callable[[str, Sequence[Choice]], Awaitable[str]] | None = None
    """Sends a question with choices; None outside a turn where the platform has no buttons."""
    say: Callable[[ConversationKey, str, str | None], Awaitable[object]] | None = None
    """Sends a text, as an answer to a message if one is given; None in a turn, which has an answer."""

    def tools(self, context: ToolContext) -> Mapping[str, tuple[ToolSpec, Tool]]:
        """The tools that the platform supports and the operator permits."""
        actions = _Actions(self, context)
        found: list[tuple[ToolSpec, Tool]] = []
        if self.adapter is not None and self.say is not None:
            found.append((SEND_MESSAGE, actions.send_message))
        if isinstance(self.adapter, Reacts) and "react" in self.may:
            found.append((REACT, actions.react))
        if isinstance(self.adapter, Edits) and "edit" in self.may:
            found.append((EDIT_MESSAGE, actions.edit))
        if isinstance(self.adapter, Deletes) and "delete" in self.may:
            found.append((DELETE_MESSAGE, actions.delete))
        if self.silence is not None:
            found.append((STAY_SILENT, actions.stay_silent))
        if self.ask is not None:
            found.append((ASK_USER, actions.ask_user))
        return {spec.name: (spec, tool) for spec, tool in found}


class _Actions:
    """The tools of one conversation; what the platform did is stored as a change of the message."""

    def __init__(self, acting: Acting, context: ToolContext) -> None:
        self._acting = acting
        self._context = context

    async def send_message(self, given: Mapping[str, object]) -> tuple[Block, ...]:
        arguments = Arguments(given, ("text", "reply_to"))
        text, where, answered = arguments.words("text", most=EDIT_CHARS), self._context.conversation, None
        if arguments.text("reply_to") is not None:
            message = await self._named(arguments, "reply_to")
            where, answered = message.conversation, message.id
        assert self._acting.say is not None
        await self._acting.say(where, text, answered)
        return (TextBlock(text="It goes out now."),)

    async def react(self, given: Mapping[str, object]) -> tuple[Block, ...]:
        arguments = Arguments(given, ("message_id", "emoji"))
        message, emoji = await self._named(arguments), arguments.words("emoji", most=EMOJI_CHARS)
        adapter = self._acting.adapter
        assert isinstance(adapter, Reacts)
        await _done(adapter.react(message.conversation, message.id, emoji))
        reaction = Reaction(
            conversation=message.conversation,
            id=self._id(message),
            message_id=message.id,
            author=self._acting.author,
            sent=self._now(),
            emoji=emoji,
        )
        return await self._stored(reaction, message, f"You reacted with {emoji}.")

    async def edit(self, given: Mapping[str, object]) -> tuple[Block, ...]:
        arguments = Arguments(given, ("message_id", "text"))
        message, text = await self._own(arguments), arguments.words("text", most=EDIT_CHARS)
        adapter = self._acting.adapter
        assert adapter is not None
        reply = Reply(conversation=message.conversation, text=text)
        parcels = plan(reply, (), adapter.limits, turn=0, trace="")
        assert isinstance(adapter, Edits)
        if len(parcels) != 1:
            raise ToolError("the text is too long for one message here; send it as an answer")
        sent = await self._context.archive.parcel_of(message.conversation.whole_channel, message.id)
        # An edit without buttons would remove those of an open question.
        buttons = await self._context.archive.open_buttons(sent.key) if sent is not None else ()
        edited = replace(parcels[0], buttons=buttons)
        await _done(_edited(adapter, message.id, edited))
        if sent is not None and buttons:
            await self._context.archive.reword_question(sent.key, edited)
        edit = Edit(
            conversation=message.conversation,
            id=self._id(message),
            message_id=message.id,
            author=message.author,
            sent=self._now(),
            text=text,
        )
        return await self._stored(edit, message, "The message is edited.")

    async def delete(self, given: Mapping[str, object]) -> tuple[Block, ...]:
        message = await self._own(Arguments(given, ("message_id",)))
        adapter = self._acting.adapter
        assert isinstance(adapter, Deletes)
        await _done(adapter.delete(message.conversation, message.id))
        deletion = Deletion(
            conversation=message.conversation,
            id=self._id(message),
            message_id=message.id,
            author=message.author,
            sent=self._now(),
        )
        return await self._stored(deletion, message, "The message is deleted.")

    async def stay_silent(self, given: Mapping[str, object]) -> tuple[Block, ...]:
        reason = Arguments(given, ("reason",)).words("reason", most=REASON_CHARS)
        assert self._acting.silence is not None
        self._acting.silence(reason)
        return (TextBlock(text="Nothing will be sent; end your turn now."),)

    async def ask_user(self, given: Mapping[str, object]) -> tuple[Block, ...]:
        arguments = Arguments(given, ("question", "choices", "anyone"))
        question, labelled = arguments.words("question", most=QUESTION_CHARS), arguments.labelled("choices")
        who = ANYONE if arguments.flag("anyone") else None
        choices = [Choice(label=label.strip(), value=value, who=who) for label, value in labelled]
        if wrong := wrong_choices(choices):
            raise ToolError(wrong)
        assert self._acting.ask is not None
        own = await self._acting.ask(question, choices)
        ends = "; end your turn" if self._acting.silence is not None else ""
        return (TextBlock(text=f"Asked, as question_id {own}. The answer comes as a message{ends}."),)

    async def _stored(self, change: Edit | Deletion | Reaction, message: StoredMessage, says: str) -> tuple[Block, ...]:
        await self._context.archive.take_in(change, OWN)
        await self._acting.told(message.conversation, [message.id])
        return (TextBlock(text=says),)

    async def _named(self, arguments: Arguments, argument: str = "message_id") -> StoredMessage:
        name = arguments.words(argument, most=EDIT_CHARS)
        found = (await self._context.library.messages_named(self._context.channel, [name]))[name]
        if len(found) != 1 or found[0].deleted is not None:
            raise ToolError(f"{argument} must be the id of one message of this channel that is not deleted")
        return found[0]

    async def _own(self, arguments: Arguments) -> StoredMessage:
        message = await self._named(arguments)
        if not message.author.is_agent:
            raise ToolError("this message is not yours; only your own can be edited or deleted")
        return message

    def _now(self) -> datetime:
        return self._context.clock.now()

    @staticmethod
    def _id(message: StoredMessage) -> str:
        return f"own-{message.id}-{secrets.token_hex(8)}"


async def _edited(adapter: Edits, message_id: str, parcel: Parcel) -> None:
    try:
        await adapter.edit(message_id, parcel)
    except MarkupRefused:
        await adapter.edit(message_id, plain(parcel))


async def _done(action: Awaitable[None]) -> None:
    """Carry out an action; what the platform says against it is told to the agent."""
    try:
        await action
    except RateLimited as error:
        raise ToolError(f"the platform asks to wait {error.retry_after:.0f} seconds; try again then") from error
    except NothingToEdit as error:
        raise ToolError("the message is gone, or can no longer be changed") from error
    except AdapterError as error:
        raise ToolError(reason_of(error)) from error
