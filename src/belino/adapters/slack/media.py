"""Media of messages: files as refs that hold ids only, and their bytes by fresh links from files.info."""

import re
from collections.abc import Iterator

from belino.adapters.slack.client import SlackClient, SlackRefused
from belino.domain.errors import MediaError, MediaExpired, MediaRefused
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import SourceMessage
from belino.domain.ports import HttpAnswer
from belino.net.guard import host_of, parse_url
from belino.net.json_fields import UNKNOWN_MIME, Raw, count, line, measure, mime, table, tables, words, yes
from belino.net.rest import LinkedFile
from belino.net.stream import retried

FILE_PATHS = ("/files-pri/", "/files-tmb/")
"""The prefixes of private links: the token is sent to no other page of Slack."""
_STEPS = re.compile(r"(?i)/(?:\.|%2e){1,2}(?:[/?]|%2f|$)|//|\\\\|%5c")

_NOT_LET_IN = frozenset({401, 403})
_NO_SUCH_FILE = frozenset({"file_not_found", "file_deleted"})
_NOT_SHOWN = frozenset({"access_denied", "not_visible", "not_in_channel", "slack_connect_file_upload_sharing_blocked"})

NAME_CHARS = 255
CANVAS_MIME = "application/vnd.slack-docs"
_PAGES = frozenset({"text/html", CANVAS_MIME})

_ADVICE = (
    "Slack asked for a login instead of sending the file: the app lacks the scope files:read, or is not in the "
    "conversation; add the scope under OAuth & Permissions and install the app again"
)

_FILE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_IN_LINK = re.compile(r"/files-(?:pri|tmb)/T[A-Z0-9]+-(F[A-Z0-9]{2,30})[/-]")
MOST_BLOCKS, MOST_NESTED = 100, 1_000
# How files without bytes are described.
WITHOUT_BYTES = {
    "tombstone": "a file that was deleted",
    "hidden_by_limit": "a file that the workspace's plan no longer shows",
    "access_denied": "a file this app may not see",
    "file_not_found": "a file that is gone",
    "slack_connect_file_upload_sharing_blocked": "a file that the other workspace does not share",
}


def refs_of(files: tuple[Raw, ...], source: SourceMessage) -> tuple[MediaRef, ...]:
    """Every file that has bytes, each once; the first carries the message's text."""
    found: dict[str, MediaRef] = {}
    for file in files:
        if has_bytes(file) and words(file, "id") not in found:
            caption = source.caption if not found else ""
            found[words(file, "id")] = _ref(file, source, caption or None)
    return tuple(found.values())


def pictures_in(raw: Raw, source: SourceMessage) -> Iterator[MediaRef]:
    """The files that the image blocks of a message or attachment show; Slack keeps them for its app."""
    pile, seen = list(reversed(tables(raw, "blocks")[:MOST_BLOCKS])), 0
    while pile and (seen := seen + 1) <= MOST_NESTED:
        block = pile.pop()
        shown = table(block, "slack_file")
        found = _IN_LINK.search(words(shown, "url"))
        own = words(shown, "id") or (found[1] if found is not None else "")
        if _FILE_ID.fullmatch(own):
            caption = line(table(block, "title"), "text") or line(block, "alt_text") or None
            locator = {"file": own, "channel": source.where.channel}
            yield source.ref(item=own, kind=MediaKind.IMAGE, mime=UNKNOWN_MIME, caption=caption, locator=locator)
        pile += reversed([*tables(block, "elements"), *filter(None, (table(block, "accessory"),))])


def file_ref(file_id: str, mime: str, source: SourceMessage) -> MediaRef:
    """The ref of a file of which only the id and the type are known: one that we uploaded."""
    return source.ref(item=file_id, kind=kind_of(mime), mime=mime, locator={"file": file_id})


def has_bytes(file: Raw) -> bool:
    """Whether Slack provides the bytes; a file with hardly any fields is worth a request."""
    if not _FILE_ID.fullmatch(words(file, "id")) or yes(file, "is_external") or words(file, "mode") == "external":
        return False
    return words(file, "mode") not in WITHOUT_BYTES and words(file, "file_access") not in WITHOUT_BYTES


def mime_of(file: Raw) -> str:
    """Slack's MIME type without parameters; some audio recordings are marked as video."""
    told = mime(file, "mimetype")
    is_sound = is_voice(file) or words(file, "media_display_type") == "audio"
    return f"audio/{told.partition('/')[2]}" if is_sound and told.startswith("video/") else told


def is_voice(file: Raw) -> bool:
    return words(file, "subtype") == "slack_audio"


def _ref(file: Raw, source: SourceMessage, caption: str | None) -> MediaRef:
    told, milliseconds = mime_of(file), measure(file, "duration_ms")
    return source.ref(
        item=words(file, "id"),
        kind=MediaKind.VOICE if is_voice(file) else kind_of(told),
        mime=told,
        file_name=_name(file),
        size=count(file, "size") or None,
        duration=None if milliseconds is None else milliseconds / 1000,
        width=count(file, "original_w") or count(file, "thumb_video_w") or None,
        height=count(file, "original_h") or count(file, "thumb_video_h") or None,
        caption=caption,
        locator={"file": words(file, "id")},
        transcript=transcript_of(file),
        is_transcript_partial=yes(table(table(file, "transcription"), "preview"), "has_more"),
        # The bytes of snippets, posts and canvases change under their id.
        file_id=words(file, "id") if words(file, "mode") == "hosted" else None,
    )


def transcript_of(file: Raw) -> str | None:
    """What Slack has heard in a clip; its preview ends with … where the clip says more."""
    told = table(file, "transcription")
    preview = table(told, "preview")
    text = words(preview, "content").strip() if words(told, "status") == "complete" else ""
    return (f"{text}…" if yes(preview, "has_more") and not text.endswith("…") else text) or None


def _name(file: Raw) -> str | None:
    # A canvas is always named "Untitled"; its title is what people see.
    title_first = mime_of(file) == CANVAS_MIME or words(file, "mode") in ("quip", "canvas")
    name, title = words(file, "name").strip(), line(file, "title")
    name = (title or name) if title_first else (name or title)
    return name[:NAME_CHARS] or None


def _is_shown_in(file: Raw, channel: str) -> bool:
    """Whether a block may show a file: it is public, shared in the block's channel, or kept for blocks only.

    The writer of a block chooses the id, which may be that of a file in another conversation of the app.
    """
    places: set[object] = set()
    for key in ("channels", "groups", "ims"):
        listed = file.get(key)
        places |= {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else set()
    return yes(file, "is_public") or not places or channel in places


class SlackDownload(LinkedFile):
    """Downloads a file, by Slack's current private link."""

    gone = frozenset({401, 403, 404, 410})

    def __init__(
        self, client: SlackClient, ref: MediaRef, *, api_url: str, files_url: str | None, hosts: frozenset[str]
    ) -> None:
        """`hosts` may receive the token; on the API's own host, nothing below `api_url`."""
        super().__init__(ref, client.clock, get=client.file)
        self._client = client
        self._api = parse_url(api_url)
        self._files = None if files_url is None else host_of(files_url)
        self._hosts = hosts
        self._is_page = False
        """Whether the file itself is HTML, or is served as such by Slack."""
        self._size: int | None = None

    async def first_link(self) -> str:
        """The link; files that Slack never provides are refused here."""
        return await retried(self.link, clock=self._clock, lasting=(SlackRefused,))

    async def link(self) -> str:
        try:
            file = table(await self._client.call("files.info", {"file": self._ref.locator.get("file", "")}), "file")
        except SlackRefused as error:
            if error.error == "missing_scope":
                raise MediaRefused(_ADVICE) from error
            if error.error in _NO_SUCH_FILE:
                raise self._expired(error.error) from error
            if error.error in _NOT_SHOWN:
                raise self._hidden(error.error) from error
            raise
        if not has_bytes(file):
            if words(file, "mode") == "external" or yes(file, "is_external"):
                raise MediaRefused(f"Slack does not have the bytes of {self.shown}: it is kept elsewhere")
            if (access := words(file, "file_access")) in _NOT_SHOWN:
                raise self._hidden(access)
            raise self._expired(words(file, "mode") or access)
        if (here := self._ref.locator.get("channel")) and not _is_shown_in(file, here):
            raise MediaRefused(f"Slack shares {self.shown} in another conversation, and not in this one")
        self._is_page, self._size = mime_of(file) in _PAGES, count(file, "size")
        return self._checked(file)

    def _checked(self, file: Raw) -> str:
        """The link, if it leads to Slack's files: an API page shows the token it was called with."""
        url = (words(file, "url_private_download") or words(file, "url_private")).replace(" ", "%20")
        place = parse_url(url)
        if place.origin == self._api.origin:
            # An API at the root of its host has its methods there, one level deep.
            is_file = not place.rest.startswith(self._api.rest) or (self._api.rest == "/" and "/" in place.rest[1:])
        else:
            is_file = place.rest.startswith(FILE_PATHS) or host_of(url) == self._files
        if host_of(url) not in self._hosts or not is_file or _STEPS.search(place.rest):
            raise MediaRefused("Slack named no link of its own for this file")
        return url

    def check(self, answer: HttpAnswer) -> None:
        """Refuse an HTML page that is not the file: without access Slack answers with a login page and status 200."""
        named = {name.lower(): value for name, value in answer.headers.items()}
        if answer.status != 200 or not named.get("content-type", "").lower().startswith("text/html"):
            return
        # A shared HTML page is served as an attachment, or at least has the length that Slack reports.
        is_file = "content-disposition" in named or named.get("content-length") == str(self._size)
        if not self._is_page or not (is_file or self._ref.mime == CANVAS_MIME):
            raise MediaRefused(_ADVICE)

    def dead(self, status: int) -> MediaError:
        return MediaRefused(_ADVICE) if status in _NOT_LET_IN else self._expired(f"status {status}")

    def _hidden(self, why: str) -> MediaRefused:
        return MediaRefused(
            f"Slack does not show {self.shown} to the app ({why}): it may not be shared, or is in a conversation "
            "without the app; invite it there"
        )

    def _expired(self, why: str) -> MediaExpired:
        return MediaExpired(
            f"Slack no longer hands out {self.shown} ({why or 'gone'}); ask the sender to send it again"
        )
