"""The same values as canonical JSON: the keys that programs and `format="json"` read."""

from datetime import UTC, datetime

import orjson

from belino.domain.media import MediaRef
from belino.media.placeholder import clean_mime, clean_name


def iso_time(moment: datetime) -> str:
    """ISO 8601, in UTC."""
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
