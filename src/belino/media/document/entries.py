"""One entry of an archive, as its list tells it."""

import re
from dataclasses import dataclass

UNTOLD = "?"
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file or folder in an archive; or, with a `note`, something to know about the list itself."""

    name: str = ""
    size: int | None = None
    """Unpacked, as the archive says."""
    modified: str = ""
    folder: bool = False
    encrypted: bool = False
    link: str = ""
    """Where it leads; UNTOLD where the list does not say."""
    note: str = ""

    @property
    def outside(self) -> bool:
        """Whether whoever unpacks it by its name, or follows its link, would leave the folder."""
        return _leaves(self.name) or bool(self.link and _leaves(self.link, depth=self.name.count("/")))


def _leaves(path: str, *, depth: int = 0) -> bool:
    plain = path.replace("\\", "/")
    if plain.startswith("/") or _DRIVE.match(plain) or "\0" in plain:
        return True
    for step in plain.split("/"):
        depth += -1 if step == ".." else 0 if step in ("", ".") else 1
        if depth < 0:
            return True
    return False
