"""Agent for any model with tool calls: OpenAI, Anthropic, Gemini, Groq, Ollama, and compatible servers."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from belino.agents.llm.content import ModelInput
from belino.agents.llm.exchange import Exchange
from belino.agents.llm.memory import recall
from belino.agents.llm.providers import Chosen, ModelClient, check_model, choose, open_model, require_packages
from belino.domain.errors import ConfigError
from belino.domain.media import AcceptedMedia
from belino.domain.outcome import Finding
from belino.domain.ports import Question
from belino.domain.turn import ReplyPart, Turn
from belino.net.redact import Secret

ATTACHED = 0.5
"""The share of the memory that media attached without a request may take."""

SETUP = (
    Question(
        key="model",
        ask="Which model? (PROVIDER:NAME; providers: openai, anthropic, google, groq, ollama; like openai:gpt-5-mini)",
    ),
    Question(
        key="api_key", ask="Which API key did the provider give you? (Empty if it needs none.)", secret=True, default=""
    ),
    Question(key="base_url", ask="Another address than the provider's own? (Empty for its own.)", default=""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One model of one provider."""

    model: str = field(
        metadata={"says": "The model, as `provider:name`; providers are openai, anthropic, google, groq and ollama."}
    )
    api_key: Secret | None = field(
        default=None, metadata={"says": "The provider's API key; ollama and servers of your own may need none."}
    )
    base_url: str | None = field(
        default=None, metadata={"says": "The URL of the provider's API; set it for a server or proxy of your own."}
    )
    api: Literal["auto", "chat", "responses"] = field(
        default="auto",
        metadata={"says": "For openai: which API to use; `auto` is `responses` at OpenAI's own address, else `chat`."},
    )
    instructions: str = field(default="", metadata={"says": "Your instructions to the agent, after belino's own."})
    max_tokens: int | None = field(
        default=None,
        metadata={
            "says": "The longest answer to one request, in tokens, with what the model thinks; "
            "if unset, its name decides: 32000 for models that reason, else 4096.",
            "least": 1,
        },
    )
    history_tokens: int = field(
        default=32_000, metadata={"says": "How many tokens of a conversation are remembered, in whole turns."}
    )
    image_turns: int = field(
        default=3,
        metadata={
            "says": "How many of the last turns keep their pictures when the memory is full; "
            "a line of text replaces older ones."
        },
    )
    max_steps: int = field(
        default=12, metadata={"says": "How many times in a turn the model may call tools before it must answer."}
    )
    sees_images: bool | None = field(
        default=None, metadata={"says": "Whether the model accepts pictures; if unset, its name decides."}
    )
    reads_documents: bool | None = field(
        default=None, metadata={"says": "Whether the model accepts PDFs as they are; if unset, its name decides."}
    )
    hears_audio: bool | None = field(
        default=None, metadata={"says": "Whether the model accepts sounds; if unset, its name decides."}
    )

    def __post_init__(self) -> None:
        chosen = choose(self.model, base_url=self.base_url, api=self.api)
        if self.api_key is None and chosen.official and chosen.facts.key_name is not None:
            raise ConfigError(
                f'api_key is missing; write api_key = "env:{chosen.facts.key_name}", with the key in that '
                "environment variable, or run `belino setup agent`"
            )
        if self.reads_documents and chosen.facts.documents is None:
            raise ConfigError(f"reads_documents: models of {chosen.provider} take no documents; leave it out")
        if self.hears_audio and (chosen.facts.audio is None or chosen.wire == "responses"):
            raise ConfigError('hears_audio: this API takes no sounds; leave it out, or with openai set api = "chat"')


class Agent:
    """Answers with a model, and keeps its own memory."""

    remembers = True

    def __init__(self, config: Config) -> None:
        self._config = config
        self._chosen: Chosen = choose(config.model, base_url=config.base_url, api=config.api)
        require_packages(self._chosen)
        self.sees_images = self._chosen.sees_images if config.sees_images is None else config.sees_images
        self.accepts = self._accepted()
        self.model = config.model
        self._opening = asyncio.Lock()
        self._opened: dict[str, ModelClient] = {}
        """By model."""

    async def run_turn(self, turn: Turn) -> AsyncGenerator[ReplyPart]:
        """Answer; the last part is Final."""
        chosen = self._choose(turn.model) if turn.model else self._chosen
        client = await self._open(chosen)
        exchange = Exchange(self._config, chosen, client, turn, self._model_input())
        async with aclosing(exchange.run()) as parts:
            async for part in parts:
                yield part

    async def prepare(self) -> None:
        """Load the packages, and make the client."""
        await self._open(self._chosen)

    async def check(self) -> Sequence[Finding]:
        """Check that the provider is reachable, accepts the key and has the model; costs nothing."""
        return await check_model(self._chosen, self._key())

    def why_not(self, model: str) -> str:
        """Why another model cannot answer: the key is for one provider, and what is shown is decided for its model."""
        if model.partition(":")[0] != self._chosen.provider:
            return f"it is not of the provider {self._chosen.provider}, which the agent's key is for"
        try:
            chosen = self._choose(model)
        except ConfigError as error:
            return str(error)
        if self._config.sees_images is None and self.sees_images and not chosen.sees_images:
            return "it sees no pictures, and the agent's own model does"
        return ""

    async def measure(self, memory: bytes | None) -> tuple[int, int]:
        """The tokens that it remembers, and how many it may remember."""
        turns = await asyncio.to_thread(recall, memory)
        return sum(turn.tokens for turn in turns or ()), self._config.history_tokens

    async def close(self) -> None:
        """Close connections; the next turn opens new ones."""
        opened, self._opened = self._opened, {}
        for each in opened.values():
            await each.close()

    def _choose(self, model: str) -> Chosen:
        return choose(model, base_url=self._config.base_url, api=self._config.api)

    async def _open(self, chosen: Chosen) -> ModelClient:
        async with self._opening:
            if chosen.name not in self._opened:
                # The imports take seconds; the thread keeps the event loop free.
                self._opened[chosen.name] = await asyncio.to_thread(
                    open_model, chosen, self._key(), max_tokens=self._config.max_tokens or chosen.answer_tokens
                )
            return self._opened[chosen.name]

    def _accepted(self) -> AcceptedMedia:
        config, chosen = self._config, self._chosen
        reads = chosen.reads_documents if config.reads_documents is None else config.reads_documents
        hears = chosen.hears_audio if config.hears_audio is None else config.hears_audio
        return AcceptedMedia(
            files=False,
            documents=chosen.facts.documents if reads else None,
            audio=chosen.facts.audio if hears else None,
            tokens=int(config.history_tokens * ATTACHED),
        )

    def _model_input(self) -> ModelInput:
        facts = self._chosen.facts
        return ModelInput(
            sees_images=self.sees_images,
            image_bytes=facts.image_bytes,
            request_bytes=facts.request_bytes,
            request_images=facts.request_images,
            accepts=self.accepts,
        )

    def _key(self) -> str | None:
        return None if self._config.api_key is None else self._config.api_key.reveal()
