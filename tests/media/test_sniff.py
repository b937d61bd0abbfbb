"""What a file is comes from its bytes; what is said of it only helps where they leave room, and lies are recorded."""

import io
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.media import MediaKind
from belino.media.sniff import Group, group_of, sniff
from belino.media.sniff.hints import UNKNOWN
from belino.testing import make_pdf, make_png
from belino.testing.files import make_mp3, make_mp4, make_office, make_ole, make_webm, make_zip, sample_files

SAMPLES = sample_files()
DOCX = SAMPLES["ours.docx"][0]
ZIP = "application/zip"
NAMED_ONLY = {"readme.md", "kanji.csv"}
"""Types that no byte tells."""


def test_a_text_that_begins_with_the_name_of_a_box_is_a_text() -> None:
    assert sniff(b"The wide sea is deep.\n", name="sea.txt").mime == "text/plain"
    assert sniff(b"\0\0\0\x08wide\0\0\x10\0mdat" + bytes(90), name="old.mov").mime == "video/quicktime"


@pytest.mark.parametrize("name", SAMPLES)
def test_every_type_is_told_whole_and_from_its_first_four_kilobytes(name: str) -> None:
    mime, content = SAMPLES[name]
    for head in (content, content[:4096]):
        assert sniff(head, name=name, whole=len(head) == len(content)).mime == mime


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - NAMED_ONLY))
def test_no_name_and_no_declaration_is_needed(name: str) -> None:
    mime, content = SAMPLES[name]
    assert sniff(content, whole=True).mime == mime


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - NAMED_ONLY))
@pytest.mark.parametrize("lie", ["image/png", "application/x-msdownload", "audio/mpeg"])
def test_bytes_that_tell_are_believed_whatever_is_said_and_the_lie_is_kept(name: str, lie: str) -> None:
    mime, content = SAMPLES[name]
    found = sniff(content, name="file", declared=lie, whole=True)
    assert found.mime == mime
    # One of the lies is another name for what Windows programs are.
    true = mime == lie or (lie, name) == ("application/x-msdownload", "setup.exe")
    assert (found.lies == "") == true


@pytest.mark.parametrize(
    ("content", "name", "declared", "mime", "lies"),
    [
        (make_png(1, 1), "a.jpg", None, "image/png", "named .jpg, is image/png"),
        (make_zip({"a": "a"}), "a.png", "image/png", ZIP, "declared image/png, is application/zip"),
        (make_zip({"a": "a"}), "notes.txt", None, ZIP, "named .txt, is application/zip"),
        (make_office("docx"), "a.bin", "application/octet-stream", DOCX, ""),
        (make_office("docx"), "a.docx", "application/zip", DOCX, ""),
        (b"\0\1\2\3" * 200, "a.txt", "text/plain", UNKNOWN, "declared text/plain, is application/octet-stream"),
        (b"<html><body>log in</body></html>", "a.png", "image/png", "text/html", "declared image/png, is text/html"),
        (b"<svg onload=alert(1)>", "a.png", "image/png", "image/svg+xml", "declared image/png, is image/svg+xml"),
        (b"a,b\n1,2\n", "a.csv", "text/plain", "text/csv", ""),
        (make_png(1, 1), None, "IMAGE/PNG ; charset=binary", "image/png", ""),
        (make_png(1, 1), None, 'image/png; x="' + "y" * 500, "image/png", ""),
        (make_png(1, 1), None, "x" * 500, "image/png", ""),
        (SAMPLES["voice.ogg"][1], "a.oga", "Audio/OGG ;  Codecs=OPUS", "audio/ogg", ""),
    ],
)
def test_lies_are_recorded_and_loose_words_are_not_lies(
    content: bytes, name: str | None, declared: str | None, mime: str, lies: str
) -> None:
    found = sniff(content, name=name, declared=declared, whole=True)
    assert (found.mime, found.lies) == (mime, lies)


EXE = "application/vnd.microsoft.portable-executable"


@pytest.mark.parametrize(
    ("sample", "name", "declared", "lies"),
    [
        ("program", "file", "text/plain", "declared text/plain, is application/x-elf"),
        ("files.tar", "notes.txt", None, "named .txt, is application/x-tar"),
        ("setup.exe", "file", "application/zip", f"declared application/zip, is {EXE}"),
        ("files.rar", "files.zip", None, "named .zip, is application/vnd.rar"),
        ("report.pdf", "file", "application/xml", "declared application/xml, is application/pdf"),
        ("program", "feed.xml", None, "named .xml, is application/x-elf"),
        ("old.avi", "clip.mp4", None, "named .mp4, is video/x-msvideo"),
        ("setup.exe", "file", "application/x-ole-storage", f"declared application/x-ole-storage, is {EXE}"),
        ("drawing.png", "photo.jxl", None, "named .jxl, is image/png"),
        ("drawing.png", "show.ppsx", None, "named .ppsx, is image/png"),
        ("setup.exe", "disk.dmg", None, f"named .dmg, is {EXE}"),
        ("drawing.png", "setup.exe", "image/png", "named .exe, is image/png"),
    ],
)
def test_a_word_for_another_kind_of_file_is_a_lie(sample: str, name: str, declared: str | None, lies: str) -> None:
    assert sniff(SAMPLES[sample][1], name=name, declared=declared, whole=True).lies == lies


@pytest.mark.parametrize(
    ("content", "name", "declared"),
    [
        (b"a: 1\nb: 2\n", "a.yaml", "application/x-yaml"),
        (b"a: 1\nb: 2\n", "a.yml", "text/yaml"),
        (b"#!/bin/sh\necho on\n", "a.sh", "application/x-sh"),
        (b"BEGIN:VCARD\nVERSION:3.0\n", "a.vcf", "text/x-vcard"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nHi\n", "a.srt", "text/srt"),
        (SAMPLES["type.ttf"][1], "a.ttf", "font/sfnt"),
        (SAMPLES["program"][1], "a.so", "application/x-sharedlib"),
        (SAMPLES["old.avi"][1], "a.avi", "video/vnd.avi"),
        (SAMPLES["files.tar.gz"][1], "logo.svgz", "application/gzip"),
        (b"#EXTM3U\n", "list.m3u", "audio/x-mpegurl"),
        (b'{"a": 1}', "a.yml", None),
        (b"MZ" + bytes(70), "old.exe", None),
        (SAMPLES["sticker.webm"][1], "clip.mkv", None),
        (b"one.mp3\ntwo.mp3\n", "list.m3u", None),
        (b"@echo off\r\n", "run.bat", "application/x-bat"),
        (SAMPLES["old.doc"][1], "thumbs.db", None),
        (make_zip({"a": "a"}), "letter.pages", "application/zip"),
        (make_ole("doc"), "letter.doc", "application/x-ole-storage"),
        (b"<rss><channel></channel></rss>", "feed.rss", "text/xml"),
    ],
)
def test_another_name_of_the_same_type_is_no_lie(content: bytes, name: str, declared: str | None) -> None:
    assert sniff(content, name=name, declared=declared, whole=True).lies == ""


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("disk.dmg", "application/x-apple-diskimage"),
        ("disc.iso", "application/x-iso9660-image"),
        ("smime.p7m", "application/pkcs7-mime"),
        ("me.p12", "application/x-pkcs12"),
    ],
)
def test_a_name_counts_for_types_that_no_first_byte_tells(name: str, mime: str) -> None:
    found = sniff(SAMPLES["noise.bin"][1], name=name)
    assert (found.mime, found.exact, found.lies) == (mime, False, "")


@pytest.mark.parametrize(
    ("mime", "group"),
    [
        ("image/jpeg", "image"), ("image/png", "image"), ("image/gif", "image"), ("image/webp", "image"),
        ("image/svg+xml", "image"), ("IMAGE/BMP; x=y", "image"), ("audio/mpeg", "audio"), ("audio/x-wav", "audio"),
        ("audio/ogg; codecs=opus", "audio"), ("audio/flac", "audio"), ("audio/x-m4a", "audio"), ("Audio/AAC", "audio"),
        ("video/mp4", "video"), ("video/webm", "video"), ("video/quicktime", "video"), ("application/pdf", "file"),
        (DOCX, "file"), (ZIP, "file"), ("", "file"), ("nonsense", "file"), ("image", "file"),
    ],
)  # fmt: skip
def test_a_type_belongs_to_one_of_four_groups(mime: str, group: Group) -> None:
    assert group_of(mime) == group


@pytest.mark.parametrize(
    ("name", "kind", "group"),
    [
        ("photo.jpg", MediaKind.IMAGE, "image"),
        ("voice.ogg", MediaKind.AUDIO, "audio"),
        ("clip.mov", MediaKind.VIDEO, "video"),
        ("dance.tgs", MediaKind.STICKER, "file"),
        ("report.pdf", MediaKind.DOCUMENT, "file"),
    ],
)
def test_the_kind_follows_from_the_bytes(name: str, kind: MediaKind, group: Group) -> None:
    found = sniff(SAMPLES[name][1], declared="application/octet-stream", whole=True)
    assert (found.kind, found.group) == (kind, group)


def test_an_office_file_that_was_streamed_into_its_zip_is_told() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", "<Relationships/>" * 100)
        archive.writestr("docProps/app.xml", "<Properties/>" * 100)
        archive.writestr("xl/workbook.xml", "<workbook/>")
    assert sniff(pipe.getvalue()).mime == SAMPLES["ours.xlsx"][0]


def test_an_office_file_inside_a_plain_zip_does_not_make_it_one() -> None:
    assert sniff(make_zip({"inner.docx": make_office("docx")}, packed=False), whole=True).mime == ZIP
    assert sniff(make_zip({"notes/word/readme.txt": "x"}), name="a.docx", whole=True).mime == ZIP


def test_an_office_zip_that_keeps_its_type_further_on_is_taken_at_its_name() -> None:
    content = make_zip({"docProps/thumbnail.jpeg": bytes(range(256)) * 40, "word/document.xml": "x"}, packed=False)
    found = sniff(content[:4096], name="report.docx")
    assert (found.mime, found.exact) == (DOCX, False)
    assert sniff(content[:4096], name="report.zip").mime == ZIP


def test_an_ole_file_whose_directory_is_far_off_is_told_by_its_first_stream_or_its_name() -> None:
    far = bytearray(make_ole("doc")[:512])
    far[48:52] = (9_000).to_bytes(4, "little")
    assert sniff(bytes(far) + b"\xec\xa5\xc1\0" + bytes(508)).mime == "application/msword"
    named = sniff(bytes(far) + bytes(512), name="mail.msg")
    assert (named.mime, named.exact) == ("application/vnd.ms-outlook", False)
    assert sniff(bytes(far) + bytes(512)).mime == "application/x-ole-storage"


def test_a_sound_whose_tracks_come_last_is_taken_at_its_word() -> None:
    head = make_mp4(b"mp42", tracks=(b"soun",), last=True)[:4096]
    assert sniff(head).mime == "video/mp4"
    for said in ({"name": "memo.m4a"}, {"declared": "audio/mp4"}, {"declared": "audio/x-m4a"}):
        found = sniff(head, name=said.get("name"), declared=said.get("declared"))
        assert (found.mime, found.exact, found.lies) == ("audio/mp4", False, "")
    assert sniff(make_mp4(b"isom"), name="memo.m4a").mime == "video/mp4"


def test_a_voice_clip_that_calls_itself_a_video_is_audio() -> None:
    found = sniff(make_webm(codecs=(b"A_OPUS",)), name="audio_message.webm", declared="video/webm")
    assert (found.mime, found.group, found.lies) == ("audio/webm", "audio", "")


def test_a_tag_larger_than_the_head_is_still_music() -> None:
    assert sniff(make_mp3(tag=bytes(10_000))[:4096]).mime == "audio/mpeg"
    assert sniff(b"\xff\xfb\x90" + b"no frames follow here" * 40).mime != "audio/mpeg"


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "text", ["Hello, this is a note about Thursday.\n", "Привет, это заметка о четверге и кофе.\n"]
)
def test_text_is_text_in_every_unicode_spelling(charset: str, text: str) -> None:
    found = sniff(text.encode(charset), whole=True)
    assert found.mime == "text/plain"
    assert found.charset.partition("-")[0] in {"utf", "us"}


def test_text_cut_inside_a_character_is_still_text() -> None:
    cut = ("語" * 2000).encode()[:4096]
    assert sniff(cut).mime == "text/plain"
    assert sniff(cut).charset == "utf-8"


@pytest.mark.parametrize(
    ("text", "mime"),
    [
        ("﻿<!-- a --><?xml version='1.0'?><!DOCTYPE svg PUBLIC 'x' 'y'><svg/>", "image/svg+xml"),
        ("<?xml version='1.0'?><s:svg xmlns:s='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        ("<!DOCTYPE data [ <!ENTITY a 'b'> ]><data>&a;</data>", "application/xml"),
        ("<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>", "application/xhtml+xml"),
        ("<ScRiPt>alert(1)</ScRiPt>", "text/html"),
        ("<3 you all", "text/plain"),
        ("<not closed", "text/plain"),
        ("{not json}", "text/plain"),
        ('{"a": [1, 2', "text/plain"),
        ("[1, 2, 3]", "application/json"),
        ("[a list of things]", "text/plain"),
        ("MAC addresses of the printers", "text/plain"),
        ("BM is short for bone marrow", "text/plain"),
        ("From: here to there: a story\nOnce upon a time\n", "text/plain"),
        ("PK is how it starts", "text/plain"),
        ("FWS and CWS are two of the schools", "text/plain"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n", "application/pgp-keys"),
        ("%PDF-1.4 is how a PDF begins", "application/pdf"),
        ("\ufeff%PDF-1.4 after a mark that has no place there", "application/pdf"),
        ("As they say: %PDF-1.4 is how a PDF begins", "text/plain"),
        ("P1\nThe server is down\nP2\nThe coffee is out\n", "text/plain"),
        ("P2 2 of us would like to come along", "text/plain"),
        ("P2\n# a small one\n2 2\n255\n0 64\n128 255\n", "image/x-portable-graymap"),
        ("P7\nWIDTH 2\nHEIGHT 2\nDEPTH 1\nMAXVAL 255\nENDHDR\n", "image/x-portable-arbitrarymap"),
        ("Who needs it may cry out aloud: HELP will come", "text/plain"),
        ("<!--ftyp--><script>alert(1)</script>", "text/html"),
        ("Oh, moov over, they said, and nobody moved", "text/plain"),
        ("<?xml version='1.0'?><article xmlns='http://docbook.org/ns/docbook'/>", "application/xml"),
    ],
)
def test_text_is_told_by_how_it_is_built(text: str, mime: str) -> None:
    assert sniff(text.encode(), whole=True).mime == mime


def test_json_that_is_cut_is_still_json() -> None:
    content = b'{"messages": [' + b'{"id": 1, "text": "a \\" b", "more": {}}, ' * 400
    for size in range(100, 200):
        assert sniff(content[:size]).mime == "application/json", content[:size]


def test_a_page_that_begins_with_a_templates_words_is_a_page() -> None:
    text = b"{% extends base %}\n<h1>hello</h1>"
    assert sniff(text, name="page.html", whole=True).mime == "text/html"
    assert sniff(text, declared="text/html", whole=True).mime == "text/html"
    assert sniff(b"just words, no tags: 1 < 2", name="page.html", whole=True).mime == "text/plain"


def test_a_suffix_that_others_bear_too_is_no_promise() -> None:
    assert sniff(b"-----BEGIN RSA PRIVATE KEY-----\n", name="server.key", whole=True).lies == ""


def test_a_zip_without_a_mark_is_taken_at_its_name() -> None:
    found = sniff(make_zip({"Index/Document.iwa": "x"}), name="letter.pages", whole=True)
    assert (found.mime, found.exact) == ("application/vnd.apple.pages", False)


def test_a_word_counts_only_for_types_that_no_byte_tells() -> None:
    noise = SAMPLES["noise.bin"][1]
    assert sniff(noise, declared="application/x-lathe-program").mime == "application/x-lathe-program"
    assert sniff(noise, declared="application/pdf").mime == UNKNOWN
    assert sniff(noise, declared="image/jpeg").mime == UNKNOWN
    assert sniff(noise, declared="text/html").mime == UNKNOWN
    assert sniff(noise, declared="application/xhtml+xml").mime == UNKNOWN


def test_nothing_is_unknown_and_no_lie() -> None:
    found = sniff(b"", name="a.png", declared="image/png", whole=True)
    assert (found.mime, found.exact, found.lies) == (UNKNOWN, False, "")


def test_a_mostly_printable_pdf_is_a_pdf() -> None:
    found = sniff(make_pdf("only letters here " * 50), name="a.txt", declared="text/plain", whole=True)
    assert (found.mime, found.lies) == ("application/pdf", "declared text/plain, is application/pdf")


@given(st.binary(max_size=600), st.text(max_size=40) | st.none(), st.text(max_size=60) | st.none(), st.booleans())
def test_any_bytes_any_name_and_any_type_are_taken(
    content: bytes, name: str | None, declared: str | None, whole: bool
) -> None:
    found = sniff(content, name=name, declared=declared, whole=whole)
    assert found.mime.count("/") == 1
    assert sniff(content, name=name, declared=declared, whole=whole) == found


@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 5_000), st.integers(0, 255), st.integers(0, 5_000))
def test_a_flipped_byte_or_a_cut_never_raises(name: str, at: int, value: int, cut: int) -> None:
    content = bytearray(SAMPLES[name][1])
    content[at % len(content)] = value
    assert sniff(bytes(content[: cut % len(content)]), name=name).mime.count("/") == 1


@pytest.mark.parametrize(
    "piece",
    [
        b"<", b"<!--", b"<?", b"<a ", b"[", b'{"a":', b'"', b"\\", b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"OggS",
        b"\x1a\x45\xdf\xa3", b"\0\0\0\x08moov", b"\0\0\0\x08trak", b"A: b\n", b"\xff\xfb\x90\0", b"a,b,c\n", b"\0a",
        b" ", b"\xff\xf1\x50\x80\0\xff\xfc", b"ID3\4\0\0\0\0\0\0", b"%PDF-", b"\n%PDF-1.", b"-->", b"<!DOCTYPE ",
    ],
)  # fmt: skip
def test_work_grows_with_the_size_and_not_faster(piece: bytes) -> None:
    """Counted in steps of the interpreter, so that a busy machine cannot fail it."""
    steps = {size: _steps((piece * size)[: size * 8]) for size in (1024, 8 * 1024)}
    assert steps[8 * 1024] <= 12 * steps[1024] + 20_000


def _steps(content: bytes) -> int:
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> object:
        nonlocal count
        count += 1
        return counted

    sys.settrace(counted)  # type: ignore[arg-type]
    try:
        sniff(content)
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("charset", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["会議は木曜日です。", "Кто приносит кофе? Я.", "Bring the 3 reports.\n", "자료를 가져오세요."]
)
def test_wide_characters_without_a_mark_are_text(charset: str, text: str) -> None:
    assert sniff(text.encode(charset), name="note.txt", whole=True).mime == "text/plain"
