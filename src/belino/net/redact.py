"""Redact secrets: values that cannot be printed, and log lines without them."""

import hashlib
import hmac
import json
import logging
import re
import sys
from types import TracebackType
from typing import NoReturn
from urllib.parse import quote

HIDDEN = "•••"
PLACEHOLDER = "HIDDEN"
"""Replaces a secret where a value is required."""
_MARK = re.compile(r"x(?:ox[a-z]|app)-")

# Shorter ones would redact ordinary words in log lines.
SHORTEST = 6

# Their INFO lines contain every URL, and a URL may hold a token; model SDKs log whole requests at DEBUG.
QUIET_LOGGERS = (
    "aiohttp",
    "anthropic",
    "asyncio",
    "google_genai",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "mcp",
    "openai",
    "uvicorn",
    "websockets",
)

_hidden: set[str] = set()

# Patterns of unregistered secrets: a bot's token in a path, authorisation headers, query and fragment parameters, a
# password before a host, tokens with a known prefix.
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bbot\d{3,}:[A-Za-z0-9_-]{8,}"), f"bot{HIDDEN}"),
    (re.compile(r"(?i)\b(authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic|bot)?\s*)[^\s'\",]{4,}"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"), rf"\1{HIDDEN}"),
    (
        re.compile(
            r"(?i)([?&#](?:[a-z_-]*(?:token|secret|key|signature|credential)|sig|password|code|hm)=)[^\s&#'\"<>]+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://)[^\s/@:]*:[^\s/@]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{8,}"), HIDDEN),
)


def same_secret(said: str, secret: str) -> bool:
    """Whether a secret is correct; hashed first, so that neither time nor length helps guessing."""
    digests = [hashlib.sha256(text.encode(errors="replace")).digest() for text in (said, secret)]
    return bool(secret) and hmac.compare_digest(*digests)


class Secret:
    """A secret named in belino.toml as `env:NAME` or `file:NAME`: it prints as that name, and refuses serialisation."""

    __slots__ = ("_value", "held_in", "name")

    def __init__(self, name: str, value: str, *, held_in: str = "env") -> None:
        self.name = name
        self.held_in = held_in
        self._value = value
        hide(value)

    def reveal(self) -> str:
        """The secret itself; call it where the platform is called and do not store the result."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret('{self}')"

    def __str__(self) -> str:
        return f"{self.held_in}:{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.name, self._value) == (other.name, other._value)

    def __hash__(self) -> int:
        return hash(self.name)

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be serialised")


def hide(secret: str) -> None:
    """Redact this text from every log line from now on, also in its URL, JSON and Python spellings."""
    if len(secret) >= SHORTEST and not secret.endswith(PLACEHOLDER):
        in_url = quote(secret, safe="", errors="surrogateescape")
        _hidden.update((secret, in_url, json.dumps(secret)[1:-1], repr(secret)[1:-1]))


def redact(text: str) -> str:
    """The text without registered secrets and anything that looks like one."""
    for secret in sorted(_hidden, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, HIDDEN)
    for shape, instead in _SHAPES:
        text = shape.sub(instead, text)
    return text


def stand_in(secret: str) -> str:
    """The replacement of a secret where a value is required: it keeps only the prefix of its kind."""
    mark = _MARK.match(secret)
    return f"{mark[0] if mark else ''}{PLACEHOLDER}"


class RedactingFormatter(logging.Formatter):
    """Redacts the finished line: message, arguments, exception text and traceback alike."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def configure_logging(level: str = "info") -> None:
    """Log to stderr at this level, redacted; libraries that print URLs only log warnings."""
    line = logging.StreamHandler()
    line.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [line]
    root.setLevel(level.upper())
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Uncaught exceptions are redacted like all other output."""
    logging.getLogger("belino").critical("belino died of %s", kind.__name__, exc_info=(kind, error, trace))
