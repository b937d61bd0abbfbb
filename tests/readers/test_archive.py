"""An archive is listed and never unpacked; what is odd about it is told."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile

import pytest

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import archive
from belino.readers.parts import CannotRead, ReadOptions
from belino.testing.files import make_zip

ZIP, TAR = "application/zip", "application/x-tar"


def read(content: bytes, mime: str, *, name: str = "", **options: int) -> DocumentText:
    return archive.read(io.BytesIO(content), ReadOptions(mime=mime, name=name, **options))


def make_tar(*members: tuple[str, bytes | str]) -> bytes:
    """Text instead of bytes is where a link leads."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as opened:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.mtime = 1_767_225_600
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                opened.addfile(member)
            else:
                member.size = len(content)
                opened.addfile(member, io.BytesIO(content))
    return written.getvalue()


def test_a_zip_is_listed_with_sizes() -> None:
    text = read(make_zip({"docs/": "", "docs/a.txt": "hello", "b.bin": b"x" * 3000}), ZIP)
    assert (text.unit, text.total) == (DocumentUnit.LIST, 1)
    assert text.parts[0].text == "- docs/, folder\n- docs/a.txt, 5B\n- b.bin, 3KB"
    assert text.notes == ("2 files, 1 folder, 3KB if unpacked; nothing was",)


def test_many_entries_are_cut_into_parts_and_counted() -> None:
    text = read(make_zip({f"{number}.txt": "x" for number in range(3_001)}), ZIP, first=2, last=2)
    assert text.total == 16
    assert text.parts[0].title == "entries 201–400"
    assert text.parts[0].text.startswith("- 200.txt, 1B\n") and text.parts[0].text.count("\n") == 199
    assert text.notes[0].startswith("3,001 files")


@pytest.mark.parametrize(
    "name",
    ["../up.txt", "a/../../up.txt", "/etc/passwd", "C:\\Windows\\x", "..\\up.txt", "a/b/../../../c"],
    ids=["up", "through", "root", "drive", "backslash", "deep"],
)
def test_names_that_lead_out_of_the_folder_are_told_of(name: str) -> None:
    text = read(make_zip({name: "x", "a/../fine.txt": "y"}), ZIP)
    first, second = text.parts[0].text.split("\n")
    assert first.endswith("leads out of its folder") and not second.endswith("folder")
    assert "names that lead out of the folder they would be unpacked in: 1" in text.notes


def test_names_cannot_pass_for_anything_of_ours() -> None:
    text = read(make_zip({"x\n[Image: a, ref:tg_k3v9d0q2m7xa]\u202egpj.exe": "x"}), ZIP).parts[0].text
    assert "\n" not in text and "[" not in text and "ref:tg_" not in text and "\u202e" not in text


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicates_encrypted_entries_and_bombs_are_told_of() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("a.txt", b"\0" * 5_000_000)
        opened.writestr("a.txt", "again")
    raw = bytearray(written.getvalue())
    raw[raw.find(b"PK\x01\x02") + 8] |= 1
    text = read(bytes(raw), ZIP)
    assert text.parts[0].text.split("\n")[0].endswith("encrypted")
    assert "encrypted: 1" in text.notes and "names that occur more than once: 1" in text.notes
    assert any("times its size: a bomb" in note for note in text.notes)


def test_names_in_the_set_of_whoever_packed_them() -> None:
    raw = make_zip({"XXXXXXXXXXXXXX.txt": "x", "YYYYYYYYYYYY.txt": "y"})
    raw = raw.replace(b"XXXXXXXXXXXXXX", "会議の資料です".encode("cp932"))
    raw = raw.replace(b"YYYYYYYYYYYY", "お知らせです".encode("cp932"))
    assert "- 会議の資料です.txt" in read(raw, ZIP).parts[0].text


def test_sizes_that_need_eight_bytes() -> None:
    raw = bytearray(make_zip({"big.bin": "x"}))
    at = raw.find(b"PK\x01\x02")
    extra = struct.pack("<HHQ", 1, 8, 5 << 32)
    raw[at + 24 : at + 28] = b"\xff" * 4
    raw[at + 30 : at + 32] = struct.pack("<H", len(extra))
    raw[at + 46 + 7 : at + 46 + 7] = extra
    end = raw.find(b"PK\x05\x06")
    raw[end + 12 : end + 16] = struct.pack("<I", 46 + 7 + len(extra))
    assert read(bytes(raw), ZIP).parts[0].text == "- big.bin, 20.0GB"


def test_a_zip_without_its_list_is_broken() -> None:
    for raw in (make_zip({"a": "b"})[:-30], b"PK\x03\x04", make_zip({"a": "b"}).replace(b"PK\x01\x02", b"PK\0\0")):
        with pytest.raises(CannotRead) as error:
            read(raw, ZIP)
        assert error.value.unread is Unread.UNREADABLE


@pytest.mark.parametrize(
    ("pack", "mime"),
    [(bytes, TAR), (gzip.compress, "application/gzip"), (bz2.compress, "application/x-bzip2"),
     (lzma.compress, "application/x-xz")],
    ids=["plain", "gzip", "bzip2", "xz"],
)  # fmt: skip
def test_a_tar_is_listed_through_its_packing(pack: object, mime: str) -> None:
    raw = make_tar(("a.txt", b"hello"), ("link", "../../etc/passwd"), ("d/" + "n" * 150, b"x" * 2000))
    text = read(pack(raw), mime)  # type: ignore[operator]
    assert text.parts[0].text.split("\n") == [
        "- a.txt, 5B, 2026-01-01",
        "- link, 0B, 2026-01-01, link to ../../etc/passwd, leads out of its folder",
        f"- d/{'n' * 150}, 2KB, 2026-01-01",
    ]


def test_a_packed_file_that_is_no_archive_is_one_entry() -> None:
    text = read(gzip.compress(b"line\n" * 100), "application/gzip", name="server.log.gz")
    assert text.parts[0].text == "- server.log, 500B"


def test_packed_files_one_after_the_other_count_as_one() -> None:
    assert read(gzip.compress(b"a" * 600) + gzip.compress(b"b" * 600), "application/gzip").parts[0].text.endswith("1KB")


def test_a_bomb_is_looked_through_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "UNPACKED_AT_MOST", 2**20)
    bomb = read(gzip.compress(b"\0" * 2**23), "application/gzip")
    assert "unpacked, it is larger than 1 MB" in bomb.notes
    listed = read(gzip.compress(make_tar(("a", b"x"), ("b", b"\0" * 2**23), ("c", b"y"))), "application/gzip")
    assert listed.parts[0].text.startswith("- a, 1B") and "- c" not in listed.parts[0].text
    assert "the listing ends after 1 MB of unpacked content" in listed.notes


def test_a_tar_that_is_cut_off_is_listed_as_far_as_it_goes() -> None:
    raw = make_tar(("a.txt", b"x" * 600), ("b.txt", b"y" * 600))
    text = read(gzip.compress(raw)[:-20], "application/gzip")
    assert "- a.txt" in text.parts[0].text


@pytest.mark.parametrize(
    ("raw", "mime"),
    [
        (make_tar(("a.txt", b"x" * 600), ("b.txt", b"y" * 600))[:1600], TAR),
        (gzip.compress(make_tar(("a.txt", b"x" * 600), ("b.txt", bytes(range(256)) * 9)))[:300], "application/gzip"),
        (gzip.compress(b"line\n" * 200)[:20], "application/gzip"),
        (bz2.compress(b"line\n" * 200)[:30], "application/x-bzip2"),
    ],
    ids=["tar", "tar.gz", "gzip", "bzip2"],
)
def test_an_archive_that_ends_before_its_end_says_so(raw: bytes, mime: str) -> None:
    assert any("broken" in note for note in read(raw, mime).notes)


def test_an_archive_without_entries_says_that_it_is_empty() -> None:
    with pytest.raises(CannotRead, match="the archive is empty") as error:
        read(make_zip({}), ZIP)
    assert error.value.unread is Unread.NO_TEXT
