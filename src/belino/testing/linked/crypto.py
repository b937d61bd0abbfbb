"""Crypto of a phone and of WhatsApp's apps: media encrypted and checked at once, as their specification has it."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def expanded(key: bytes, media_type: str) -> bytes:
    """RFC 5869 without a salt, to 112 bytes."""
    secret, info = hmac.digest(bytes(32), key, "sha256"), f"WhatsApp {media_type.title()} Keys".encode()
    made, block = b"", b""
    for number in range(1, 5):
        block = hmac.digest(secret, block + info + bytes([number]), "sha256")
        made += block
    return made[:112]


def encrypt(plain: bytes, key: bytes, media_type: str) -> bytes:
    """The ciphertext and the first ten bytes of its MAC."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CBC

    okm, padding = expanded(key, media_type), 16 - len(plain) % 16
    cipher = Cipher(AES(okm[16:48]), CBC(okm[:16])).encryptor()
    closed = cipher.update(plain + bytes([padding]) * padding) + cipher.finalize()
    return closed + hmac.digest(okm[48:80], okm[:16] + closed, "sha256")[:10]


def fields_of(plain: bytes, encrypted: bytes, key: bytes) -> Json:
    """The fields of a message that name a file."""
    hashes = {"fileSHA256": hashlib.sha256(plain).digest(), "fileEncSHA256": hashlib.sha256(encrypted).digest()}
    texts = {name: b64encode(value).decode() for name, value in {**hashes, "mediaKey": key}.items()}
    return {**texts, "fileLength": len(plain)}


def check(encrypted: bytes, told: Json, media_type: str) -> bytes:
    """The plain bytes of a file that a message names; AssertionError says what an app would not accept."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CBC

    of: Callable[[str], bytes] = lambda name: b64decode(told[name])  # noqa: E731
    okm = expanded(of("mediaKey"), media_type)
    closed, mac = encrypted[:-10], encrypted[-10:]
    assert hashlib.sha256(encrypted).digest() == of("fileEncSHA256"), "fileEncSHA256 is another file's"
    assert hmac.digest(okm[48:80], okm[:16] + closed, "sha256")[:10] == mac, "the MAC is wrong"
    cipher = Cipher(AES(okm[16:48]), CBC(okm[:16])).decryptor()
    padded = cipher.update(closed) + cipher.finalize()
    plain = padded[: -padded[-1]]
    assert hashlib.sha256(plain).digest() == of("fileSHA256"), "fileSHA256 is another file's"
    assert int(told["fileLength"]) == len(plain), "fileLength is wrong"
    return plain
