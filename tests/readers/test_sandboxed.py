"""Behind the walls nothing can be loaded any more: every reader has what it needs before."""

import lzma
from pathlib import Path

import pytest

from belino.media.documents import Documents
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sniff import sniff
from belino.testing.documents import document_files
from media.local_files import local_blob, open_local
from readers.office97 import early_word, make_slides97, make_word97, words
from readers.outlook import make_msg
from readers.test_archive import make_tar
from readers.test_charset import WRITTEN

pytestmark = pytest.mark.slow


def files() -> dict[str, tuple[bytes, str]]:
    """Bytes by file name, and words that must be found in them."""
    made = {name: (content, "") for name, content in document_files(paragraphs=12).items()}
    written = {f"{codec}.txt": (texts[0].encode(codec), texts[0]) for codec, texts in WRITTEN.items()}
    mails = {
        f"{charset}.eml": (f"From: a\nTo: b\nSubject: x\nContent-Type: text/plain; charset={charset}\n\n".encode()
                           + text.encode(charset), text)
        for charset, text in (("iso-2022-jp", "会議は木曜日です。"), ("iso-8859-15", "3 €"), ("mac-roman", "naïve"))
    }  # fmt: skip
    others = {
        "named.eml": (
            b"From: =?utf-8?q?J=C3=B6rg?= <j@example.org>\nTo: b\nSubject: x\n\nhello",
            "Jörg <j@example.org>",
        ),
        "lunch.msg": (make_msg(subject="Lunch", sender=("Ann", "a@b.c"), to="d", body="At noon"), "At noon"),
        "old.doc": (make_word97([([("Wörter\r", b"")], 0, b"")]), "Wörter"),
        "older.doc": (early_word("Поезд опаздывает на три часа", "cp1251"), "опаздывает"),
        "old.ppt": (make_slides97((words("Wörter"), "", False)), "Wörter"),
        "files.tar.xz": (lzma.compress(make_tar(("inside.txt", b"x"))), "inside.txt"),
        "asian.rtf": (rb"{\rtf1\ansi{\fonttbl{\f0\fcharset129 A;}}\f0 \'bc\'ad\'bf\'ef}", "서울"),
    }
    return {**made, **written, **mails, **others}


async def test_every_format_and_character_set_is_read_in_the_sandbox(tmp_path: Path) -> None:
    async with Sandbox() as sandbox:
        documents = Documents(sandbox, tmp_path / "scratch", open_local)
        for name, (content, words) in files().items():
            path = tmp_path / "blob"
            path.write_bytes(content)
            mime = sniff(content, name=name, whole=True).mime
            blob = local_blob(path, mime=mime)
            text = await documents.read(blob, mime=mime, name=name)
            assert text.unread is None, f"{name}: {text}"
            assert any(part.text for part in text.parts), name
            assert words in "\n".join(part.text for part in text.parts), name
