"""What a message or an event is that nobody wrote: joins, pins, boosts and the other things Discord reports."""

from belino.net.raw import Raw, count, line, table, words

SAID = frozenset({0, 19, 20, 23, 46})
"""The types of messages with something to read: plain, replies, answers to commands, the end of a poll."""

FORWARD = 1
"""The type of a reference to a message that is carried inside."""

_TYPES = {
    1: "somebody was added",
    2: "somebody left",
    3: "a call",
    4: "the channel has a new name",
    5: "the channel has a new picture",
    6: "a message was pinned",
    7: "somebody joined",
    8: "the server was boosted",
    9: "the server was boosted to level 1",
    10: "the server was boosted to level 2",
    11: "the server was boosted to level 3",
    12: "a channel is followed here",
    14: "the server was taken out of discovery",
    15: "the server is in discovery again",
    16: "a warning about discovery",
    17: "the last warning about discovery",
    18: "a thread was opened",
    21: "a thread was opened at a message",
    22: "a reminder to invite people",
    24: "the automatic moderation did something",
    25: "somebody bought a role",
    26: "an offer of an app",
    27: "a stage began",
    28: "a stage ended",
    29: "somebody speaks on a stage",
    31: "a stage has a new topic",
    32: "somebody subscribed to an app",
    36: "an alarm was raised in the server",
    37: "the alarm in the server is over",
    38: "a raid was reported",
    39: "a report of a raid was false",
    44: "something was bought",
}

_USED = {3: "a button or menu of a message was used", 5: "a form was sent"}


def what_it_is(message: Raw) -> str:
    """A few words for people: what came, although there is nothing in it to read."""
    kind = count(message, "type") or 0
    if kind == 18 and (name := line(message, "content", most=100)):
        return f"a thread was opened: {name}"
    if kind in _TYPES:
        return _TYPES[kind]
    if kind not in SAID:
        return f"a message of the type {kind}"
    if count(table(message, "message_reference"), "type") == FORWARD:
        return "a forwarded message, of which Discord shows nothing"
    if table(message, "activity"):
        return f"an invitation to {line(table(message, 'application'), 'name', most=100) or 'an activity'}"
    if table(message, "shared_client_theme"):
        return "a theme for Discord"
    return "a message without anything in it, or one Discord does not show to bots without the message content intent"


def kind_of_event(event: Raw) -> str:
    used = count(table(event, "d"), "type") if words(event, "t") == "INTERACTION_CREATE" else None
    if used in _USED:
        return _USED[used]
    name = words(event, "t").lower().replace("_", " ")[:64]
    return f"an event of the kind {name or 'nothing'}"
