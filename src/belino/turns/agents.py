"""Agents: which agent answers in which conversation, each made once."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from belino import registry
from belino.config import AgentConfig, ChannelAccess, Config
from belino.config.tables import EVERY_CHANNEL
from belino.domain.errors import BelinoError
from belino.domain.media import TEXT_AND_PICTURES, AcceptedMedia
from belino.domain.message import SERVER, Author, ConversationKey
from belino.domain.ports import Agent, CallsFromOutside, Checks, ChoosesModels, Clock, Closes, Prepares, accepted_by

PREPARE_SECONDS = 1.0
"""After the start, which loading would delay."""


@dataclass(eq=False, slots=True)
class AgentGeneration:
    """The agents of one configuration; those that did not change are shared with the one before."""

    config: AgentConfig
    made: list[tuple[AgentConfig, Agent]] = field(default_factory=list)
    turns: int = 0
    """How many running turns began with it."""


_OF_TURN: ContextVar[AgentGeneration | None] = ContextVar("agents of the turn", default=None)


class Agents:
    """Every configured agent; each is made once, however many conversations it answers in.

    The configuration can be replaced: a running turn keeps the agent that it began with.
    """

    def __init__(self, config: AgentConfig, everywhere: Agent | None = None) -> None:
        self._everywhere = everywhere
        """Overrides the configuration, if given."""
        self._generations: list[AgentGeneration] = []
        """Those in use; the last one is for new turns."""
        self._generations.append(self.prepare(config))

    def prepare(self, config: AgentConfig) -> AgentGeneration:
        """The agents of a configuration, made and not in use yet; ConfigError if one cannot be made."""
        known = self._generations[-1].made if self._generations else []
        generation = AgentGeneration(config)
        for described in (config, *config.places.values()):
            self._make_in(generation, described, known)
        return generation

    async def adopt(self, generation: AgentGeneration) -> None:
        """Use other agents for new turns; those that no turn needs any more are closed."""
        self._generations.append(generation)
        await self._close_unused()

    async def discard(self, generation: AgentGeneration) -> None:
        """Close agents that were prepared and are not wanted."""
        await self._close(generation)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Keep the current agents until the block is left, whatever is configured in between."""
        generation = self._generations[-1]
        generation.turns += 1
        token = _OF_TURN.set(generation)
        try:
            yield
        finally:
            _OF_TURN.reset(token)
            generation.turns -= 1
            await self._close_unused()

    @property
    def _generation(self) -> AgentGeneration:
        pinned = _OF_TURN.get()
        return self._generations[-1] if pinned is None or pinned not in self._generations else pinned

    @property
    def _config(self) -> AgentConfig:
        return self._generation.config

    def at(self, conversation: ConversationKey) -> Agent:
        """The agent that answers in a conversation."""
        return self._make(agent_at(self._config, conversation))

    @property
    def default(self) -> Agent:
        """The agent that answers where no other is configured."""
        return self._make(self._config)

    def author(self, conversation: ConversationKey) -> Author:
        """The author name of its answers."""
        return Author(id="agent", name=agent_at(self._config, conversation).name, is_bot=True, is_agent=True)

    def kind(self, conversation: ConversationKey) -> str:
        """The kind of agent; one kind cannot read the memory of another."""
        return self._kind(agent_at(self._config, conversation))

    def in_container(self, conversation: ConversationKey) -> bool:
        """Whether its tools are also served through files."""
        return agent_at(self._config, conversation).ipc

    def models(self, conversation: ConversationKey) -> tuple[str, ...]:
        """The models that people may choose from in a conversation."""
        return agent_at(self._config, conversation).models

    def usable_model(self, conversation: ConversationKey, chosen: str | None) -> str:
        """The model that people chose, if they still may and the agent can use it; else empty, for its own."""
        agent = self.at(conversation)
        if not chosen or chosen not in self.models(conversation) or not isinstance(agent, ChoosesModels):
            return ""
        return "" if agent.why_not(chosen) else chosen

    def usual(self) -> tuple[str, str]:
        """The name and kind of the default agent."""
        return self._config.name, self._kind(self._config)

    def checks(self) -> Iterator[tuple[str, Checks]]:
        """The agents that have a check for the doctor, each with its display name."""
        for config, agent in self._generations[-1].made:
            if isinstance(agent, Checks):
                yield f"agent {config.kind}", agent

    async def prepare_all(
        self, clock: Clock, tools: Callable[[], object], server: Callable[[], Awaitable[None]]
    ) -> None:
        """Load what agents need for their first answer, once the start is over; a failure is told by the first turn.

        `tools` loads what any agent's tools need; an agent that has nothing to load has no use for that either.
        `server` loads what serves them over MCP: some programs do not wait for it before they ask their model.
        """
        await clock.sleep(PREPARE_SECONDS)
        made = [agent for _, agent in self._generations[-1].made]
        if any(isinstance(agent, CallsFromOutside) for agent in made):
            await server()
        waiting = [agent for agent in made if isinstance(agent, Prepares)]
        for agent in waiting:
            with suppress(BelinoError):
                await agent.prepare()
        if waiting:
            tools()

    async def close(self) -> None:
        """Close every agent."""
        while self._generations:
            await self._close(self._generations.pop())

    async def _close_unused(self) -> None:
        """Close the agents of earlier configurations that no turn uses any more."""
        ended = [each for each in self._generations[:-1] if not each.turns]
        for generation in ended:
            self._generations.remove(generation)
            await self._close(generation)

    async def _close(self, generation: AgentGeneration) -> None:
        """Close the agents that no other configuration in use shares."""
        shared = {id(agent) for other in self._generations for _, agent in other.made if other is not generation}
        for _, agent in generation.made:
            if isinstance(agent, Closes) and id(agent) not in shared:
                with suppress(BelinoError):
                    await agent.close()

    def _kind(self, config: AgentConfig) -> str:
        # An agent passed from Python has no kind; people and the store know it by its class name.
        return config.kind if self._everywhere is None else type(self._everywhere).__name__

    def _make(self, config: AgentConfig) -> Agent:
        return self._make_in(self._generation, config)

    def _make_in(
        self, generation: AgentGeneration, config: AgentConfig, known: Sequence[tuple[AgentConfig, Agent]] = ()
    ) -> Agent:
        """The agent of a configuration, made unless it is known."""
        if self._everywhere is not None:
            return self._everywhere
        wanted = (config.kind, config.options)
        for described, agent in generation.made:
            if (described.kind, described.options) == wanted:
                return agent
        same = (agent for described, agent in known if (described.kind, described.options) == wanted)
        made: Agent = next(same, None) or registry.find("agents", config.kind).make(config.options)
        generation.made.append((config, made))
        return made


def agent_at(config: AgentConfig, conversation: ConversationKey) -> AgentConfig:
    """The agent for a conversation: the one configured for the narrowest place that contains it."""
    parts = str(conversation).split(":")
    around = (":".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((config.places[place] for place in around if place in config.places), config)


def agent_may(config: Config, conversation: ConversationKey) -> frozenset[str]:
    """What the agent may do to messages in a channel: react, edit, delete."""
    for adapter in config.adapters:
        if (adapter.platform, adapter.account) == (conversation.platform, conversation.account):
            own, tables = adapter.access.channels.get(conversation.channel), adapter.access.channels
            # The server of a channel is not known here: of tables for many channels, only what all permit counts.
            broad = [table for name, table in tables.items() if name == EVERY_CHANNEL or name.startswith(SERVER)]
            counted = [own] if own is not None else broad or [ChannelAccess()]
            return frozenset.intersection(*(frozenset(table.agent_may) for table in counted))
    return frozenset()


def accepted_in(agent: Agent, *, in_prompt: bool) -> AcceptedMedia:
    """The blocks that an agent accepts in its prompt, or in the result of a tool."""
    accepts = accepted_by(agent)
    return accepts if in_prompt or accepts.in_results else replace(TEXT_AND_PICTURES, files=accepts.files)
