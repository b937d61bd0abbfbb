"""Dialects: the JSON lines of well-known programs, as belino's own events.

Each function reads one line of a program's machine-readable output; lines that say nothing to people are left out.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from belino.domain.turn import Compacted, Final, TextDelta, ToolNote, Usage
from belino.net.agent_events import AgentFault, AgentSaid, AgentSession, count, read_event

Event = Mapping[str, Any]
Dialect = Callable[[Event], Iterator[AgentSaid]]

UNKNOWN = "it does not say why"


def read_codex(event: Event) -> Iterator[AgentSaid]:
    """`codex exec --json`: threads, items and the usage of a turn."""
    item = _table(event, "item")
    match event.get("type"):
        case "thread.started":
            yield AgentSession(id=_text(event, "thread_id"))
        case "item.started" if item.get("type") in ("command_execution", "mcp_tool_call", "web_search"):
            yield _tool(_text(item, "tool") or _text(item, "type"))
        case "item.completed" if item.get("type") == "agent_message":
            yield TextDelta(text=_text(item, "text") + "\n\n")
        case "item.completed" if item.get("type") == "context_compaction":
            yield Compacted()
        case "turn.completed":
            usage = _table(event, "usage")
            yield Usage(input_tokens=count(usage, "input_tokens"), output_tokens=count(usage, "output_tokens"))
        case "turn.failed":
            yield AgentFault(why=_text(_table(event, "error"), "message") or UNKNOWN)


def read_gemini(event: Event) -> Iterator[AgentSaid]:
    """`gemini --output-format stream-json`; its `error` events are warnings."""
    match event.get("type"):
        case "init":
            yield AgentSession(id=_text(event, "session_id"))
        case "message" if event.get("role") == "assistant":
            yield TextDelta(text=_text(event, "content"))
        case "tool_use":
            yield _tool(_text(event, "tool_name"))
        case "result":
            stats = _table(event, "stats")
            yield Usage(input_tokens=count(stats, "input_tokens"), output_tokens=count(stats, "output_tokens"))
            if event.get("status") == "error":
                yield AgentFault(why=_text(_table(event, "error"), "message") or UNKNOWN)


def read_opencode(event: Event) -> Iterator[AgentSaid]:
    """`opencode run --format json`: parts of its messages."""
    part = _table(event, "part")
    if session := _text(event, "sessionID"):
        yield AgentSession(id=session)
    match event.get("type"):
        case "text":
            yield TextDelta(text=_text(part, "text") + "\n\n")
        case "tool_use":
            yield _tool(_text(part, "tool"))
        case "step_finish":
            tokens = _table(part, "tokens")
            yield Usage(input_tokens=count(tokens, "input"), output_tokens=count(tokens, "output"))
        case "error":
            error = _table(event, "error")
            yield AgentFault(why=_text(_table(error, "data"), "message") or _text(error, "name") or UNKNOWN)


def read_claude(event: Event) -> Iterator[AgentSaid]:
    """`claude -p --output-format stream-json --verbose`."""
    match event.get("type"):
        case "system" if event.get("subtype") == "compact_boundary":
            yield Compacted()
        case "assistant" if event.get("parent_tool_use_id") is None:
            for block in _table(event, "message").get("content") or ():
                if isinstance(block, Mapping) and block.get("type") == "text":
                    yield TextDelta(text=_text(block, "text") + "\n\n")
                elif isinstance(block, Mapping) and block.get("type") == "tool_use":
                    yield _tool(_text(block, "name").removeprefix("mcp__belino__"))
        case "result":
            usage, cost = _table(event, "usage"), event.get("total_cost_usd")
            read = sum(
                count(usage, name)
                for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            )
            yield AgentSession(id=_text(event, "session_id"))
            price = float(cost) if isinstance(cost, int | float) else None
            yield Usage(input_tokens=read, output_tokens=count(usage, "output_tokens"), cost_usd=price)
            if event.get("is_error"):
                yield AgentFault(why=_text(event, "result") or _text(event, "subtype") or UNKNOWN)
            else:
                yield Final(text=_text(event, "result"))


DIALECTS: Mapping[str, Dialect] = {
    "belino": read_event,
    "claude": read_claude,
    "codex": read_codex,
    "gemini": read_gemini,
    "opencode": read_opencode,
}


def _tool(name: str) -> ToolNote:
    return ToolNote(tool=name, text=f"using {' '.join(name.replace('_', ' ').split()) or 'a tool'}")


def _text(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _table(event: Event, key: str) -> Event:
    value = event.get(key)
    return value if isinstance(value, Mapping) else {}
