"""Stable pseudonyms: secrets, ids and names in a recording, each replaced consistently.

A pseudonym has the shape of the original: a letter stands for a letter, a digit for a digit, and its length is the
same, so that offsets into texts, prefixes of ids and lengths of numbers stay valid. It is made with a random key that
is stored nowhere. A secret has no pseudonym: one fixed placeholder stands for all of them.
"""

import hmac
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from belino.net.redact import redact, stand_in

SHORTEST_ID = 5
SHORTEST_NAME = 2

# Values of these keys are words of the platform's own vocabulary, and its parser depends on them.
_STRUCTURAL = re.compile(
    r"(?i)(?:.*_)?(?:type|subtype|kind|state|status|mode|mime|mimetype|filetype|language|language_code|locale|op|t|"
    r"event|record|error|method|outcome|platform|sent|created|received|timestamp|date|part|send_as|markup|chat_type|sha256|"
    r"reaction|emoji|call|tool|tool_name|model|as|form|format|style|provider|skill|window|languages)\Z"
)
_ID_KEYS = re.compile(
    r"(?i)(?:.*_)?(?:id|ids|user|users|channel|channels|team|teams|bot|bots|role|roles|parent|guild|inviter|creator|item|nonce|token|hash|"
    r"key)\Z"
    r"|.*(?:Id|ID)\Z"
)
_NAME_KEYS = re.compile(
    r"(?i)(?:.*_)?(?:name|names|nick|title|titles|username|email|phone|phone_number|signature|topic|purpose|about|bio|"
    r"vcard|address|domain|normalized|skype|city|company)\Z"
)
_FILE_KEYS = re.compile(r"(?i)(?:file_?name|name_of_file)\Z")
_QUANTITIES = re.compile(
    r"(?i)(?:.*_)?(?:size|bytes|width|height|w|h|duration|seconds|length|offset|limit|count|date|time|ts|at|flags|"
    r"created|updated|edited|expires|timestamp|number|position|status|s|op|type|kind|accent_color|color|bitfield|permissions)\Z"
)

# Keys that belino itself writes about a recording.
_OWN_KEYS = re.compile(
    r"(?:at|conversation|account|trace|reason|url|refs?|messages|thread|reply_to|failed|refused|content-.*|retry-after|"
    r"parse_mode|direct|(?:.*_)?path)\Z"
)

# Words that belino itself writes into prompts, and roles that identify no person.
_NO_PERSON = frozenset(
    [
        "you",
        "user",
        "users",
        "somebody",
        "someone",
        "unknown",
        "agent",
        "belino",
        "default",
        "hidden",
        "elsewhere",
        "main",
        "image",
        "video",
        "audio",
        "voice",
        "document",
        "sticker",
        "message",
        "messages",
        "media",
        "ref",
        "text",
        "time",
        "from",
        "channel",
        "thread",
        "reply",
        "the",
        "and",
        "for",
        "bot",
        "none",
        "null",
        "true",
        "false",
        "utc",
    ]
)

_EMAIL = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}")
_PHONE = re.compile(r"(?<![\w+])(?:\+|00)\d[\d ()/-]{6,}\d")
_LONG_NUMBER = re.compile(r"(?<![\w.])-?\d{9,}(?!\d)(?![\w.]\d)")
_OPAQUE = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9_-]{20,}(?![\w-])", re.ASCII)
_STAMP = re.compile(r"\d{9,11}\.\d{1,6}\Z")
_URL = re.compile(r"\b(https?|wss?)://([^\s/?#<>\"'|]+)([^\s?#<>\"'|]*)(\?[^\s#<>\"'|]*)?(#[^\s<>\"'|]*)?")
_WORD = re.compile(r"\w+")
_GENERIC_LABELS = frozenset(
    ["www", "api", "cdn", "files", "files-origin", "media", "static", "hooks", "gateway", "images", "edge", "upload"]
)


class Secrets:
    """Known secrets, each with the fixed placeholder that replaces it."""

    def __init__(self, values: Iterable[str]) -> None:
        known = {form: stand_in(secret) for secret in values if secret for form in _forms(secret)}
        self._instead = dict(sorted(known.items(), key=lambda one: -len(one[0])))

    def joined(self, other: "Secrets") -> "Secrets":
        """These secrets and others."""
        both = Secrets(())
        both._instead = dict(sorted({**self._instead, **other._instead}.items(), key=lambda one: -len(one[0])))
        return both

    def hidden(self, text: str) -> str:
        """A text without secrets, known ones and those that look like one."""
        for secret, instead in self._instead.items():
            if secret in text:
                text = text.replace(secret, instead)
        return redact(text)

    def scrubbed(self, value: Any) -> Any:
        """A JSON value without secrets."""
        match value:
            case Mapping():
                return {self.hidden(str(key)): self.scrubbed(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.scrubbed(inner) for inner in value]
            case str():
                return self.hidden(value)
            case _:
                return value


class Pseudonyms:
    """The pseudonyms of one cassette. Teach it every value first (`learn`), then write (`value`, `text`)."""

    def __init__(
        self,
        key: bytes,
        *,
        secrets: Secrets | None = None,
        places: Mapping[str, str] | None = None,
    ) -> None:
        """`places` are addresses of self-hosted servers, each with its replacement."""
        self._hmac_key = key
        self._secrets = secrets or Secrets(())
        self._places = dict(sorted((places or {}).items(), key=lambda one: -len(one[0])))
        self._ids: set[str] = set()
        self._names: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def learn_id(self, value: object) -> None:
        """Learn an id of a person, place, message or file."""
        text = str(value)
        if isinstance(value, bool) or _STAMP.match(text) or text.casefold() in _NO_PERSON:
            return
        if len(text.lstrip("-")) >= SHORTEST_ID and "://" not in text and not any(c.isspace() for c in text):
            self._ids.add(text)
            self._pattern = None

    def learn_name(self, name: str) -> None:
        """Learn the name of a person or place: each word of it is replaced."""
        for word in _WORD.findall(name):
            if len(word) >= SHORTEST_NAME and word.casefold() not in _NO_PERSON and not word.isdecimal():
                self._names.add(word.casefold())
                self._pattern = None

    def learn_file(self, name: str) -> None:
        """Learn a file's name. It is replaced as a whole, without its extension: its words are often common ones."""
        stem, dot, _ = name.rpartition(".")
        if len(stem if dot else name) >= SHORTEST_NAME:
            self._ids.add(name)
            self._pattern = None

    def learn(self, value: Any, key: str = "") -> None:
        """Learn every id and name in a JSON value, by its keys."""
        match value:
            case Mapping():
                for own, inner in value.items():
                    if isinstance(own, str) and own.lstrip("-").isdecimal():
                        self.learn_id(own)
                    self.learn(inner, own)
            case list():
                for inner in value:
                    self.learn(inner, key)
            case str() if value and not _STRUCTURAL.match(key):
                self._learn_text(value, key)
            case int() if not isinstance(value, bool) and _ID_KEYS.match(key) and abs(value) >= 10**SHORTEST_ID:
                self.learn_id(value)

    def _learn_text(self, value: str, key: str) -> None:
        if _FILE_KEYS.match(key) or (_NAME_KEYS.match(key) and re.search(r"\.\w{1,5}\Z", value)):
            self.learn_file(value)
        elif _NAME_KEYS.match(key) and len(value) <= 200:
            self.learn_name(value)
        elif _ID_KEYS.match(key) and any(c.isdecimal() for c in value) and len(value) <= 400:
            self.learn_id(value)

    def value(self, value: Any, key: str = "", *, fill: bool = False) -> Any:
        """A JSON value with pseudonyms; with `fill`, every word written by a person is replaced."""
        match value:
            case Mapping():
                return {self._named(own): self.value(inner, own, fill=fill) for own, inner in value.items()}
            case list():
                return [self.value(inner, key, fill=fill) for inner in value]
            case str():
                return self._string(value, key, fill=fill)
            case int() if not isinstance(value, bool):
                known = str(value) in self._ids or (abs(value) >= 10**9 and not _QUANTITIES.match(key))
                return int(self.disguised(str(value))) if known else value
            case _:
                return value

    def _named(self, key: str) -> str:
        """A key, which may itself be an id."""
        return self.text(key) if any(c.isdecimal() for c in key) else key

    def _string(self, value: str, key: str, *, fill: bool) -> str:
        if _STRUCTURAL.match(key):
            return self._secrets.hidden(value)
        if fill and not (_ID_KEYS.match(key) or _NAME_KEYS.match(key) or _OWN_KEYS.match(key) or _is_address(value)):
            return self._fillable().sub(self._filled, self._secrets.hidden(value))
        return self.text(value)

    def _fillable(self) -> re.Pattern[str]:
        """A pattern of every word and every known value."""
        return re.compile(rf"{self._known_pattern().pattern}|\w{{{SHORTEST_NAME},}}")

    def _filled(self, found: re.Match[str]) -> str:
        return found[0] if found[0].isdecimal() and len(found[0]) < SHORTEST_ID else self._replaced(found)

    def text(self, text: str) -> str:
        """A text with pseudonyms; its length stays the same except for secrets and URLs."""
        text = self._secrets.hidden(text)
        for own, instead in self._places.items():
            text = text.replace(own, instead)
        text = _URL.sub(self._address, text)
        text = _EMAIL.sub(lambda found: self._email(found[0]), text)
        for pattern in (_PHONE, _OPAQUE):
            text = pattern.sub(lambda found: self.disguised(found[0]), text)
        text = _LONG_NUMBER.sub(lambda found: self._unless_known(found[0]), text)
        return self._known_pattern().sub(self._replaced, text)

    def _unless_known(self, number: str) -> str:
        """Replace a number that may be an id, unless it is known and so replaced with the other known ids."""
        return number if number in self._ids or number.lstrip("-") in self._ids else self.disguised(number)

    def _replaced(self, found: re.Match[str]) -> str:
        if found[0] in self._ids and "." in found[0]:
            stem, dot, extension = found[0].rpartition(".")
            return f"{self.disguised(stem)}{dot}{extension}"
        return self.disguised(found[0])

    def _address(self, found: re.Match[str]) -> str:
        """A URL without its query, which may be a signature, and with the label of a workspace replaced."""
        scheme, host, path = found.groups()[:3]
        labels = host.rpartition("@")[2].split(".")
        if len(labels) > 2 and labels[0] not in _GENERIC_LABELS and not labels[0].isdecimal():
            labels[0] = self.disguised(labels[0])
        return f"{scheme}://{'.'.join(labels)}{path}"

    def _email(self, email: str) -> str:
        name, _, domain = email.partition("@")
        host, dot, ending = domain.rpartition(".")
        return f"{self.disguised(name)}@{self.disguised(host)}{dot}{ending}"

    def _known_pattern(self) -> re.Pattern[str]:
        if self._pattern is None:
            parts = [_alternatives(sorted(self._ids, key=len, reverse=True), ignoring_case=False)]
            parts.append(_alternatives(sorted(self._names, key=len, reverse=True), ignoring_case=True))
            self._pattern = re.compile("|".join(part for part in parts if part) or r"(?!)")
        return self._pattern

    def disguised(self, text: str) -> str:
        """The pseudonym of exactly this text, in any case."""
        stream = self._stream(text.casefold())
        first = True
        made: list[str] = []
        for char in text:
            if char.isdecimal() and char.isascii():
                # No number becomes longer or much larger: platforms refuse ids that do not fit into 64 bits.
                made.append(str(next(stream) % (10 if not first else max(int(char), 1)) + first))
                first = False
            elif char.isalpha() and ord(char) < 0x10000:
                letter = chr(ord("a") + next(stream) % 26)
                made.append(letter.upper() if char.isupper() else letter)
            else:
                made.append(char)
        # Prefixes such as the U of a user's id show the kind of id.
        if text[:1].isupper() and text.isascii() and any(c.isdecimal() for c in text) and text == text.upper():
            made[0] = text[0]
        return "".join(made)

    def _stream(self, text: str) -> Iterator[int]:
        count = 0
        normal = unicodedata.normalize("NFC", text).encode(errors="surrogatepass")
        while True:
            yield from hmac.digest(self._hmac_key, count.to_bytes(4, "big") + normal, "sha256")
            count += 1


def _alternatives(known: list[str], *, ignoring_case: bool) -> str:
    """A pattern of known values as whole words; scripts without spaces have no word boundaries."""
    if not known:
        return ""
    edged = "|".join(re.escape(each) for each in known if each.isascii())
    loose = "|".join(re.escape(each) for each in known if not each.isascii())
    parts = [rf"(?<![A-Za-z0-9])(?:{edged})(?![A-Za-z0-9])" if edged else "", f"(?:{loose})" if loose else ""]
    both = "|".join(part for part in parts if part)
    return f"(?i:{both})" if ignoring_case else both


def _forms(secret: str) -> set[str]:
    """A secret in the forms it has in texts, URLs and JSON."""
    escaped = secret.replace("\\", "\\\\").replace('"', '\\"')
    return {secret, quote(secret, safe=""), quote(secret), escaped, unquote(secret)}


def _is_address(value: str) -> bool:
    return value.startswith(("https://", "http://")) and bool(urlsplit(value).netloc)
