"""What hangs below a message: shared messages as quotes, previews and apps' attachments as text."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from belino.adapters.slack.blocks import Blocks
from belino.adapters.slack.files import Bearer, refs_of, wordings_of
from belino.adapters.slack.mrkdwn import link, readable
from belino.adapters.slack.people import Directory, Me, user_named
from belino.adapters.slack.raw import moment, stamp
from belino.domain.message import Author, Quote
from belino.net.raw import Raw, line, table, tables, words, yes

MOST = 20
"""Attachments are read so far; people see no more of them either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What the attachments of a message come to."""

    text: str = ""
    forward: Quote | None = None
    """A message that was shared here."""
    quote: Quote | None = None
    """A message whose address was pasted."""
    files: tuple[Raw, ...] = ()
    """The files of everything that is told as text."""


class Attachments:
    """Reads attachments with the names that are known."""

    def __init__(self, me: Me, directory: Directory) -> None:
        self._me = me
        self._directory = directory
        self._blocks = Blocks(me, directory)

    def read(self, attachments: tuple[Raw, ...], bearer: Bearer) -> Attached:
        """One shared and one quoted message as such; everything else is text."""
        read = Attached()
        for each in attachments[:MOST]:
            if _is_share(each) and read.forward is None:
                read = replace(read, forward=self._quote(each, bearer))
            elif _is_pasted(each) and read.quote is None:
                read = replace(read, quote=self._quote(each, bearer))
            else:
                said = "\n".join(part for part in (read.text, self._text(each)) if part)
                read = replace(read, text=said, files=(*read.files, *tables(each, "files")))
        return read

    def _quote(self, raw: Raw, bearer: Bearer) -> Quote:
        """Its files belong to the message that brought them here; its id counts only in its own channel."""
        here = words(raw, "channel_id") == bearer.where.channel
        ts, files = stamp(raw, "ts"), tables(raw, "files")
        message_id = ts if here and ts else None
        own = replace(bearer, message_id=message_id or bearer.message_id, caption="")
        said = self._said(raw)
        return Quote(
            author=self._author(raw),
            message_id=message_id,
            text="\n".join(part for part in (said, *wordings_of(files)) if part),
            sent=moment(ts),
            media=refs_of(files, own),
        )

    def _author(self, raw: Raw) -> Author | None:
        user, name = words(raw, "author_id"), line(raw, "author_name") or line(raw, "author_subname")
        if not user:
            return Author(id="unknown", name=name) if name else None
        author = user_named(user, self._me, self._directory)
        return replace(author, name=name) if name and not author.is_agent else author

    def _said(self, raw: Raw) -> str:
        if text := words(raw, "text"):
            return readable(text, self._me, self._directory)
        blocks = tuple(block for each in tables(raw, "message_blocks") for block in _blocks_in(each))
        return self._blocks.text(blocks or tables(raw, "blocks")) or line(raw, "fallback")

    def _text(self, raw: Raw) -> str:
        parts = list(self._parts(raw))
        if not parts and (fallback := words(raw, "fallback")):
            parts = [readable(fallback, self._me, self._directory)]
        return "\n".join(part for part in parts if part)

    def _parts(self, raw: Raw) -> Iterator[str]:
        yield readable(words(raw, "pretext"), self._me, self._directory)
        service, author = line(raw, "service_name"), self._author(raw)
        yield ", ".join(part for part in (service, author.name if author else "") if part)
        title = readable(line(raw, "title"), self._me, self._directory)
        address = words(raw, "title_link") or words(raw, "from_url")
        yield link(address, title) if address else title
        yield readable(words(raw, "text"), self._me, self._directory)
        for each in tables(raw, "fields"):
            name, value = line(each, "title"), readable(words(each, "value"), self._me, self._directory)
            yield ": ".join(part for part in (name, value) if part)
        yield self._blocks.text(tables(raw, "blocks"))
        yield from wordings_of(tables(raw, "files"))
        if words(raw, "image_url") or words(raw, "thumb_url"):
            yield "(with a picture)"
        yield readable(line(raw, "footer"), self._me, self._directory)


def pasted(attachments: tuple[Raw, ...]) -> list[str]:
    """The addresses of the messages that are quoted; Slack looks them up only after a message was sent."""
    return [words(each, "from_url") or stamp(each, "ts") for each in attachments if _is_pasted(each)]


def _is_share(raw: Raw) -> bool:
    return yes(raw, "is_share")


def _is_pasted(raw: Raw) -> bool:
    return yes(raw, "is_msg_unfurl") or yes(raw, "is_reply_unfurl")


def _blocks_in(raw: Raw) -> tuple[Raw, ...]:
    """`message_blocks` wraps the blocks of the shared message: {team, channel, ts, message: {blocks}}."""
    return tables(table(raw, "message"), "blocks") or ((raw,) if words(raw, "type") else ())
