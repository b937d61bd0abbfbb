"""Attachments in a frame are measured before they are decoded."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.web.attachments import InFrame, Uploaded, parse_attachments
from belino.web.responses import Code, Refusal

LIMIT = 1_000


def code_of(*items: object, limit: int = LIMIT) -> Code:
    with pytest.raises(Refusal) as refused:
        for attachment in parse_attachments(items, limit=limit):
            assert isinstance(attachment, InFrame)
            attachment.decode()
    return refused.value.code


@given(st.binary(min_size=1, max_size=400))
def test_base64_byte_arrays_and_data_urls_are_the_same_bytes(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    ways: list[object] = [
        text,
        list(content),
        f"data:image/png;base64,{text}",
        f"data:text/plain;charset=x;base64,{text}",
    ]
    for way in ways:
        (attachment,) = parse_attachments([{"mimeType": "image/png", "fileName": "a.png", "content": way}], limit=LIMIT)
        assert isinstance(attachment, InFrame)
        assert attachment.size == len(content)
        assert attachment.decode() == content
        assert (attachment.mime, attachment.file_name) == ("image/png", "a.png")


def test_a_data_url_says_its_own_type() -> None:
    (attachment,) = parse_attachments([{"content": "data:image/GIF;base64,AAAA"}], limit=LIMIT)
    assert isinstance(attachment, InFrame)
    assert attachment.mime == "image/gif"


@pytest.mark.parametrize(
    "content", ["AAA", "A===", "AA==AA==", "AA AA", "AA\nAA", "-_-_", "ＡＡＡＡ", "data:,x", "AAAA%"]
)
def test_bad_base64_is_told_as_such(content: str) -> None:
    assert code_of({"content": content}) is Code.BAD_BASE64


@pytest.mark.parametrize("content", [[256], [-1], [1.5], ["a"], [None], [[1]]])
def test_a_list_that_is_not_bytes_is_told_as_such(content: object) -> None:
    assert code_of({"content": content}) is Code.BAD_BASE64


@pytest.mark.parametrize("content", ["", [], "data:image/png;base64,", "="])
def test_an_empty_attachment_is_told_as_such(content: object) -> None:
    assert code_of({"content": content}) is Code.EMPTY


def test_too_much_is_refused_before_anything_is_decoded() -> None:
    # Not base64 at all: had it been decoded, the answer would say so.
    assert code_of({"content": "!" * 2_000}) is Code.TOO_LARGE
    assert code_of(*({"content": "!" * 700} for _ in range(3))) is Code.TOO_LARGE
    assert code_of({"content": [999] * 1_001}) is Code.TOO_LARGE


def test_the_limit_itself_is_allowed() -> None:
    for size in (LIMIT - 1, LIMIT):
        (attachment,) = parse_attachments([{"content": base64.b64encode(bytes(size)).decode()}], limit=LIMIT)
        assert isinstance(attachment, InFrame)
        assert len(attachment.decode()) == size


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"path": "/etc/passwd"},
        {"file_name": "/etc/passwd"},
        {"upload_id": "../../belino.db"},
        {"upload_id": "a", "content": "AAAA"},
        {"content": "AAAA", "file_name": "x" * 300},
        {"content": {"path": "/etc/passwd"}},
        {"content": "AAAA", "url": "file:///etc/passwd"},
        "x",
        None,
        [],
    ],
)
def test_nothing_a_client_writes_is_a_path(item: object) -> None:
    assert code_of(item) is Code.BAD_REQUEST


def test_a_file_name_may_look_like_a_path_and_stays_a_name() -> None:
    (attachment,) = parse_attachments([{"file_name": "../../etc/passwd", "content": "AAAA"}], limit=LIMIT)
    assert isinstance(attachment, InFrame)
    assert attachment.decode() == b"\0\0\0"


def test_an_upload_is_named_by_its_id() -> None:
    assert parse_attachments([{"uploadId": "abc"}], limit=LIMIT) == (Uploaded(upload_id="abc"),)


def test_a_client_says_that_a_sound_is_a_voice_message_and_how_long_it_is() -> None:
    spoken = {"upload_id": "abc", "voice": True, "duration": 2.5}
    typed = {"content": "AAAA", "mime_type": "audio/ogg", "voice": True}
    uploaded, framed = parse_attachments([spoken, typed], limit=LIMIT)
    assert uploaded == Uploaded(upload_id="abc", voice=True, duration=2.5)
    assert (framed.voice, framed.duration) == (True, None)


@pytest.mark.parametrize(
    "said", [{"voice": 1}, {"voice": "yes"}, {"duration": -1}, {"duration": True}, {"duration": "3"}, {"duration": 1e9}]
)
def test_a_voice_message_is_said_in_plain_values(said: dict[str, object]) -> None:
    assert code_of({"upload_id": "abc", **said}) is Code.BAD_REQUEST


def test_the_same_upload_twice_in_one_message_is_refused() -> None:
    assert code_of({"upload_id": "abc"}, {"upload_id": "abc"}) is Code.BAD_REQUEST
