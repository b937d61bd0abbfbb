"""Slack's own markup as words people read: mentions by name, links with their addresses, entities as characters."""

import re
from collections.abc import Iterator

from belino.adapters.slack.people import Directory, Me
from belino.net.redact import redact

_TOKEN = re.compile(r"<([^<>]{1,3000})>")
# Slack writes U or W and capitals; what other servers call their users counts too.
_MENTION = re.compile(r"<@([A-Za-z0-9_-]{1,64})(?:\|[^<>]*)?>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def readable(text: str, me: Me, directory: Directory) -> str:
    """A text as a person sees it."""
    return plain(_TOKEN.sub(lambda found: _shown(found[1], me, directory), text)).strip("\n")


def plain(text: str) -> str:
    """Slack writes three characters as entities, and no others."""
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def escaped(text: str) -> str:
    """A text in which Slack finds nothing but words."""
    for entity, character in reversed(_ENTITIES):
        text = text.replace(character, entity)
    return text


def mentioned(text: str) -> Iterator[str]:
    """The ids of the users a text mentions."""
    return (found[1] for found in _MENTION.finditer(text))


def link(url: str, label: str = "") -> str:
    """An address in words, without what may be a secret in it."""
    address = redact(plain(url)).removeprefix("mailto:")
    return f"{label} ({address})" if label and label not in (address, url.removeprefix("mailto:")) else address


def user_shown(user: str, me: Me, directory: Directory) -> str:
    return f"@{(me.name if user == me.user else '') or directory.users.get(user) or user}"


def _shown(token: str, me: Me, directory: Directory) -> str:
    target, _, label = token.partition("|")
    match target[:1]:
        case "@":
            # The name in the payload is the one the sender's client knew; ours may be older.
            return (
                f"@{label.removeprefix('@')}"
                if label and target[1:] != me.user
                else user_shown(target[1:], me, directory)
            )
        case "#":
            return f"#{label or directory.channels.get(target[1:]) or target[1:]}"
        case "!":
            return _special(target[1:], label)
        case _:
            return link(target, label)


def _special(name: str, label: str) -> str:
    kind, _, rest = name.partition("^")
    if kind == "date":
        return label or rest
    if kind == "subteam":
        return label if label.startswith("@") else f"@{label or rest}"
    return f"@{label.removeprefix('@') or kind}"
