"""Agent events: what a program or server says of its turn, as JSON lines or server-sent events.

`text`, `tool`, `usage`, `compacted` and `final`; docs/agents/command.md and docs/agents/http.md describe them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from belino.domain.turn import Compacted, Final, TextDelta, ToolNote, Usage

SESSION_CHARS = 4_096
EVENTS = ("text", "tool", "usage", "compacted", "final")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSession:
    """The id by which a program or server knows the conversation again."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFault:
    """The program or server says that it failed."""

    why: str


AgentSaid = TextDelta | ToolNote | Usage | Compacted | Final | AgentSession | AgentFault


def read_event(event: Mapping[str, object]) -> Iterator[AgentSaid]:
    """What one event says; ValueError if it is none of ours."""
    match event.get("type"):
        case "text":
            yield TextDelta(text=words(event, "text"))
        case "tool":
            name = words(event, "tool")
            yield ToolNote(tool=name, text=words(event, "text") or f"using {name or 'a tool'}")
        case "usage":
            yield read_usage(event)
        case "compacted":
            yield _read_compacted(event)
        case "final":
            yield from _read_final(event)
        case other:
            raise ValueError(f"an event of type {str(other)[:40]!r}; known ones: {', '.join(EVENTS)}")


def read_usage(event: Mapping[str, object]) -> Usage:
    """What the turn has cost so far."""
    cost = event.get("cost_usd")
    return Usage(
        input_tokens=count(event, "input_tokens"),
        output_tokens=count(event, "output_tokens"),
        cost_usd=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None,
        model=words(event, "model")[:200],
    )


def _read_compacted(event: Mapping[str, object]) -> Compacted:
    """What left its memory: all earlier turns, those before `first_turn`, or only some media."""
    first = event.get("first_turn")
    if first is not None and (not isinstance(first, int) or isinstance(first, bool) or first < 1):
        raise ValueError("first_turn is not the number of a turn")
    return Compacted(only=_refs(event, "removed"), first=first, kept=_refs(event, "kept"))


def _refs(event: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = event.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(ref, str) for ref in value):
        raise ValueError(f"{key} is not a list of refs")
    return tuple(value)


def _read_final(event: Mapping[str, object]) -> Iterator[AgentSaid]:
    if session := words(event, "session"):
        if len(session) > SESSION_CHARS:
            raise ValueError(f"a session id over {SESSION_CHARS} characters")
        yield AgentSession(id=session)
    if isinstance(usage := event.get("usage"), Mapping):
        yield read_usage(usage)
    if why := words(event, "error"):
        yield AgentFault(why=why)
        return
    yield Final(text=words(event, "text"), silent=event.get("silent") is True)


def words(event: Mapping[str, object], key: str) -> str:
    """A text of an event; empty if there is none. ValueError if it is something else."""
    value = event.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return value


def count(event: Mapping[str, object], key: str) -> int:
    """A number of tokens; 0 if there is none."""
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
