"""Albums: the media sent together with a picture, in one message or in several that belong together."""

from belino.domain.message import ConversationKey
from belino.domain.stored import RefRecord
from belino.storage.library_verbs import LibraryVerbs

ALBUM_MOST = 30
"""The most pictures on one contact sheet."""
NEARBY = 100
"""Items of an album arrive together: the others are among this many refs before and after."""


async def album_of(library: LibraryVerbs, channel: ConversationKey, record: RefRecord) -> tuple[RefRecord, ...]:
    """The refs of the album in order; the ref alone if it is not in an album."""
    near = await library.refs(channel, before=record.seq + NEARBY, limit=2 * NEARBY)
    ids = list(dict.fromkeys(each.ref.message_id for each in near))
    albums = {message.id: message.album for message in await library.messages(channel, ids)}
    album, own = albums.get(record.ref.message_id), record.ref.message_id
    together = {own} | {message_id for message_id, name in albums.items() if album is not None and name == album}
    found = [each for each in near if each.ref.message_id in together]
    return tuple(sorted(found, key=lambda each: each.seq)) or (record,)
