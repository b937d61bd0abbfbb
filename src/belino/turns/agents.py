"""Agents: which agent answers in which conversation, each made once."""

from collections.abc import Iterator
from contextlib import suppress

from belino import registry
from belino.config import AgentConfig
from belino.domain.errors import BelinoError
from belino.domain.message import Author, ConversationKey
from belino.domain.ports import Agent, Checks, Closes


class Agents:
    """Every configured agent; each is made once, however many conversations it answers in."""

    def __init__(self, config: AgentConfig, everywhere: Agent | None = None) -> None:
        self._config = config
        self._everywhere = everywhere
        """Overrides the configuration, if given."""
        self._made: list[tuple[AgentConfig, Agent]] = []
        for described in (config, *config.places.values()):
            self._make(described)

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

    def usual(self) -> tuple[str, str]:
        """The name and kind of the default agent."""
        return self._config.name, self._kind(self._config)

    def checks(self) -> Iterator[tuple[str, Checks]]:
        """The agents that have a check for the doctor, each with its display name."""
        for config, agent in self._made:
            if isinstance(agent, Checks):
                yield f"agent {config.kind}", agent

    async def close(self) -> None:
        """Close every agent."""
        for _, agent in self._made:
            if isinstance(agent, Closes):
                with suppress(BelinoError):
                    await agent.close()

    def _kind(self, config: AgentConfig) -> str:
        # An agent passed from Python has no kind; people and the store know it by its class name.
        return config.kind if self._everywhere is None else type(self._everywhere).__name__

    def _make(self, config: AgentConfig) -> Agent:
        if self._everywhere is not None:
            return self._everywhere
        for known, agent in self._made:
            if (known.kind, known.options) == (config.kind, config.options):
                return agent
        made: Agent = registry.find("agents", config.kind).make(config.options)
        self._made.append((config, made))
        return made


def agent_at(config: AgentConfig, conversation: ConversationKey) -> AgentConfig:
    """The agent for a conversation: the one configured for the narrowest place that contains it."""
    parts = str(conversation).split(":")
    around = (":".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((config.places[place] for place in around if place in config.places), config)
