"""A reply as parcels: one platform call each, under the adapter's limits, with keys that a retry repeats."""

from hashlib import sha256

from belino.delivery.chunk import chunk
from belino.domain.limits import Limits
from belino.domain.reply import Parcel, Reply


def plan(reply: Reply, limits: Limits, *, turn: int, trace: str) -> tuple[Parcel, ...]:
    """The parcels of a turn's reply, in the order they leave; none for a reply without anything visible."""
    texts = [text for part in chunk(reply.text, limits.text_chars, lines=limits.text_lines) if (text := _shown(part))]
    return tuple(
        Parcel(
            key=parcel_key(turn, position, trace),
            conversation=reply.conversation,
            text=text,
            reply_to=reply.reply_to if position == 0 else None,
            trace=trace,
        )
        for position, text in enumerate(texts)
    )


def parcel_key(turn: int, position: int, trace: str) -> str:
    """The same for the same turn and place in it, so that an answer planned twice is seen once."""
    return f"p-{turn}-{position}-{sha256(trace.encode()).hexdigest()[:12]}"


def _shown(part: object) -> str:
    # Platforms trim blank lines around a message and refuse one that has nothing else.
    text = str(part)
    return text.strip("\r\n") if text.strip() else ""
