"""Commands in chats, carried out by belino itself: `/new`, `/stop`, `/status` and the others, without a model."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from belino.context.manifest import in_context
from belino.delivery.plan import plan
from belino.domain.commands import COMMANDS, ChatCommand, CommandEffect, command_in
from belino.domain.errors import AdapterError
from belino.domain.graphemes import cut
from belino.domain.limits import Limits
from belino.domain.message import Arrival, ChatType, ConversationKey, Message
from belino.domain.outcome import MessageOutcome, Stage, Standing, Step
from belino.domain.ports import (
    Adapter,
    AliasesCommands,
    ChoosesModels,
    Connects,
    HasOwnName,
    MeasuresMemory,
    OffersCommands,
    Taken,
)
from belino.domain.reply import Parcel, Reply
from belino.domain.safe_text import one_line
from belino.domain.stored import ClaimedTurn, ScreenedArrival, StoredMessage, Story, Verdict
from belino.storage.commands import ConversationFacts
from belino.storage.parcels import COMMANDED
from belino.storage.store import Store
from belino.turns.agents import Agents
from belino.turns.reply import UNKNOWN_LIMITS

log = logging.getLogger(__name__)

REFUSED = "You may not give commands here. Ask the person who runs this bot for access."
TAKEN_BACK = "What is not answered yet is taken back. What the client is doing now, I cannot stop from here."
"""The answer to `/stop` where a connected client answers."""
GREETING = "I am {}. Write to me as to a person. I also know these commands:"
EXCERPT_CHARS = 80
STEPS_TOLD = 20
_TOLD = (Stage.GATE, Stage.TURN, Stage.TOOL, Stage.MEDIA, Stage.READING, Stage.REPLY, Stage.DELIVERY)
_STAGES = {
    Stage.GATE: "Access",
    Stage.TURN: "Turn",
    Stage.TOOL: "Tool",
    Stage.MEDIA: "Media",
    Stage.READING: "Reading",
    Stage.REPLY: "Reply",
    Stage.DELIVERY: "Delivery",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCallbacks:
    """The parts of the gateway that commands act on once they are stored."""

    abort: Callable[[ConversationKey], bool]
    """Stops the running turn of a conversation."""
    put: Callable[[ConversationKey], None]
    """Called when parcels of a conversation are in the outbox."""
    changed: Callable[[StoredMessage], None]
    """Called with a message whose outcome changed."""
    ended: Callable[[int], None]
    """Called with how many waiting turns a spoken command ended."""
    speaks: Callable[[], str | None]
    """When answers are spoken by the configuration; None if no voice is configured."""


class Commands:
    """Finds commands among arrivals, prepares what they change and answer, and acts on them once they are stored."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        adapters: Mapping[tuple[str, str], Adapter],
        callbacks: CommandCallbacks,
    ) -> None:
        self._store = store
        self._agents = agents
        self._adapters = adapters
        self._callbacks = callbacks

    def find(self, arrival: Arrival) -> ChatCommand | None:
        """The command that an arrival gives to our bot; None if it gives none."""
        if not isinstance(arrival, Message) or "/" not in arrival.text:
            return None
        where = arrival.conversation
        names, aliases = [self._agents.author(where).name], dict[str, str]()
        adapter = self._adapters.get((where.platform, where.account))
        if isinstance(adapter, HasOwnName):
            names.append(adapter.own_name())
        if isinstance(adapter, AliasesCommands):
            aliases |= adapter.command_aliases()
        return command_in(arrival, names, aliases)

    async def screen(self, judged: ScreenedArrival) -> ScreenedArrival:
        """The arrival with what it orders, if it is a command of a sender who may give it; unchanged otherwise.

        A sender who may not is told so, where only they see it.
        """
        message, command = judged.arrival, self.find(judged.arrival)
        if not isinstance(message, Message):
            return judged
        may = judged.verdict.standing is Standing.MAY_COMMAND and judged.verdict.answer
        if message.invoked and not may:
            await self._refuse(message)
        if command is None or not may:
            return judged
        follows = message.chat_type is ChatType.DIRECT and not message.invoked  # an answer that follows needs no quote
        reply_to = None if follows else message.id
        effect = await self._effect(command, message.conversation, message.id, reply_to=reply_to)
        effect = replace(effect, answer=_private(effect.answer, message))
        verdict: Verdict = replace(judged.verdict, answer=False)
        return replace(judged, verdict=verdict, command=effect, ready=None, joining=None)

    async def done(self, judged: ScreenedArrival, taken: Taken) -> None:
        """Act on a command that is stored: stop the running turn, and send the answer."""
        if judged.command is None or taken.outcome is not MessageOutcome.COMMAND:
            return
        where = judged.arrival.conversation
        if judged.command.stops:
            self._callbacks.abort(where)
            await self._tell_stopped(where)
        self._callbacks.put(where)

    async def carry_out(self, command: ChatCommand, claimed: ClaimedTurn) -> CommandEffect:
        """Change what a spoken command orders; its turn brings the answer."""
        where, message = claimed.conversation, claimed.messages[-1]
        effect = await self._effect(command, where, message.id, reply_to=claimed.reply_to)
        self._callbacks.ended(await self._store.carry_out(where, message.seq, effect, turn=claimed.id))
        if effect.stops:
            await self._tell_stopped(where)
        return effect

    async def _effect(
        self, command: ChatCommand, where: ConversationKey, message_id: str, *, reply_to: str | None
    ) -> CommandEffect:
        """What a command changes, and its answer."""
        effect, text = await self._work(command, where)
        return replace(effect, answer=self._parcels(where, text, message_id, reply_to))

    async def _work(self, command: ChatCommand, where: ConversationKey) -> tuple[CommandEffect, str]:
        effect = CommandEffect(command=command, reason=f"the command /{command.name}", answer=())
        match command.name:
            case "new":
                said = "This is a new session: I forgot what was said before."
                if await self._busy(where):
                    said += " What I was doing is stopped."
                return replace(effect, stops=True, forgets=True, reason="/new: the session begins again"), said
            case "stop":
                said = await self._stopped(where)
                return replace(effect, stops=True, reason="/stop: what ran and waited here is stopped"), said
            case "status":
                return effect, await self._status(where)
            case "why":
                return effect, await self._why(where)
            case "model":
                return await self._model(effect, where)
            case "voice":
                return await self._voice(effect, where)
            case _:
                return effect, f"{GREETING.format(self._agents.author(where).name)}\n{help_text()}"

    async def _stopped(self, where: ConversationKey) -> str:
        facts = await self._store.conversation_facts(where)
        if facts.running or facts.waiting:
            return "Stopped."
        return TAKEN_BACK if facts.is_passed_on else "There is nothing to stop."

    async def _busy(self, where: ConversationKey) -> bool:
        facts = await self._store.conversation_facts(where)
        return bool(facts.running or facts.waiting)

    async def _status(self, where: ConversationKey) -> str:
        facts, session = await self._store.conversation_facts(where), await self._store.session(where)
        agent = self._agents.at(where)
        held = session.found_by(self._agents.kind(where))
        own = agent.model if isinstance(agent, ChoosesModels) else facts.model
        chosen = await self.chosen_model(where)
        tokens = (
            "{:,} of {:,}".format(*await agent.measure(held.memory))
            if isinstance(agent, MeasuresMemory)
            else f"about {facts.input_tokens:,}; the agent does not report its limit"
        )
        pictures = len(in_context(held)) if agent.remembers else 0
        return "\n".join(
            (
                f"Agent: {self._agents.author(where).name} ({self._agents.kind(where)})",
                f"Model: {chosen or own or 'of the agent'}{' (chosen here)' if chosen else ''}",
                f"Cost so far: {_cost(facts)}",
                f"Tokens in context: {tokens}",
                f"Pictures and files in context: {pictures}",
                f"Running: {facts.running}; waiting: {facts.waiting}",
            )
        )

    async def _why(self, where: ConversationKey) -> str:
        message_id = await self._store.last_answered(where)
        story = None if message_id is None else await self._store.story(where, message_id)
        return "I have not answered anything here yet." if story is None else why_text(story)

    async def chosen_model(self, where: ConversationKey) -> str:
        """The model that people chose in a conversation, if they still may; else empty."""
        return self._agents.usable_model(where, (await self._store.chat_settings(where)).model)

    async def _model(self, effect: CommandEffect, where: ConversationKey) -> tuple[CommandEffect, str]:
        agent, offered, wanted = self._agents.at(where), self._agents.models(where), effect.command.argument
        if not isinstance(agent, ChoosesModels) or not offered:
            return effect, "There are no models to choose from here."
        names = {name.lower(): name for name in (agent.model, *offered)}
        if not wanted:
            now = await self.chosen_model(where) or agent.model
            lines = (f"- {name}{' (in use)' if name == now else ''}" for name in names.values())
            return effect, "\n".join(("Choose one by /model NAME:", *lines))
        name = names.get(wanted.lower())
        if name is None:
            return effect, f"{one_line(cut(wanted, EXCERPT_CHARS))} is not on the list. /model shows the models."
        if name != agent.model and (why := agent.why_not(name)):
            return effect, f"{name} cannot be used: {why}."
        settings = await self._store.chat_settings(where)
        settings = replace(settings, model=None if name == agent.model else name)
        return replace(effect, settings=settings, reason=f"/model: {name}"), f"I answer with {name} here from now on."

    async def _voice(self, effect: CommandEffect, where: ConversationKey) -> tuple[CommandEffect, str]:
        settings, auto = await self._store.chat_settings(where), self._callbacks.speaks()
        if auto is None:
            return effect, "No voice is configured here (tools.media.speech)."
        wanted = {"on": True, "off": False}.get(effect.command.argument.lower())
        if wanted is None:
            now = {"off": False, "always": True}.get(auto) if settings.voice is None else settings.voice
            said = "only to voice messages" if now is None else "on" if now else "off"
            return effect, f"Spoken answers: {said}. Write /voice on or /voice off."
        chosen = replace(settings, voice=wanted)
        state = "on" if wanted else "off"
        return replace(effect, settings=chosen, reason=f"/voice: {state}"), f"Spoken answers are {state} here."

    async def _refuse(self, message: Message) -> None:
        """Tell a sender that they may not; nothing of the message is stored for it."""
        where = message.conversation
        parcels = self._parcels(where, REFUSED, f"refused {message.id}", message.id)
        await self._store.put_notices(_private(parcels, message))
        self._callbacks.put(where)

    async def _tell_stopped(self, where: ConversationKey) -> None:
        """Publish the messages whose turns were stopped before they began."""
        for message in await self._store.history(where, limit=STEPS_TOLD):
            if message.outcome is MessageOutcome.ABORTED:
                self._callbacks.changed(message)

    def _parcels(self, where: ConversationKey, text: str, name: str, reply_to: str | None) -> tuple[Parcel, ...]:
        reply = Reply(conversation=where, text=text, reply_to=reply_to)
        trace = sha256(f"{where}/{name}".encode()).hexdigest()[:16]
        return plan(reply, (), self._limits(where), turn=COMMANDED, trace=trace)

    def _limits(self, where: ConversationKey) -> Limits:
        adapter = self._adapters.get((where.platform, where.account))
        return UNKNOWN_LIMITS if adapter is None else adapter.limits


def _private(parcels: tuple[Parcel, ...], message: Message) -> tuple[Parcel, ...]:
    """The answer to a command, for its sender alone if it came through the platform's own commands."""
    if not message.invoked:
        return parcels
    return tuple(replace(parcel, reply_to=message.id, only_to=message.author.id) for parcel in parcels)


def help_text() -> str:
    """The list of commands."""
    return "\n".join(f"{f'/{spec.name} {spec.argument}'.rstrip()}: {spec.says}" for spec in COMMANDS)


def why_text(story: Story) -> str:
    """The history of an answer, for the people of its chat."""
    message = story.message
    asked = one_line(cut(message.text, EXCERPT_CHARS)) or "a message without text"
    steps = [step for step in story.steps if step.stage in _TOLD]
    lines = [f"My last answer was to {message.author.name}: {asked}", *map(_line, steps[:STEPS_TOLD])]
    if len(steps) > STEPS_TOLD:
        lines.append(f"- and {len(steps) - STEPS_TOLD} more steps")
    return "\n".join(lines)


def _line(step: Step) -> str:
    subject = "" if step.stage in (Stage.REPLY, Stage.DELIVERY) else step.subject
    said = " ".join(part for part in (subject, str(step.outcome).replace("_", " ")) if part)
    return f"- {_STAGES[step.stage]}: {said}{f' ({step.reason})' if step.reason else ''}"


def _cost(facts: ConversationFacts) -> str:
    turns = "1 answer" if facts.answered == 1 else f"{facts.answered} answers"
    return f"{'unknown' if facts.cost_usd is None else f'${facts.cost_usd:.4f}'} for {turns}"


async def offer_commands(adapter: Adapter) -> None:
    """Offer the commands in the platform's menu once the adapter is connected; a refusal is logged only."""
    if not isinstance(adapter, OffersCommands):
        return
    try:
        if isinstance(adapter, Connects):
            await adapter.connected()
        await adapter.offer_commands(COMMANDS)
    except (AdapterError, TimeoutError, OSError, ValueError) as error:
        log.warning("the commands of %s cannot be offered in its menu: %s", adapter.platform, type(error).__name__)
