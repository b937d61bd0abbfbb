"""Whether a parcel arrived although its receipt was lost: looked for among what the bot said since."""

from datetime import timedelta

from belino.adapters.discord.calls import Calls, Refused
from belino.adapters.discord.raw import as_identity, first_at, identity, moment
from belino.adapters.discord.send import MESSAGES, channel_of, nonce_of
from belino.domain.reply import Parcel, Receipt
from belino.net.raw import Raw, as_tables, count, table, tables, words

PAGE, MOST_PAGES = 100, 5
# Discord's clock and ours may differ by that much.
SKEW = timedelta(seconds=60)


async def find_sent(calls: Calls, parcel: Parcel, *, bot: str) -> Receipt | None:
    """The bot's message with these words and files since the parcel was made; Discord tells no key of an old one."""
    query: dict[str, object] = {"limit": PAGE}
    if parcel.created is not None:
        query["after"] = first_at(parcel.created - SKEW)
    for _ in range(MOST_PAGES if parcel.created is not None else 1):
        try:
            page = as_tables(await calls.call("GET", MESSAGES, channel_of(parcel.conversation), query=query))
        except Refused:
            return None  # where nothing can be read, nothing can be written either: sending will say why
        for message in page:
            if bot and identity(table(message, "author"), "id") == bot and _is_it(message, parcel):
                return Receipt(message_id=identity(message, "id"), sent=moment(message, "timestamp") or calls.now())
        if len(page) < PAGE:
            break
        query["after"] = max((identity(message, "id") or "0" for message in page), key=int)
    return None


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
