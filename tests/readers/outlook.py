"""A small Outlook message, made by hand: an OLE file with the streams that readers look at."""

import struct
from dataclasses import dataclass

_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_SECTOR, _SHORT = 512, 4096
_DATE_2026 = 134_117_352_000_000_000  # 2026-01-01 10:00 UTC

Tree = dict[str, "bytes | Tree"]


def make_msg(
    *,
    subject: str,
    sender: tuple[str, str],
    to: str,
    body: str,
    attachments: tuple[tuple[str, str, bytes], ...] = (),
    inside: Tree | None = None,
) -> bytes:
    """A message with these properties; `inside` is another, attached to it."""
    tree = message(subject=subject, sender=sender, to=to, body=body, head=32)
    for at, (name, mime, content) in enumerate(attachments):
        tree[f"__attach_version1.0_#{at:08X}"] = {
            "__properties_version1.0": bytes(8),
            "__substg1.0_3707001F": name.encode("utf-16-le"),
            "__substg1.0_370E001F": mime.encode("utf-16-le"),
            "__substg1.0_37010102": content,
        }
    if inside is not None:
        tree[f"__attach_version1.0_#{len(attachments):08X}"] = {"__substg1.0_3701000D": inside}
    return make_ole(tree)


def message(*, subject: str, sender: tuple[str, str], to: str, body: str, head: int = 24) -> Tree:
    """The streams of a message; its list of properties has a longer head if it is in no other."""
    sent = struct.pack("<HHIQ", 0x0040, 0x0039, 6, _DATE_2026)
    return {
        "__properties_version1.0": bytes(head) + sent,
        "__substg1.0_0037001F": subject.encode("utf-16-le"),
        "__substg1.0_0C1A001F": sender[0].encode("utf-16-le"),
        "__substg1.0_0C1F001F": sender[1].encode("utf-16-le"),
        "__substg1.0_0E04001F": to.encode("utf-16-le"),
        "__substg1.0_1000001F": body.encode("utf-16-le"),
    }


def make_ole(tree: Tree) -> bytes:
    """An OLE file: short streams in the mini stream, long ones in sectors of their own."""
    made = _Ole()
    made.add(tree, 0)
    return made.written()


class _Ole:
    def __init__(self) -> None:
        self._entries: list[_Entry] = [_Entry("Root Entry", 5)]
        self._sectors, self._fat = bytearray(), list[int]()
        self._mini, self._mini_fat = bytearray(), list[int]()

    def add(self, folder: Tree, parent: int) -> None:
        before = None
        for name, value in folder.items():
            entry, number = _Entry(name, 1 if isinstance(value, dict) else 2), len(self._entries)
            self._entries.append(entry)
            if isinstance(value, dict):
                self.add(value, number)
            else:
                short = len(value) < _SHORT
                entry.start = self._lay(value, short=short)
                entry.size = len(value)
            # The siblings hang on one another to the right: a tree without balance is a tree.
            if before is None:
                self._entries[parent].child = number
            else:
                self._entries[before].right = number
            before = number

    def written(self) -> bytes:
        root = self._entries[0]
        root.start, root.size = self._lay(bytes(self._mini), short=False), len(self._mini)
        mini_fat = struct.pack(f"<{len(self._mini_fat)}I", *self._mini_fat)
        mini_at, minis = self._lay(mini_fat, short=False), -(-len(mini_fat) // _SECTOR)
        directory = self._lay(b"".join(entry.packed() for entry in self._entries), short=False)
        fats = -(-(len(self._fat) + 2) // 128)
        places = range(len(self._fat), len(self._fat) + fats)
        fat = [*self._fat, *[_FAT] * fats]
        table = struct.pack(f"<{len(fat)}I", *fat).ljust(fats * _SECTOR, b"\xff")
        head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
        head += bytes(6) + struct.pack("<IIIIIIIII", 0, fats, directory, 0, _SHORT, mini_at, minis, _END, 0)
        return head + struct.pack("<109I", *places, *[_FREE] * (109 - fats)) + bytes(self._sectors) + table

    def _lay(self, content: bytes, *, short: bool) -> int:
        size, store, fat = (64, self._mini, self._mini_fat) if short else (_SECTOR, self._sectors, self._fat)
        count, start = -(-len(content) // size), len(fat)
        if not count:
            return _END
        fat += [*range(start + 1, start + count), _END]
        store += content.ljust(count * size, b"\0")
        return start


@dataclass
class _Entry:
    name: str
    kind: int
    right: int = _FREE
    child: int = _FREE
    start: int = _END
    size: int = 0

    def packed(self) -> bytes:
        coded = (self.name + "\0").encode("utf-16-le")
        head = coded.ljust(64, b"\0") + struct.pack("<HBB", len(coded), self.kind, 1)
        return (
            head
            + struct.pack("<III", _FREE, self.right, self.child)
            + bytes(36)
            + struct.pack("<IQ", self.start, self.size)
        )
