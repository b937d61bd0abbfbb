"""Files out in three steps: a place to put each, their bytes streamed there, and one call that makes them visible."""

from collections.abc import AsyncIterator, Sequence

from belino.adapters.slack.calls import Calls
from belino.adapters.slack.mrkdwn import escaped
from belino.adapters.slack.raw import moment, stamp
from belino.domain.errors import AdapterError, MediaError, Unanswered, Undeliverable, Unreached
from belino.domain.limits import Markup
from belino.domain.reply import OutgoingFile, Parcel, Receipt, StoredFile
from belino.net.raw import Raw, as_table, table, tables, words

# Slack shares a file a moment after it says that it did; only then does it know the message.
SHARED_AFTER = (0.0, 0.5, 1.0, 2.0, 4.0)


async def share(calls: Calls, parcel: Parcel) -> Receipt:
    """Upload the parcel's files and show them in one message."""
    ids = [await _uploaded(calls, file) for file in parcel.files]
    files = [{"id": own, "title": file.name} for own, file in zip(ids, parcel.files, strict=True)]
    told = await calls.call(
        "files.completeUploadExternal",
        {
            "files": files,
            "channel_id": parcel.conversation.channel,
            "initial_comment": comment_of(parcel) or None,
            "thread_ts": parcel.conversation.thread,
        },
    )
    return await _receipt(calls, parcel, ids, tables(told, "files"))


def comment_of(parcel: Parcel) -> str:
    """The captions of all files, which Slack shows above them."""
    captions = [file.caption for file in parcel.files if file.caption]
    text = "\n".join(part for part in (parcel.text, *captions) if part)
    return text if parcel.markup is Markup.MRKDWN else escaped(text)


def shared_at(file: Raw, channel: str) -> str:
    """The ts of the message that shows a file in a channel; empty if none does yet."""
    for side in ("public", "private"):
        places = table(table(file, "shares"), side).get(channel)
        for each in places if isinstance(places, list) else ():
            if ts := stamp(as_table(each), "ts"):
                return ts
    return ""


async def _uploaded(calls: Calls, file: OutgoingFile) -> str:
    """Put a file where nobody sees it yet, and return its id."""
    body = Body(file)
    try:
        told = await calls.call("files.getUploadURLExternal", {"filename": file.name, "length": str(file.size)})
        url, own = words(told, "upload_url"), words(told, "file_id")
        if not url or not own:
            raise AdapterError("Slack did not say where to put the file")
        await calls.upload(url, body.chunks(), file.size)
    except AdapterError as error:
        if body.trouble is not None:
            raise body.trouble from None
        if isinstance(error, Unanswered):
            # Nothing is visible before the last step: it may be begun anew.
            raise Unreached("the upload broke off before its end") from None
        raise
    return own


class Body:
    """A file's bytes, as many as were announced."""

    def __init__(self, file: OutgoingFile) -> None:
        self._file = file
        self.trouble: Undeliverable | None = None
        """Why the bytes could not be read to their end."""

    async def chunks(self) -> AsyncIterator[bytes]:
        left, name = self._file.size, self._file.name
        try:
            async for piece in self._file.chunks():
                left -= len(piece)
                yield piece[:left] if left < 0 else piece
        except MediaError as error:
            raise self._cannot(f"the bytes of {name} cannot be read: {error}") from error
        if left:
            raise self._cannot(f"{name} is no longer the file that was to be sent")

    def _cannot(self, why: str) -> Undeliverable:
        self.trouble = Undeliverable(why)
        return self.trouble


async def _receipt(calls: Calls, parcel: Parcel, ids: Sequence[str], files: Sequence[Raw]) -> Receipt:
    stored = tuple(StoredFile(form=file.send_as, size=file.size, name=file.name) for file in parcel.files)
    ts = next((ts for file in files if (ts := shared_at(file, parcel.conversation.channel))), "")
    for wait in SHARED_AFTER if not ts else ():
        await calls.clock.sleep(wait)
        try:
            told = await calls.call("files.info", {"file": ids[0]})
        except AdapterError:
            break  # the files are there, whatever Slack says of them now: sent again they would be seen twice
        if ts := shared_at(table(told, "file"), parcel.conversation.channel):
            break
    # Taken for certain, by whichever id: a message that is not named yet is named by its file.
    return Receipt(message_id=ts or ids[0], sent=moment(ts) or calls.now(), stored=stored)
