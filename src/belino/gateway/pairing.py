"""Pairing: a stranger's direct message gets a code once, and an operator approves it."""

import secrets
from dataclasses import replace

from belino.domain.message import Message
from belino.domain.reply import Parcel
from belino.domain.safe_text import clean_name
from belino.storage.access_verbs import AccessVerbs

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 characters, none of which looks like another."""
CODE_CHARS = 8
"""Five bits each: a guess hits one of three codes with probability 3 in 10^12, and there are five guesses."""
NAME_CHARS = 64

_MISREAD = str.maketrans({"O": "0", "I": "1", "L": "1"})


async def offer_pairing(pairings: AccessVerbs, message: Message) -> bool:
    """Answer a stranger's message with a code, if one is due; nothing of the message is stored."""
    code = new_code()
    key = secrets.token_hex(8)
    parcel = Parcel(
        key=f"pairing-{key}", conversation=message.conversation, text=invitation(code), trace=f"pairing-{key}"
    )
    name = clean_name(message.author.name, limit=NAME_CHARS)
    return await pairings.ask_pairing(replace(message.author, name=name), parcel, plain_code(code))


def new_code() -> str:
    """A new code as a person reads it, `K3V9-D0Q2`."""
    signs = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
    return f"{signs[: CODE_CHARS // 2]}-{signs[CODE_CHARS // 2 :]}"


def plain_code(typed: str) -> str:
    """Normalize a typed code: case, dashes and blanks do not count, and O is 0."""
    return "".join(sign for sign in typed.upper() if sign not in "- \t").translate(_MISREAD)


def invitation(code: str) -> str:
    """The message to the stranger."""
    return (
        "I do not know you yet. Give this code to the person who runs me, within 10 minutes: "
        f"{code}\nThey let you in with: belino pair {code}\n"
        "Nothing of your message was kept; send it again afterwards."
    )
