"""A message is its headers, its words and the list of what came with it."""

import io
from email.message import EmailMessage

import pytest

from belino.domain.media import DocumentText
from belino.readers import mail
from belino.readers.parts import HIDDEN_NOTE, ReadOptions


def read(content: bytes) -> DocumentText:
    return mail.read(io.BytesIO(content), ReadOptions(mime="message/rfc822"))


def written(body: str = "See you at noon.") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Zoë Ünal <zoe@example.org>"
    message["To"] = "bob@example.org, Ann <ann@example.org>"
    message["Subject"] = "Mittagessen — früh"
    message["Date"] = "Thu, 1 Jan 2026 10:00:00 +0000"
    message["X-Spam"] = "no"
    message.set_content(body)
    return message


def test_headers_body_and_attachments() -> None:
    message = written()
    message.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="Über [x].pdf")
    text = read(message.as_bytes())
    assert text.parts[0].text == (
        "From: Zoë Ünal <zoe@example.org>\nTo: bob@example.org, Ann <ann@example.org>\n"
        "Date: Thu, 01 Jan 2026 10:00:00 +0000\nSubject: Mittagessen — früh\n\nSee you at noon.\n\n"
        "Attachments:\n- Über ［x］.pdf, application/pdf, 8B"
    )
    assert text.parts[0].title == "Mittagessen — früh"
    assert text.notes == ("attachments are listed, not read",)


def test_plain_text_goes_before_the_page_and_a_page_alone_is_read() -> None:
    message = written()
    message.add_alternative("<p>See you <b>later</b></p>", subtype="html")
    assert "later" not in read(message.as_bytes()).parts[0].text
    page = EmailMessage()
    page["Subject"] = "x"
    page.set_content("<p>See <b>you</b></p><p style='display:none'>obey</p>", subtype="html")
    text = read(page.as_bytes())
    assert text.parts[0].text == "Subject: x\n\nSee you\n\n(hidden text: obey)"
    assert text.notes == (HIDDEN_NOTE,)


def test_a_message_inside_a_message_follows_it() -> None:
    outer = written("Look at this.")
    outer.add_attachment(written("The inner words."))
    text = read(outer.as_bytes())
    assert text.total == 2
    assert "Look at this." in text.parts[0].text and "The inner words." in text.parts[1].text


def test_a_mailbox_is_all_its_messages() -> None:
    one = b"From ann Thu Jan  1 10:00:00 2026\nFrom: ann@example.org\nSubject: one\n\nfirst\n"
    two = b"\nFrom bob Thu Jan  1 11:00:00 2026\nFrom: bob@example.org\nSubject: two\n\nsecond\n"
    text = read(one + two)
    assert [part.title for part in text.parts] == ["one", "two"]


@pytest.mark.parametrize(
    ("charset", "codec", "body"),
    [("iso-2022-jp", "iso2022_jp", "会議は木曜日です。"), ("koi8-r", "koi8_r", "Поезд опаздывает."),
     ("gb2312", "gb18030", "火车晚点了。"), ("x-unheard-of", "cp1251", "Поезд опаздывает на сорок минут.")],
    ids=["japanese", "russian", "chinese", "lie"],
)  # fmt: skip
def test_bodies_in_every_set(charset: str, codec: str, body: str) -> None:
    head = f"Subject: x\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    assert body in read(head.encode() + body.encode(codec)).parts[0].text


def test_subjects_that_nobody_encoded_are_read_too() -> None:
    assert "Subject: Größe und Länge" in read("Subject: Größe und Länge\n\nx".encode("cp1252")).parts[0].text
    assert "Subject: Größe" in read(b"Subject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\n\nx").parts[0].text


def test_hostile_headers_take_no_time_and_nesting_ends() -> None:
    assert read(b"To: " + b"(" * 200_000 + b"\n\nbody").parts[0].text.endswith("body")
    deep = b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (level, level) for level in range(300))
    assert read(b"Subject: deep\n" + deep + b"Content-Type: text/plain\n\nwords\n").total == 1


@pytest.mark.parametrize("charset", ["a\0b", "rot13", "punycode", '"'], ids=["null", "rot13", "punycode", "quote"])
def test_a_set_that_is_none_does_not_keep_the_words_away(charset: str) -> None:
    head = f"Subject: x\nContent-Type: text/plain; charset={charset}\n\n".encode()
    assert "Größe" in read(head + "Größe und Länge".encode("cp1252")).parts[0].text


def test_a_message_of_parts_that_has_none_is_read_as_words() -> None:
    text = read(b"Subject: x\nContent-Type: multipart/mixed; charset=a\0b\n\nthe words")
    assert text.parts[0].text == "Subject: x\n\nthe words"
