"""Files of a test, opened as if they were blobs of a store."""

from pathlib import Path

from belino.domain.media import Blob, open_files

_PATHS: dict[str, Path] = {}

open_local = open_files(_PATHS)


def local_blob(path: Path, *, mime: str, sha256: str = "0" * 64) -> Blob:
    """A file as a blob; a later one of the same name replaces it."""
    _PATHS[sha256] = path
    return Blob(sha256=sha256, mime=mime, size=path.stat().st_size)
