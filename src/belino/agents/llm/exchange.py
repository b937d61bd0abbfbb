"""Exchange with a model for one turn: ask, run the tools it calls, ask again, until it has answered."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from belino.agents.llm.content import (
    ModelInput,
    items_of,
    media_in,
    refs_in,
    refusals,
    texts,
    tool_content,
    user_content,
)
from belino.agents.llm.failures import BROKE_OFF, Failure, ModelError, check_whole, understand
from belino.agents.llm.memory import Room, Window, recall, remember
from belino.agents.llm.messages import (
    AnswerMessage,
    Asking,
    CallPart,
    Completion,
    RequestMessage,
    ResultPart,
    ShownMedia,
    UserPart,
    WordsPart,
)
from belino.agents.llm.providers import Chosen, ModelClient
from belino.aio.retry import backoff
from belino.domain.errors import MemoryLost, ToolError
from belino.domain.media import Block, TextBlock
from belino.domain.turn import (
    Accepted,
    Compacted,
    Final,
    Mishap,
    Refused,
    ReplyPart,
    TextDelta,
    ToolNote,
    Turn,
    Usage,
    tool_words,
)

if TYPE_CHECKING:
    from belino.agents.llm import Config

TRIES = 4
# The longest wait that a provider may ask for: a user waits in the chat.
LONGEST_WAIT = 60.0
CUT_TRIES = 2
CUT_SHORT = "\n\n(cut here: the answer became too long)"
CUT_OFF = "\n\n(cut here: the connection to the model broke off)"
STOPPED = "\n\n(stopped here: it took too many steps)"
ASKED_AGAIN = "asked again"
BAD_ARGUMENTS = "the arguments are not a JSON object; call the tool again with one"
TOO_MUCH = "it is more than the model takes in one request"
LEFT_OUT = "[Earlier turns of this conversation were left out: the model takes no more at once.]"
OLD_MEDIA = 0.5
"""The share of a request's size that remembered media may take, so that there is room for new media."""


class Exchange:
    """The state of one turn; nothing is shared between turns."""

    def __init__(self, config: "Config", chosen: Chosen, client: ModelClient, turn: Turn, model: ModelInput) -> None:
        self._config = config
        self._chosen = chosen
        self._client = client
        self._turn = turn
        self._model = model
        self._window = Window(turn.number)
        self._refused: dict[str, str] = {}
        """Media the model refused in this turn, and why."""
        self._fresh: set[str] = set()
        """Media of this turn that the model has not accepted yet."""
        self._tried_without = False
        self._usage = Usage(cost_usd=0.0, model=chosen.name)
        self._begun = False
        """The provider has begun to answer the current request."""
        self._heard = False
        """Part of the current answer was passed on, so the request cannot be repeated."""
        self._words: list[str] = []
        self._said: list[str] = []
        """What was passed on of the current answer."""
        self._why = ""
        """Why the answer is incomplete."""
        self._stopped = False
        """The model still called tools when it had to answer."""

    async def run(self) -> AsyncGenerator[ReplyPart]:
        """The turn's parts; the memory is saved before the last one."""
        for part in await self._begin():
            yield part
        for step in range(self._config.max_steps + 1):
            async with aclosing(self._ask(last=step == self._config.max_steps)) as asked:
                async for part in asked:
                    yield part
            yield self._usage
            calls = self._answer.calls
            if not calls:
                break
            async with aclosing(self._work(calls)) as worked:
                async for part in worked:
                    yield part
        if self._stopped:
            self._why = f"the model called tools {self._config.max_steps} times (max_steps) and did not answer"
            if self._words:
                self._words[-1] += STOPPED
                yield TextDelta(text=STOPPED)
        for part in await self._end():
            yield part

    @property
    def _answer(self) -> AnswerMessage:
        answer = self._window.now[-1]
        assert isinstance(answer, AnswerMessage)
        return answer

    async def _begin(self) -> Sequence[ReplyPart]:
        """Load the memory, and append the turn's message."""
        found = await asyncio.to_thread(recall, await self._turn.memory.load())
        if found is None:
            raise MemoryLost("what it remembered cannot be read")
        window = self._window
        window.past = found
        window.learn_names(texts(window.messages))
        removed = list(self._remove(window.unaccepted(self._model)))
        refused = list(self._take(self._turn.blocks))
        content = user_content(items_of(self._turn.blocks, self._refused, self._left_out))
        window.now = [RequestMessage(parts=(UserPart(items=content),))]
        self._fresh = refs_in(window.now)
        return [*removed, *refused, *self._make_room()]

    async def _end(self) -> Sequence[ReplyPart]:
        """Save the turn to memory, and return its final part."""
        room = Room(
            tokens=self._config.history_tokens,
            media_bytes=int(self._model.request_bytes * OLD_MEDIA),
            media_turns=self._config.image_turns,
        )
        # In a thread, since it may be many megabytes.
        left = await asyncio.to_thread(self._window.end_turn, room)
        await self._turn.memory.save(await asyncio.to_thread(remember, self._window.past))
        final = Final(text=next((words for words in reversed(self._words) if words.strip()), ""), why=self._why)
        return [left, final] if left else [final]

    async def _ask(self, *, last: bool) -> AsyncGenerator[ReplyPart]:
        """One request, until it is answered: wait where that helps, and leave out media that is refused."""
        attempt, cuts = 0, 0
        while True:
            self._heard = self._begun = False
            self._said.clear()
            try:
                async with aclosing(self._stream(last=last)) as parts:
                    async for part in parts:
                        yield part
                return
            except ModelError as error:
                failure = understand(error, self._chosen)
                if self._begun and failure.kind == "passing":
                    failure = Failure(kind="cut", sentence=BROKE_OFF)
                if self._heard:
                    yield self._keep_words(failure)
                    return
                cuts += failure.kind == "cut"
                if failure.kind == "lasting" or cuts >= CUT_TRIES:
                    yield self._usage
                    raise failure.error() from None
            if failure.kind == "cut":
                yield Mishap(what=ASKED_AGAIN, why=failure.sentence)
                continue
            if failure.kind == "passing":
                attempt += 1
                await self._wait(failure, attempt)
                yield Mishap(what=ASKED_AGAIN, why=failure.sentence)
                continue
            for part in self._forget(failure) if failure.kind == "too long" else self._leave_out(failure):
                yield part

    async def _stream(self, *, last: bool) -> AsyncGenerator[ReplyPart]:
        completion: Completion | None = None
        async with aclosing(self._client.ask(self._asking(last=last))) as stream:
            async for text in stream:
                if not self._begun:
                    self._begun = True
                    self._fresh.clear()
                    yield Accepted()
                if isinstance(text, Completion):
                    completion = text
                elif text:
                    before = "\n\n" if self._words and not self._heard else ""
                    self._heard = True
                    self._said.append(text)
                    yield TextDelta(text=before + text)
        assert completion is not None
        self._spend(completion.usage)
        check_whole(completion)
        answer, words = completion.answer, completion.answer.text
        if completion.ends == "length" and not answer.calls:
            self._why = f"the answer reached max_tokens ({self._client.max_tokens})"
            if words.strip():
                words += CUT_SHORT
                yield TextDelta(text=CUT_SHORT)
        if words:
            self._words.append(words)
        self._stopped = last and bool(answer.calls)
        self._window.now.append(answer.without_calls() if last else answer)

    def _keep_words(self, failure: Failure) -> TextDelta:
        """Take the words that were passed on for the answer, and mark where it broke off."""
        words = "".join(self._said) + CUT_OFF
        self._why = failure.sentence
        self._words.append(words)
        self._window.now.append(AnswerMessage(parts=(WordsPart(text=words),)))
        return TextDelta(text=CUT_OFF)

    def _asking(self, *, last: bool) -> Asking:
        system = [words for words in (self._turn.system, self._config.instructions) if words.strip()]
        return Asking(messages=self._window.messages, system=system, tools=self._turn.toolbox.specs, must_answer=last)

    async def _work(self, calls: Sequence[CallPart]) -> AsyncGenerator[ReplyPart]:
        """Run the tools the model calls, in order; their results are the next request."""
        parts: list[ResultPart] = []
        for call in calls:
            arguments = call.read()
            yield ToolNote(tool=call.tool, text=tool_words(call.tool, arguments or {}, self._window.names))
            if arguments is None:
                yield Mishap(what="broken call", why="the arguments are not a JSON object", tool=call.tool)
            blocks, error = await self._call(call.tool, arguments)
            for refused in self._take(blocks):
                yield refused
            parts.append(self._returned(call, blocks, error))
        request = RequestMessage(parts=tuple(parts))
        self._fresh |= refs_in([request])
        self._window.now.append(request)
        for part in self._make_room():
            yield part

    async def _call(self, name: str, arguments: dict[str, object] | None) -> tuple[Sequence[Block], str]:
        if arguments is None:
            return (), BAD_ARGUMENTS
        try:
            return await self._turn.toolbox.call(name, arguments), ""
        except ToolError as error:
            return (), str(error)

    def _returned(self, call: CallPart, blocks: Sequence[Block], error: str) -> ResultPart:
        items = (error,) if error else tool_content(items_of(blocks, self._refused, self._left_out))
        return ResultPart(call=call.id, tool=call.tool, items=items, failed=bool(error))

    def _take(self, blocks: Sequence[Block]) -> Iterator[Refused]:
        """Take blocks into the turn; media that the provider would refuse is left out."""
        self._window.learn_names(block.text for block in blocks if isinstance(block, TextBlock))
        self._window.count(blocks)
        found = refusals(blocks, self._model)
        self._refused |= found
        for ref, why in found.items():
            yield Refused(ref=ref, why=why)

    def _make_room(self) -> Iterator[ReplyPart]:
        """Leave out the oldest media while there is more of it than the provider takes in one request."""
        excess = self._window.excess(self._model)
        yield from self._remove(excess - self._fresh)
        yield from self._refuse(excess & self._fresh, TOO_MUCH)

    def _remove(self, refs: set[str]) -> Iterator[ReplyPart]:
        """Replace media that the model has accepted by a line that says how to see it again."""
        if refs:
            self._window.remove(refs)
            yield Compacted(only=tuple(sorted(refs)))

    def _refuse(self, refs: set[str], why: str) -> Iterator[ReplyPart]:
        """Replace media by a line that says why it is left out."""
        older = refs - self._fresh
        self._refused |= dict.fromkeys(refs, why)
        self._window.remove(refs, self._left_out)
        self._fresh = self._fresh - refs
        for ref in sorted(refs):
            yield Refused(ref=ref, why=why)
        if older:
            yield Compacted(only=tuple(sorted(older)))

    def _leave_out(self, failure: Failure) -> Iterator[ReplyPart]:
        """Remove the media the provider named from the request, else what it has not seen before, else all."""
        there = [(index, item.ref) for index, item in media_in(self._window.messages)]
        if not there:
            raise failure.error()
        named = {ref for index, ref in there if index == failure.message}
        suspects = set() if self._tried_without else named or self._fresh
        self._tried_without = True
        yield from self._refuse(suspects or {ref for _, ref in there}, failure.why)

    def _forget(self, failure: Failure) -> Iterator[ReplyPart]:
        """Drop the history: the provider accepts less than the budget, and would refuse every later turn."""
        window = self._window
        if not window.past:
            raise failure.error()
        if len(window.now) == 1:
            raise MemoryLost(failure.sentence, says=failure.says)
        window.past = []
        asked = window.now[0]
        assert isinstance(asked, RequestMessage)
        window.now[0] = replace(asked, parts=(UserPart(items=(LEFT_OUT,)), *asked.parts))
        yield window.cut()

    async def _wait(self, failure: Failure, attempt: int) -> None:
        """Sleep as long as the provider asks, within limits."""
        wait = backoff(attempt) if failure.wait is None else failure.wait
        left = (self._turn.deadline - datetime.now(UTC)).total_seconds()
        if attempt >= TRIES or wait > min(left, LONGEST_WAIT):
            raise failure.error()
        await asyncio.sleep(wait)

    def _left_out(self, item: ShownMedia) -> str:
        why = self._refused.get(item.ref, "the model would not take it")
        return f"[{self._window.title(item)}, left out: {why}]"

    def _spend(self, spent: Usage) -> None:
        before, cost = self._usage, spent.cost_usd
        self._usage = Usage(
            input_tokens=before.input_tokens + spent.input_tokens,
            output_tokens=before.output_tokens + spent.output_tokens,
            cost_usd=None if cost is None or before.cost_usd is None else before.cost_usd + cost,
            model=spent.model or self._chosen.name,
        )
