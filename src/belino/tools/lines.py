"""Records as an agent reads them: compact lines whose fields nobody can break out of, or JSON with the same words."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import orjson

from belino.domain.media import MediaRef
from belino.media.placeholder import clean_mime, clean_name

_SPECIAL = {"\\": "\\\\", "|": "\\|", "\n": "\\n"}
_ESCAPED = re.compile(r"[\\|\n]")


def line(fields: Iterable[str]) -> str:
    """Fields joined by `|`; a bar, a newline or a backslash inside one is escaped."""
    return "|".join(_ESCAPED.sub(lambda found: _SPECIAL[found.group()], field) for field in fields)


def short_time(moment: datetime) -> str:
    """`MM-DD HH:MM`, in UTC."""
    return f"{moment.astimezone(UTC):%m-%d %H:%M}"


def iso_time(moment: datetime) -> str:
    """ISO 8601, in UTC, for JSON."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def media_json(ref: MediaRef) -> dict[str, object]:
    """A ref as the wire knows it."""
    return {
        "artifact_id": ref.id,
        "media_type": clean_mime(ref.mime) or None,
        "filename": clean_name(ref.file_name) if ref.file_name else None,
        "byte_length": ref.size,
    }


def json_text(value: object) -> str:
    """Canonical JSON, as compact as it goes."""
    return orjson.dumps(value).decode()
