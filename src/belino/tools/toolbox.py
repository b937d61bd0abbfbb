"""Toolbox of one session, with its channel in the closure: an agent cannot reach what no argument can name."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count

from belino.domain.errors import BelinoError, ToolError
from belino.domain.failpoints import failpoint
from belino.domain.media import Block, TextBlock
from belino.domain.outcome import Stage, Step
from belino.domain.ports import Clock
from belino.domain.safe_text import one_line
from belino.domain.turn import Toolbox, ToolSpec
from belino.net.redact import redact
from belino.tools.acting import Acting
from belino.tools.channel import CHANNEL_MESSAGES, channel_messages
from belino.tools.media import FETCH_MEDIA, LIST_MEDIA, fetch_media, fetch_spec, list_media
from belino.tools.readings import offered_forms
from belino.tools.resources import MediaResources
from belino.tools.search import CHANNEL_CONTEXT, channel_context
from belino.tools.sending import SEND_MEDIA, Outlet, send_media, send_media_spec
from belino.tools.tool_context import Notes, ToolContext
from belino.understanding.speaker import Speaker

CALLS_AT_MOST = 1_000
"""The most tool calls of one turn; each is a row in the store."""
REASON_CHARS = 200
ARGUMENT_CHARS = 80
ARGUMENTS_SHOWN = 10
NAME_CHARS = 40
RESULT_BYTES = 1024 * 1024
FAILED = "the tool could not do its work just now; try again in a moment"
CUT = "… (cut here: the result is over 1 MiB; ask for less at a time)"

_TOOLS = (
    (LIST_MEDIA, list_media),
    (FETCH_MEDIA, fetch_media),
    (CHANNEL_CONTEXT, channel_context),
    (CHANNEL_MESSAGES, channel_messages),
)
READING_TOOLS = tuple(spec.name for spec, _ in _TOOLS)
"""Tools that change nothing, and may run again."""
SPECS: tuple[ToolSpec, ...] = (*(spec for spec, _ in _TOOLS), SEND_MEDIA)

Tool = Callable[[Mapping[str, object]], Awaitable[tuple[Block, ...]]]


def make_toolbox(
    context: ToolContext,
    make_outlet: Callable[[], Outlet] | None = None,
    *,
    speaker: Speaker | None = None,
    acting: Acting | None = None,
) -> Toolbox:
    """The tools of one conversation's channel; `make_outlet` is called to send, and without it nothing can be sent.

    `speaker` is the one that the outlet has: text is offered to be spoken where there is one. `acting` has the tools
    that change messages.
    """
    tools: dict[str, Tool] = {spec.name: partial(tool, context) for spec, tool in _TOOLS}
    if make_outlet is not None:
        tools[SEND_MEDIA.name] = lambda given: send_media(context, make_outlet(), given)
    actions = acting.tools(context) if acting is not None else {}
    tools |= {name: tool for name, (_, tool) in actions.items()}

    @cache
    def specs() -> tuple[ToolSpec, ...]:
        own = [
            fetch_spec(offered_forms(context), context.accepts) if spec is FETCH_MEDIA else spec for spec, _ in _TOOLS
        ]
        sending = (send_media_spec(speaker),) if make_outlet is not None else ()
        return (*own, *sending, *(spec for spec, _ in actions.values()))

    return ScopedToolbox(
        tools=tools,
        make_specs=specs,
        clock=context.clock,
        notes=context.notes,
        resources=MediaResources(context=context),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedToolbox:
    """Tools by name; every call is recorded with its outcome."""

    tools: Mapping[str, Tool]
    make_specs: Callable[[], tuple[ToolSpec, ...]]
    """Called when a model asks: which forms providers offer is not known without asking for their prices."""
    clock: Clock
    notes: Notes | None
    resources: MediaResources
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tool specifications for a model."""
        return self.make_specs()

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool. Raises ToolError with a sentence the agent can act on."""
        if name not in self.tools:
            await self._note(one_line(name)[:NAME_CHARS], "unknown tool", "there is no such tool")
            raise ToolError(f"there is no such tool; the tools are {', '.join(self.tools)}")
        if not isinstance(arguments, Mapping):
            await self._note(name, "broken call", "the arguments are not an object")
            raise ToolError("arguments must be an object")
        if self.notes is not None and next(self.calls) > CALLS_AT_MOST:
            raise ToolError(
                f"this turn has made {CALLS_AT_MOST} tool calls, which is the limit; answer with what you have"
            )
        failpoint("tool.call.before")
        try:
            blocks = await self.tools[name](arguments)
        except ToolError as error:
            await self._note(name, "refused", _with(arguments, str(error)))
            raise
        except BelinoError as error:
            await self._note(name, "failed", _with(arguments, one_line(str(error))[:REASON_CHARS]))
            raise ToolError(FAILED) from error
        failpoint("tool.call.after")
        await self._note(name, "done", called_with(arguments))
        return _bounded(blocks)

    async def _note(self, name: str, outcome: str, reason: str) -> None:
        if self.notes:
            at = self.clock.now()
            await self.notes(Step(at=at, stage=Stage.TOOL, outcome=outcome, reason=reason, subject=name))


def called_with(arguments: Mapping[str, object]) -> str:
    """A call's arguments for `explain`: `ref=tg_k3v9d0q2m7xa, as=text`; no secret, no path, long words cut."""
    shown = []
    for name, value in list(arguments.items())[:ARGUMENTS_SHOWN]:
        if value is None or value == "" or value == []:
            continue
        words = ", ".join(_plain(each) for each in value) if isinstance(value, list) else _plain(value)
        if name == "path":
            words = words.rstrip("/").rpartition("/")[2]
        elif name == "url":
            words = words.partition("?")[0].rpartition("@")[2]
        words = one_line(redact(words))
        words = words if len(words) <= ARGUMENT_CHARS else f"{words[: ARGUMENT_CHARS - 1]}…"
        shown.append(f"{one_line(str(name))[:NAME_CHARS]}={words}")
    return ", ".join(shown)


def _plain(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) else "…"


def _with(arguments: Mapping[str, object], why: str) -> str:
    called = called_with(arguments)
    return f"{called}: {why}" if called else why


def _bounded(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """At most 1 MiB of text in all, with a note if it was cut; pictures have their own limit."""
    left, kept = RESULT_BYTES, list[Block]()
    for block in blocks:
        if isinstance(block, TextBlock):
            encoded = block.text.encode(errors="replace")
            if len(encoded) > left:
                block = replace(block, text=encoded[:left].decode(errors="ignore") + CUT)
            left = max(0, left - len(encoded))
        kept.append(block)
    return tuple(kept)
