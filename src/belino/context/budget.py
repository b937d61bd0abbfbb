"""What the agent's context may cost, and the one pure function that chooses what fits."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """What the agent is told about a channel when its session begins."""

    snapshot_tokens: int = field(
        default=1500, metadata={"says": "How many tokens the messages before the one being answered may cost."}
    )
    snapshot_messages: int = field(default=20, metadata={"says": "How many of them are told at most.", "most": 200})
    snippet_chars: int = field(
        default=150, metadata={"says": "How much of each of them is told, in characters.", "least": 1}
    )
    thread_tokens: int = field(
        default=8000, metadata={"says": "How many tokens the replies of a thread may cost; one is always told."}
    )
    message_chars: int = field(
        default=40_000, metadata={"says": "The most characters of a message that are told in full.", "least": 1}
    )
    format: Literal["compact", "json"] = field(
        default="compact",
        metadata={"says": "How the context is written: `compact` lines, or `json` at three times the tokens."},
    )
    attach_media: Literal["never", "message", "thread"] = field(
        default="never",
        metadata={
            "says": "Which pictures are attached unasked: `never` any, those of the `message`, or of its `thread`."
        },
    )
    unclaimed_refs: int = field(
        default=5,
        metadata={"says": "How many of a sender's pictures that nobody asked about belong to their question."},
    )
    unclaimed_minutes: int = field(default=10, metadata={"says": "How long such pictures wait for their question."})
