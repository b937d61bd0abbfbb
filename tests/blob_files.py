"""The bytes that a store holds, for tests that read them, damage them or see them go."""

from pathlib import Path

from belino.domain.media import Blob
from belino.storage.blobs import PREFIXES
from belino.storage.folder import BlobFolder
from belino.storage.store import Store


async def content_of(store: Store, blob: Blob) -> bytes:
    """The bytes of a blob, as a platform would get them."""
    return b"".join([piece async for piece in store._blobs.stream(blob.sha256)])


async def is_here(store: Store, blob: Blob) -> bool:
    """Whether there are bytes of this name, whatever the rows say."""
    return blob.sha256 in await store._blobs.list(blob.sha256[:2])


def path_of(store: Store, blob: Blob) -> Path:
    """The file of a blob in a folder."""
    assert isinstance(store._blobs, BlobFolder)
    return store._blobs._place(blob.sha256)


async def all_names(store: Store) -> list[str]:
    """The names of all bytes, and of files in the making."""
    held = [name for prefix in PREFIXES for name in await store._blobs.list(prefix)]
    return [*held, *await store._blobs.list_aside(), *(path.name for path in store.scratch.iterdir())]
