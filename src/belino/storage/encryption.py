"""Encryption with the state folder's key: keyed ids, hashes of secrets and encrypted values."""

import hmac
import os
import re
import secrets
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import orjson

from belino import registry
from belino.domain.errors import StoreError
from belino.storage.disk import sync_folder, write_all

KEY_BYTES = 32
REF_CHARS = 12
PUBLIC_NAME_CHARS = 26
INSTANCE_CHARS = 10
MESSAGE_CODES = 22 * 22 * 10**15
"""How many codes messages may have: two of 22 letters and 15 digits."""
_NONCE_BYTES = 12
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class Keys:
    """Subkeys of the key file, one per purpose, so that no hash is valid for another purpose."""

    __slots__ = ("_grant", "_message", "_pairing", "_public", "_published", "_ref", "_seal", "instance", "word_key")

    def __init__(self, key: bytes) -> None:
        self._ref = hmac.digest(key, b"belino ref id", "sha256")
        self._message = hmac.digest(key, b"belino message code", "sha256")
        self._public = hmac.digest(key, b"belino public name", "sha256")
        self._published = hmac.digest(key, b"belino published file", "sha256")
        self._grant = hmac.digest(key, b"belino grant", "sha256")
        self._pairing = hmac.digest(key, b"belino pairing", "sha256")
        self._seal = hmac.digest(key, b"belino seal", "sha256")
        self.word_key = hmac.digest(key, b"belino search word", "sha256")
        """The key of the term hashes in the search index."""
        self.instance = _base32(hmac.digest(key, b"belino instance", "sha256"), INSTANCE_CHARS)
        """A public id of the state folder, the same at every start."""

    def ref_id(self, platform: str, account: str, channel: str, message: str, item: str) -> str:
        """The same item gives the same id; it cannot be guessed without the key."""
        digest = hmac.digest(self._ref, _joined(platform, account, channel, message, item), "sha256")
        return ref_prefix(platform) + _base32(digest, REF_CHARS)

    def message_code(self, platform: str, account: str, channel: str, message: str) -> int:
        """The number that a message's short id is made of: the same message gives the same one."""
        digest = hmac.digest(self._message, _joined(platform, account, channel, message), "sha256")
        return int.from_bytes(digest[:16], "big") % MESSAGE_CODES

    def public_name(self, ref_id: str) -> str:
        """The name under which a ref's bytes are served."""
        return _base32(hmac.digest(self._public, ref_id.encode(), "sha256"), PUBLIC_NAME_CHARS)

    def published_hash(self, token: str) -> bytes:
        """The stored hash of a link to a published file."""
        return hmac.digest(self._published, token.encode("utf-8", "surrogatepass"), "sha256")

    def grant_hash(self, secret: str) -> bytes:
        """The stored hash of a secret."""
        return hmac.digest(self._grant, secret.encode("utf-8", "surrogatepass"), "sha256")

    def pairing_hash(self, code: str) -> bytes:
        """The stored hash of a pairing code."""
        return hmac.digest(self._pairing, code.encode("utf-8", "surrogatepass"), "sha256")

    def seal(self, values: Mapping[str, str], ref_id: str) -> bytes | None:
        """Encrypt the secret values of a ref, bound to its id."""
        if not values:
            return None
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + AESGCM(self._seal).encrypt(nonce, orjson.dumps(dict(values)), ref_id.encode())

    def unseal(self, sealed: bytes | None, ref_id: str) -> Mapping[str, str]:
        """Decrypt the values; StoreError if the key or the ref differs from when they were sealed."""
        if sealed is None:
            return {}
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            plain = AESGCM(self._seal).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], ref_id.encode())
        except InvalidTag as error:
            raise StoreError(f"the sealed part of {ref_id} does not fit the key file") from error
        values: dict[str, str] = orjson.loads(plain)
        return values


def load_keys(path: Path) -> Keys:
    """The keys of a state folder; the key file is made on first use."""
    if not os.path.lexists(path):
        _make_key(path)
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise StoreError(
            f"the key file {path} must hold {KEY_BYTES} bytes, it holds {len(key)}; restore it from a backup"
        )
    return Keys(key)


def _make_key(path: Path) -> None:
    """Create a key file atomically and durably; it is on disk before it is used."""
    scrap = path.with_name(f"{path.name}.new")
    scrap.unlink(missing_ok=True)
    descriptor = os.open(scrap, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        write_all(descriptor, secrets.token_bytes(KEY_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    scrap.rename(path)
    sync_folder(path.parent)


@cache
def ref_prefix(platform: str) -> str:
    """The prefix of a platform's ref ids: the letters its adapter chose, or its name."""
    return (registry.ref_letters(platform) or re.sub(r"[^a-z0-9]", "", platform.lower())[:8]) + "_"


def _joined(*parts: str) -> bytes:
    """Each part is prefixed with its length, so that no two lists of parts give the same bytes."""
    pieces = [part.encode() for part in parts]
    return b"".join(b"%d:%b" % (len(piece), piece) for piece in pieces)


def _base32(digest: bytes, chars: int) -> str:
    number = int.from_bytes(digest, "big") >> (len(digest) * 8 - chars * 5)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range((chars - 1) * 5, -1, -5))
