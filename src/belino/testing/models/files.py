"""Files in requests to models: what the APIs find out about documents and sounds before they read them."""

import base64
import binascii
import re

_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_SOUNDS = ((b"RIFF", "wav"), (b"ID3", "mp3"), (b"\xff\xfb", "mp3"), (b"fLaC", "flac"), (b"OggS", "ogg"))


def decoded(data: object) -> bytes | None:
    """The bytes of base64, in either alphabet; None if it is none."""
    if not isinstance(data, str) or not data:
        return None
    try:
        return base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        return None


def pdf_pages(content: bytes | None) -> int:
    """The pages of a PDF; 0 if it is none, or has none."""
    return len(_PAGE.findall(content)) if content is not None and content.startswith(b"%PDF-") else 0


def is_locked(content: bytes) -> bool:
    """Whether a PDF is encrypted."""
    return b"/Encrypt" in content


def sound_format(content: bytes | None) -> str:
    """The format of a sound, by its first bytes; empty if it is none."""
    return next((name for magic, name in _SOUNDS if content is not None and content.startswith(magic)), "")
