"""Encrypted streams against another library: the same bytes, in constant memory, and nothing that was changed."""

import hashlib
import hmac
import secrets
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from Cryptodome.Cipher import AES
from Cryptodome.Hash import SHA256
from Cryptodome.Protocol.KDF import HKDF
from Cryptodome.Util.Padding import pad

from belino.adapters.whatsapp.linked.media import LABELS
from belino.domain.errors import MediaRefused
from belino.net.encrypted_stream import FileEncryption, FileHashes, decrypted, encrypted_size, file_keys

MEGABYTE = 1024 * 1024
SIZES = (0, 1, 15, 16, 17, 31, 32, 4096, 65_535, 300_001)


def stretched(key: bytes, label: bytes) -> bytes:
    okm = HKDF(key, 112, b"", SHA256, 1, label)
    assert isinstance(okm, bytes)
    return okm


def encrypt(plain: bytes, key: bytes, label: bytes) -> tuple[bytes, FileHashes]:
    """WhatsApp's encryption of a file, by code that shares nothing with ours."""
    okm = stretched(key, label)
    closed = AES.new(okm[16:48], AES.MODE_CBC, okm[:16]).encrypt(pad(plain, 16))
    sealed = closed + hmac.new(okm[48:80], okm[:16] + closed, hashlib.sha256).digest()[:10]
    return sealed, FileHashes(
        plain=hashlib.sha256(plain).digest(), encrypted=hashlib.sha256(sealed).digest(), size=len(plain)
    )


async def pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


async def opened(sealed: bytes, key: bytes, hashes: FileHashes, *, size: int = 1000) -> bytes:
    chunks = decrypted(pieces(sealed, size), file_keys(key, LABELS["image"]), hashes)
    return b"".join([chunk async for chunk in chunks])


@pytest.mark.parametrize("media_type", LABELS)
@pytest.mark.parametrize("chunk", [1, 7, 16, 1000, MEGABYTE])
async def test_a_file_of_another_library_is_decrypted_in_chunks_of_any_size(media_type: str, chunk: int) -> None:
    for size in SIZES if chunk > 16 else SIZES[:8]:
        plain, key = secrets.token_bytes(size), secrets.token_bytes(32)
        sealed, hashes = encrypt(plain, key, LABELS[media_type])
        chunks = decrypted(pieces(sealed, chunk), file_keys(key, LABELS[media_type]), hashes)
        assert b"".join([part async for part in chunks]) == plain


@pytest.mark.parametrize("chunk", [1, 15, 1000])
async def test_our_ciphertext_is_that_of_another_library(chunk: int) -> None:
    for size in SIZES[:8]:
        plain, key = secrets.token_bytes(size), secrets.token_bytes(32)
        sealed, hashes = encrypt(plain, key, LABELS["video"])
        ours = FileEncryption(file_keys(key, LABELS["video"]))
        assert b"".join([part async for part in ours.chunks(pieces(plain, chunk))]) == sealed
        assert (ours.hashes, encrypted_size(size)) == (hashes, len(sealed))


async def test_a_bit_that_was_changed_anywhere_is_noticed() -> None:
    plain, key = secrets.token_bytes(5000), secrets.token_bytes(32)
    sealed, hashes = encrypt(plain, key, LABELS["image"])
    for at in (0, 2500, len(sealed) - 11, len(sealed) - 10, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(MediaRefused, match="checksum"):
            await opened(bytes(changed), key, hashes)
        own = FileHashes(plain=hashes.plain, encrypted=hashlib.sha256(changed).digest())
        with pytest.raises(MediaRefused, match="authentication code"):
            await opened(bytes(changed), key, own)


@pytest.mark.parametrize("length", [0, 5, 10, 26])
async def test_a_file_that_was_cut_is_refused_whatever_its_hash(length: int) -> None:
    sealed, hashes = encrypt(bytes(100), bytes(32), LABELS["image"])
    cut = FileHashes(plain=hashes.plain, encrypted=hashlib.sha256(sealed[:length]).digest())
    with pytest.raises(MediaRefused):
        await opened(sealed[:length], bytes(32), cut)


async def test_bytes_with_a_valid_mac_that_are_not_the_announced_ones_are_refused() -> None:
    sealed, hashes = encrypt(b"another picture", bytes(32), LABELS["image"])
    with pytest.raises(MediaRefused, match="decrypted file"):
        await opened(sealed, bytes(32), FileHashes(plain=bytes(32), encrypted=hashes.encrypted))


async def test_padding_that_is_none_is_refused() -> None:
    okm = stretched(bytes(32), LABELS["image"])
    closed = AES.new(okm[16:48], AES.MODE_CBC, okm[:16]).encrypt(bytes(32))
    sealed = closed + hmac.new(okm[48:80], okm[:16] + closed, hashlib.sha256).digest()[:10]
    with pytest.raises(MediaRefused, match="end"):
        await opened(sealed, bytes(32), FileHashes(plain=bytes(32), encrypted=hashlib.sha256(sealed).digest()))


@pytest.mark.parametrize(("key", "media_type"), [(b"short", "image"), (bytes(32), "spreadsheet"), (b"", "image")])
def test_an_unusable_key_is_refused(key: bytes, media_type: str) -> None:
    with pytest.raises(MediaRefused, match="no usable key"):
        file_keys(key, LABELS.get(media_type, b""))


def test_a_file_opens_as_its_own_type_only() -> None:
    assert len({file_keys(bytes(32), label).cipher for label in LABELS.values()}) == len(LABELS)


def test_keys_are_not_shown() -> None:
    assert "\\x" not in repr(file_keys(bytes(32), LABELS["image"]))


@pytest.mark.slow
async def test_a_file_of_150_megabytes_takes_less_than_eight_of_memory() -> None:
    key, block = secrets.token_bytes(32), bytes(MEGABYTE)
    keys, plain = file_keys(key, LABELS["video"]), 0

    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(150):
            yield block

    first = FileEncryption(keys)
    async for _ in first.chunks(blocks()):
        pass
    tracemalloc.start()
    try:
        second = FileEncryption(keys)
        async for chunk in decrypted(second.chunks(blocks()), keys, first.hashes):
            plain += len(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plain == 150 * MEGABYTE
    assert peak < 8 * MEGABYTE
