"""Whether a parcel arrived although its receipt was lost: looked for among what the bot said since."""

from collections.abc import Iterator
from datetime import timedelta

from belino.adapters.discord.calls import Calls, Refused
from belino.adapters.discord.raw import as_identity, identity, made_at, moment
from belino.adapters.discord.send import MESSAGES, channel_of, nonce_of
from belino.domain.reply import Parcel, Receipt
from belino.net.raw import Raw, as_tables, count, table, tables, words

PAGE = 100
# Discord's clock and ours may differ by that much.
SKEW = timedelta(seconds=60)


async def find_sent(calls: Calls, parcel: Parcel, *, bot: str) -> Receipt | None:
    """The bot's message with these words and files since the parcel was made; Discord tells no key of an old one."""
    try:
        told = await calls.call("GET", MESSAGES, channel_of(parcel.conversation), query={"limit": PAGE})
    except Refused:
        return None  # where nothing can be read, nothing can be written either: sending will say why
    for message in _candidates(as_tables(told), parcel, bot):
        if _is_it(message, parcel):
            return Receipt(message_id=identity(message, "id"), sent=moment(message, "timestamp") or calls.now())
    return None


def _candidates(page: tuple[Raw, ...], parcel: Parcel, bot: str) -> Iterator[Raw]:
    for message in page:
        made = made_at(identity(message, "id"))
        young = parcel.created is None or (made is not None and made >= parcel.created - SKEW)
        if young and bot and identity(table(message, "author"), "id") == bot:
            yield message


def _is_it(message: Raw, parcel: Parcel) -> bool:
    if nonce := words(message, "nonce"):
        return nonce == nonce_of(parcel)
    said = _letters(words(message, "content")) == _letters(parcel.text)
    sizes = sorted(count(file, "size") or 0 for file in tables(message, "attachments"))
    answered = identity(table(message, "message_reference"), "message_id")
    # A message that was answered and is gone by now leaves no reference.
    return (
        said and sizes == sorted(file.size for file in parcel.files) and answered in ("", as_identity(parcel.reply_to))
    )


def _letters(text: str) -> str:
    """What is left of a text whatever Discord strips from it; all of it, if it has no letters."""
    return "".join(sign for sign in text if sign.isalnum()) or text.strip()
