"""No secret reaches a log line, by whatever way it came there."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from belino.net.redact import HIDDEN, RedactingFormatter, Secret, configure_logging, hide, redact

CANARY = "canary-7f3e-registered"
LOOKS = [
    "https://api.telegram.test/file/bot123456789:AAF-canary_looks_like_a_token/photo.jpg",
    "GET /ws?token=canary_looks_like_it&x=1",
    "http://127.0.0.1:8787/#token=canary_looks_like_it",
    "Authorization: Bearer canary_looks_like_it",
    "{'Authorization': 'Bearer canary_looks_like_it'}",
    "authorization=Basic canary_looks_like_it",
    "sent Bearer canary_looks_like_it to it",
    "https://user:canary_looks_like_it@host/",
    "https://cdn.test/a.png?ex=1&hm=canary_looks_like_it",
    "https://x.test/?access_token=canary_looks_like_it",
    "https://x.test/?X-Amz-Signature=1&api_key=canary_looks_like_it",
    "https://x.test/?X-Amz-Credential=canary_looks_like_it&X-Amz-Signature=canary_looks_like_it",
    "xoxb-canary-looks-like-it",
    "xapp-1-canary-looks-like-it",
]


@pytest.fixture(autouse=True)
def _nothing_hidden_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others hide what is part of what is looked for here."""
    monkeypatch.setattr("belino.net.redact._hidden", set())


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    written = io.StringIO()
    line = logging.StreamHandler(written)
    line.setFormatter(RedactingFormatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("belino.tests.redact")
    logger.addHandler(line)
    logger.propagate = False
    yield logger, written
    logger.removeHandler(line)


@pytest.mark.parametrize("text", LOOKS)
def test_what_looks_like_a_secret_is_blacked_out(text: str) -> None:
    assert "canary" not in redact(text)
    assert HIDDEN in redact(text)


@pytest.mark.parametrize(
    "text", ["message 42 of web:default:main was answered", "tg_k3v9d0q2m7xa held, 245 bytes", "key: 7, code 200"]
)
def test_ordinary_lines_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


def test_a_secret_is_known_in_every_spelling() -> None:
    secret = 'canary: it\'s "said" \\ and/or w\xf6rtlich'
    hide(secret)
    for written in (quote(secret, safe=""), json.dumps(secret), repr({"token": secret}), repr(ValueError(secret))):
        assert "canary" not in redact(written)


def test_a_secret_of_the_configuration_is_known_at_once(log: tuple[logging.Logger, io.StringIO]) -> None:
    secret = Secret("PLATFORM_TOKEN", CANARY)
    logger, written = log
    logger.warning("failed with %s", secret.reveal())
    logger.warning("failed with %s and %r", secret, {"secret": secret})
    assert CANARY not in written.getvalue()
    assert "env:PLATFORM_TOKEN" in written.getvalue()


def test_a_traceback_is_redacted_with_its_causes(log: tuple[logging.Logger, io.StringIO]) -> None:
    hide(CANARY)
    logger, written = log
    try:
        try:
            raise OSError(f"cannot reach https://x.test/{CANARY}")
        except OSError as error:
            raise RuntimeError(LOOKS[0]) from error
    except RuntimeError:
        logger.exception("the adapter died", stack_info=True)
    assert "Traceback" in written.getvalue()
    assert "canary" not in written.getvalue()


def test_the_longest_secret_is_hidden_whole() -> None:
    hide("canary-short")
    hide("canary-short-and-long")
    assert redact("canary-short-and-long") == HIDDEN


def test_short_words_are_not_hidden() -> None:
    hide("abc")
    assert redact("abc") == "abc"


def test_set_up_leaves_one_redacting_line_and_quiet_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        configure_logging("info")
        logging.getLogger("belino.x").info("see %s", LOOKS[0])
        logging.getLogger("aiohttp.client").info("GET https://somewhere")
        logging.getLogger("uvicorn.access").info("GET /somewhere")
        assert len(root.handlers) == 1
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    err = capsys.readouterr().err
    assert "belino.x: see" in err
    assert "canary" not in err
    assert "somewhere" not in err


def test_the_last_words_of_a_dying_process_are_redacted_too() -> None:
    code = (
        "import warnings; from belino.net.redact import configure_logging, hide\n"
        f"configure_logging('info'); hide({CANARY!r}); secret = {CANARY!r}\n"
        "warnings.warn(f'deprecated {secret}')\n"
        "raise RuntimeError(f'cannot log in with {secret}')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "RuntimeError: cannot log in with" in done.stderr
    assert "deprecated" in done.stderr
    assert f"with {CANARY}" not in done.stderr
    assert f"deprecated {CANARY}" not in done.stderr
