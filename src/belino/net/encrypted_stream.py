"""Encrypted stream: a file decrypted or encrypted chunk by chunk, in constant memory, its checksums verified.

AES-256 in CBC mode with PKCS#7 padding, then the first bytes of an HMAC-SHA256 over the initialisation vector and the
ciphertext. Checksums come at the end of a file, so its beginning is passed on unverified: a consumer keeps nothing of
a stream that raises. The last block is passed on only once everything is verified.
"""

import hashlib
import hmac
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.padding import PKCS7

from belino.domain.errors import MediaRefused

MAC_BYTES = 10
BLOCK_BYTES = 16
KEY_BYTES = 32
# A larger chunk is processed in pieces of this size, as each exists several times for a moment.
PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKeys:
    """The keys of one file."""

    cipher: bytes = field(repr=False)
    mac: bytes = field(repr=False)
    iv: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHashes:
    """The SHA-256 of a file, of its ciphertext with the MAC, and its size."""

    plain: bytes
    encrypted: bytes
    size: int = 0


def file_keys(key: bytes, label: bytes) -> FileKeys:
    """The keys of a file, to which HKDF-SHA256 without a salt stretches the one in its message.

    The label is that of the type of file, so that a key opens a file as one type only; what follows the three is for
    references.
    """
    if len(key) != KEY_BYTES or not label:
        raise MediaRefused("the message has no usable key for this file")
    okm = HKDF(algorithm=SHA256(), length=112, salt=None, info=label).derive(key)
    return FileKeys(iv=okm[:16], cipher=okm[16:48], mac=okm[48:80])


def encrypted_size(size: int) -> int:
    """The size of the ciphertext of so many bytes, with its MAC."""
    return (size // BLOCK_BYTES + 1) * BLOCK_BYTES + MAC_BYTES


async def decrypted(chunks: AsyncIterator[bytes], keys: FileKeys, hashes: FileHashes) -> AsyncGenerator[bytes, None]:
    """The plain bytes of an encrypted file; MediaRefused if the MAC or a hash does not match."""
    cipher, unpadder = Cipher(AES256(keys.cipher), CBC(keys.iv)).decryptor(), PKCS7(BLOCK_BYTES * 8).unpadder()
    plain, encrypted, mac = hashlib.sha256(), hashlib.sha256(), hmac.new(keys.mac, keys.iv, hashlib.sha256)
    tail = b""
    async for piece in _pieces(chunks):
        encrypted.update(piece)
        held = tail + piece
        body, tail = held[:-MAC_BYTES], held[-MAC_BYTES:]
        mac.update(body)
        if opened := unpadder.update(cipher.update(body)):
            plain.update(opened)
            yield opened
    if not hmac.compare_digest(encrypted.digest(), hashes.encrypted):
        raise MediaRefused("the encrypted file is not the one that was sent: its checksum differs")
    if not hmac.compare_digest(mac.digest()[:MAC_BYTES], tail):
        raise MediaRefused("the encrypted file was changed: its authentication code differs")
    try:
        last = unpadder.update(cipher.finalize()) + unpadder.finalize()
    except ValueError:
        raise MediaRefused("the encrypted file does not end as it must") from None
    plain.update(last)
    if not hmac.compare_digest(plain.digest(), hashes.plain):
        raise MediaRefused("the decrypted file is not the one that was sent: its checksum differs")
    yield last


class FileEncryption:
    """The encryption of one file; `hashes` are known once all of it was read."""

    def __init__(self, keys: FileKeys) -> None:
        self._keys = keys
        self._plain, self._encrypted, self._size = hashlib.sha256(), hashlib.sha256(), 0

    @property
    def hashes(self) -> FileHashes:
        return FileHashes(plain=self._plain.digest(), encrypted=self._encrypted.digest(), size=self._size)

    async def measured(self, plain: AsyncIterator[bytes]) -> FileHashes:
        """The hashes, by an encryption whose ciphertext is dropped."""
        async for _ in self.chunks(plain):
            pass
        return self.hashes

    async def chunks(self, plain: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """The ciphertext, and at its end the MAC."""
        keys = self._keys
        cipher, padder = Cipher(AES256(keys.cipher), CBC(keys.iv)).encryptor(), PKCS7(BLOCK_BYTES * 8).padder()
        mac = hmac.new(keys.mac, keys.iv, hashlib.sha256)
        async for piece in _pieces(plain):
            self._plain.update(piece)
            self._size += len(piece)
            if closed := cipher.update(padder.update(piece)):
                mac.update(closed)
                self._encrypted.update(closed)
                yield closed
        last = cipher.update(padder.finalize()) + cipher.finalize()
        mac.update(last)
        last += mac.digest()[:MAC_BYTES]
        self._encrypted.update(last)
        yield last


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        for at in range(0, len(chunk), PIECE_BYTES):
            yield chunk[at : at + PIECE_BYTES]
