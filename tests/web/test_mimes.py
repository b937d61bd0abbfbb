"""Only a short list of types is ever told to a browser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.web.mimes import INLINE, UNKNOWN, normal_mime, served_type


@pytest.mark.parametrize(
    ("declared", "normal"),
    [
        ("image/PNG", "image/png"),
        (" image/png ; charset=utf-8", "image/png"),
        ("image/jpg", "image/jpeg"),
        ("audio/x-m4a", "audio/mp4"),
        ("audio/ogg; codecs=opus", "audio/ogg"),
        ("application/x-weird+thing", "application/x-weird+thing"),
        ("", UNKNOWN),
        ("image", UNKNOWN),
        ("image/", UNKNOWN),
        ("image/png\r\nX-Evil: 1", UNKNOWN),
        ("../../etc/passwd", UNKNOWN),
        ("a/" + "b" * 500, UNKNOWN),
        ("image/пнг", UNKNOWN),
    ],
)
def test_a_declared_type_is_normalised_and_nonsense_is_unknown_bytes(declared: str, normal: str) -> None:
    assert normal_mime(declared) == normal


@pytest.mark.parametrize(
    "mime",
    [
        "text/html",
        "image/svg+xml",
        "application/pdf",
        "application/xml",
        "text/xml",
        "application/xhtml+xml",
        "text/javascript",
        "text/css",
        "multipart/x-mixed-replace",
        "application/json",
        "text/vtt",
        "image/x-icon",
    ],
)
def test_what_could_run_or_style_anything_is_an_anonymous_download(mime: str) -> None:
    assert served_type(mime) == (UNKNOWN, False)


@given(st.text(max_size=60))
def test_whatever_is_declared_one_of_the_listed_types_is_served(declared: str) -> None:
    mime, inline = served_type(declared)
    assert mime.partition(";")[0] in {*INLINE, UNKNOWN}
    assert inline == (mime != UNKNOWN)


def test_text_is_served_with_its_charset_so_that_no_browser_guesses() -> None:
    assert served_type("text/plain; charset=utf-7") == ("text/plain; charset=utf-8", True)
