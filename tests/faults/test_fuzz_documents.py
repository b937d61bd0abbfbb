"""Seeded fuzz of the readers of documents: whatever the bytes and whatever they are called, there is one typed end.

The same code runs long with BELINO_SOAK=1. A failure names its round: `Random(f"{SEED}:{round}")` makes it again.
"""

import io
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.media.documents import Documents
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sniff import sniff
from belino.readers.parts import CannotRead, ReadOptions
from belino.readers.read import READS
from belino.testing.documents import document_files
from faults.test_fuzz import mutated, open_descriptors, rounds, starts, within
from media.local_files import local_blob, open_local
from readers.office97 import (
    VANISH,
    early_word,
    hidden_columns,
    make_book97,
    make_slides97,
    make_word97,
    number_cell,
    words,
    words_cell,
)

# What is read by Python alone can be tried here; the rest only where a crash takes nothing along.
HERE = {
    "archive": ("application/zip", "application/x-tar", "application/gzip", "application/x-bzip2", "application/x-xz"),
    "book": ("application/epub+zip",),
    "mail": ("message/rfc822",),
    "outlook": ("application/vnd.ms-outlook",),
    "html": ("text/html",),
    "plain": ("text/plain", "text/markdown", "application/json", "application/xml", "text/csv",
              "text/tab-separated-values"),
    "rtf": ("application/rtf",),
    "legacy_slides": ("application/vnd.ms-powerpoint",),
    "legacy_word": ("application/msword",),
}  # fmt: skip
BY_TYPE = {mime: module for module, mimes in HERE.items() for mime in mimes}
PIECES = (
    b"<div hidden>", b"<table><tr><td>", b"</", b"<!--", b"&#x1F600;", b"<style>.a{", b"\\u-99999?", b"{\\*",
    b"\\bin9999999 ", b"\\'",
    b"\n\n", b"\0\0", b"\xff\xfe", b"\x1b$B", b"=?utf-8?b?", b"boundary=", b'"', b",", b";", b"PK\x01\x02",
    b"\xfd7zXZ\0", b"{", b"[" * 500, b"<a>" * 200, b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"\xf0\x9f\x98\x80", b"\x81\x40",
)  # fmt: skip
OLD = {
    "old.doc": make_word97([([("Words ", b""), ("hidden", VANISH), ("\r", b"")], style, b"") for style in range(5)]),
    "older.doc": early_word("Words of\ra\x07b\x07\x07", "cp1252"),
    "old.xls": make_book97(words_cell(0, 0, "a") + number_cell(0, 1, 1, 0.5) + hidden_columns(0, 1), "0%"),
    "old.ppt": make_slides97(*[(words(f"Slide {at}", at), "notes", at == 2) for at in range(6)], outline=words("x")),
}


@lru_cache(maxsize=1)
def documents() -> tuple[tuple[str, str, bytes], ...]:
    """Type, name and bytes of what every round begins with."""
    made = [*document_files(paragraphs=12).items(), *starts(), *OLD.items()]
    found = [(sniff(content, name=name, whole=True).mime, name, content) for name, content in made]
    return tuple((mime, name, content) for mime, name, content in found if mime in READS)


def disturbed(rng: Random, content: bytes) -> bytes:
    """Accidents that any bytes have, and pieces that mean something to one reader or another."""
    changed = mutated(rng, content)
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(len(changed) + 1)
        changed = changed[:at] + rng.choice(PIECES) * rng.choice((1, 1, 1, 50)) + changed[at:]
    return changed


def odd_options(rng: Random, mime: str, name: str) -> ReadOptions:
    first = rng.choice((1, 1, 1, 2, 7, 10**9))
    last = rng.choice((None, None, first, first + 3))
    return ReadOptions(mime=mime, name=name, first=first, last=last, max_chars=rng.choice((0, 10, 5_000, 2_000_000)))


def check(text: DocumentText, options: ReadOptions, what: str) -> None:
    assert text.unit in DocumentUnit and text.total >= 0, what
    assert text.unread is None or text.unread in Unread, what
    assert sum(len(part.text) for part in text.parts) <= options.max_chars, what
    numbers = [part.number for part in text.parts]
    assert numbers == sorted(set(numbers)) and all(1 <= number <= text.total for number in numbers), what
    assert all(options.first <= number <= (options.last or number) for number in numbers), what
    assert all(len(part.title) <= 200 and (part.title + part.text).encode() is not None for part in text.parts), what
    assert len(text.notes) <= 20 and all(note and "\n" not in note for note in text.notes), what
    if text.unread is not None:
        assert not any(part.text for part in text.parts), what


def test_every_reader_ends_in_text_or_a_reason_whatever_happened_to_the_file() -> None:
    begin = [each for each in documents() if each[0] in BY_TYPE]
    for number, rng in rounds(600, 60_000):
        mime, name, content = rng.choice(begin)
        # Now and then a file of another type, as if the sniffer had been fooled.
        mime = rng.choice(tuple(BY_TYPE)) if rng.random() < 0.1 else mime
        options = odd_options(rng, mime, name)
        with within(20, f"round {number} ({mime})"):
            try:
                reader = import_module(f"belino.readers.{BY_TYPE[mime]}")
                text = reader.read(io.BytesIO(disturbed(rng, content)), options)
            except CannotRead as error:
                assert error.unread in Unread and error.reason, f"round {number}"
                continue
        check(text, options, f"round {number} ({mime}): {text.reason!r} {text.notes!r}")


@pytest.mark.slow
async def test_every_document_has_exactly_one_end_in_the_sandbox(tmp_path: Path) -> None:
    scratch, path = tmp_path / "scratch", tmp_path / "blob"
    begin = documents()
    async with Sandbox() as sandbox:
        reader = Documents(sandbox, scratch, open_local)
        await look(reader, path, b"words", ReadOptions(mime="text/plain"))  # the parent starts now
        held = open_descriptors()
        for number, rng in rounds(250, 6_000):
            mime, name, content = rng.choice(begin)
            options = odd_options(rng, mime, name)
            text = await look(reader, path, disturbed(rng, content), options)
            check(text, options, f"round {number} ({mime}): {text.reason!r}")
            assert not list(scratch.iterdir()), f"round {number}"
        assert open_descriptors() == held
        assert await sandbox.examine() in ("full", "limited")


async def look(reader: Documents, path: Path, content: bytes, options: ReadOptions) -> DocumentText:
    path.write_bytes(content)
    blob = local_blob(path, mime=options.mime)
    parts = (options.first, options.last if options.last is not None else 10**9)
    return await reader.read(blob, mime=options.mime, name=options.name, parts=parts, max_chars=options.max_chars)
