"""Crypto of WhatsApp's media: the keys of a file from the key in its message.

HKDF-SHA256 without a salt stretches the 32 bytes to 112: the initialisation vector, the keys of cipher and MAC, and one
for references. Its label is the type of media, so that a key opens a file as one type only.
"""

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from belino.domain.errors import MediaRefused
from belino.net.encrypted_stream import FileKeys

KEY_BYTES = 32
LABELS = {kind: f"WhatsApp {kind.title()} Keys".encode() for kind in ("image", "video", "audio", "document")}
"""By the type of media in WhatsApp's links; stickers are images."""


def file_keys(key: bytes, media_type: str) -> FileKeys:
    """The keys of a file from the key in its message."""
    if len(key) != KEY_BYTES or media_type not in LABELS:
        raise MediaRefused("the message has no usable key for this file")
    okm = HKDF(algorithm=SHA256(), length=112, salt=None, info=LABELS[media_type]).derive(key)
    return FileKeys(iv=okm[:16], cipher=okm[16:48], mac=okm[48:80])
