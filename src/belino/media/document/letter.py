"""One e-mail message, however it was kept."""

from dataclasses import dataclass

from belino.media.document.parts import one_line
from belino.media.placeholder import clean_mime, clean_name, format_size

HEADER_CHARS = 2_000
ATTACHMENTS_AT_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message; only told of."""

    name: str
    mime: str
    size: int

    def line(self) -> str:
        """As it stands in the list."""
        about = (clean_name(self.name) or "unnamed", clean_mime(self.mime), format_size(self.size))
        return f"- {', '.join(part for part in about if part)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One message."""

    headers: tuple[tuple[str, str], ...]
    """Those a reader looks at, in their order."""
    body: str
    attachments: tuple[Attachment, ...] = ()
    hides: bool = False

    @property
    def subject(self) -> str:
        """For a title."""
        return dict(self.headers).get("Subject", "")

    def text(self) -> str:
        """Headers, body and the list of attachments."""
        shown = [f"{name}: {one_line(value)[:HEADER_CHARS]}" for name, value in self.headers if value.strip()]
        listed = [attachment.line() for attachment in self.attachments[:ATTACHMENTS_AT_MOST]]
        more = len(self.attachments) - len(listed)
        listed += [f"- and {more} more"] if more else []
        blocks = ["\n".join(shown), self.body.strip(), "\n".join(["Attachments:", *listed]) if listed else ""]
        return "\n\n".join(block for block in blocks if block)
