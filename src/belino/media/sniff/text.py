"""Text: its encoding and its kind."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from belino.media.sniff.hints import TEXT_SUFFIXES, Found, Hints
from belino.readers.charset import EBCDIC, EBCDIC_MARKUP

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be"),
         (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))  # fmt: skip
# Control characters in text: white space, colours and overstriking of old printers.
_CONTROLS = re.compile("[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_LEGACY_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROLS_AT_MOST = 0.02
_LIVING = re.compile(
    "[\t\n\r -\x7e\xa0-\u024f\u0370-\u06ff\u0900-\u0e5b\u1e00-\u1fff\u2010-\u2060\u20ac\u2100-\u22ff\u2460-\u2606"
    "\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff65\ufe0f\U0001f000-\U0001faff]*+"
)
_STOPS = re.compile("[ \n\u3001\u3002\uff0c]")
_SURE_WITHOUT_CONTROLS = 64
"""So many bytes without a control character are no coincidence."""

# Linear time: no pattern here backtracks.
_BEFORE_ROOT = re.compile(r"\s*(?:<!--(?:[^-]|-(?!->))*+-->|<\?(?:[^?]|\?(?!>))*+\?>)")
_DOCTYPE = re.compile(r"\s*<!doctype\s+([^\s>\[]{1,80})", re.IGNORECASE)
_ROOT = re.compile(r"\s*<([a-zA-Z_][\w.:-]{0,80})(?=[\s/>])")
_HTML_PAGES = frozenset({
    "html", "head", "body", "title", "script", "style", "iframe", "meta", "link", "base", "frameset", "noscript",
    "object", "embed",
})  # fmt: skip
_HTML_ROOTS = _HTML_PAGES | {
    "h1", "h2", "h3", "h4", "h5", "h6", "div", "font", "table", "tr", "td", "a", "b", "i", "u", "em", "strong", "code",
    "pre", "br", "hr", "p", "center", "form", "input", "button", "label", "select", "textarea", "img", "picture",
    "figure", "audio", "video", "canvas", "span", "ul", "ol", "li", "dl", "section", "article", "aside", "main", "nav",
    "header", "footer", "details", "summary", "dialog", "blockquote", "template", "marquee",
}  # fmt: skip
_CARRIES_HTML = frozenset({"text/markdown", "text/javascript"})
"""Other text types that may begin with an HTML element, though not with a page."""
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]{0,20}[\s>]")
_PIECES_AT_MOST = 50

_MAIL_FIRST = re.compile(
    r"(?:return-path|received|from|to|delivered-to|x-[a-z-]{1,40}|message-id|date|subject|mime-version|dkim-signature"
    r"|arc-[a-z-]{1,40}|content-type|reply-to|authentication-results):",
    re.IGNORECASE,
)
_MAIL_HEADER = re.compile(r"^([A-Za-z][A-Za-z0-9-]{1,60}):", re.MULTILINE)
_MAIL_KNOWN = frozenset({"from", "to", "subject", "date", "message-id", "received", "mime-version", "return-path",
                         "content-type"})  # fmt: skip
_MAILBOX = re.compile(r"\r?\n\r?\nFrom [^\r\n]{1,200}\d{4}[^\r\n]{0,20}\r?\n[A-Za-z-]{1,60}:")
_JSON = re.compile(
    r'[ \t\r\n]*+(?:([{}\[\],:])|("(?:[^"\\\x00-\x1f]|\\.)*+")'
    r"|(-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,20})?|true|false|null|NaN|-?Infinity))"
)
_JSON_MARKS = 2_000
_JSON_DEEP = 500
# A Rust attribute begins with the same two characters.
_SHEBANG = re.compile(r"#! ?/[^\n]{1,200}")
_SHEBANGS = (("python", "text/x-python"), ("perl", "text/x-perl"), ("ruby", "text/x-ruby"), ("php", "text/x-php"),
             ("node", "text/javascript"), ("deno", "text/x-typescript"), ("lua", "text/x-lua"), ("awk", "text/x-awk"),
             ("tclsh", "text/x-tcl"), ("wish", "text/x-tcl"), ("pwsh", "text/x-powershell"))  # fmt: skip
_STARTS = (
    ("BEGIN:VCALENDAR", "text/calendar"),
    ("begin:vcalendar", "text/calendar"),
    ("BEGIN:VCARD", "text/vcard"),
    ("begin:vcard", "text/vcard"),
    ("WEBVTT", "text/vtt"),
    ("#EXTM3U", "application/vnd.apple.mpegurl"),
    ("{\\rtf", "application/rtf"),
    ("%!PS", "application/postscript"),
    ("/* XPM */", "image/x-xpixmap"),
    ("GIMP Palette", "text/x-gimp-gpl"),
    ("-----BEGIN PGP PUBLIC", "application/pgp-keys"),
    ("-----BEGIN PGP PRIVATE", "application/pgp-keys"),
    ("-----BEGIN PGP SIGNATURE", "application/pgp-signature"),
    ("-----BEGIN PGP MESSAGE", "application/pgp-encrypted"),
    ("-----BEGIN PGP SIGNED", "text/plain"),
    ("-----BEGIN CERTIFICATE-----", "application/x-x509-ca-cert"),
    ("-----BEGIN ", "application/x-pem-file"),
    ("diff --git ", "text/x-diff"),
    ("[Script Info]", "text/x-ssa"),
)
# Types that need more than their first letters.
_SHAPES = (
    (re.compile(r"From [0-9a-f]{40} Mon Sep 17 00:00:00 2001\r?\n"), "text/x-diff"),
    (re.compile(r"--- [^\n]{1,300}\n\+\+\+ [^\n]{1,300}\n@@ "), "text/x-diff"),
    (re.compile(r"\d{1,5}\s{0,3}\n\d\d:\d\d:\d\d,\d{3} --> \d\d:\d\d:\d\d,\d{3}"), "application/x-subrip"),
    (re.compile(r"(?:\s{0,4}999\r?\n[^\n]{0,200}\n){0,20}+\s{0,4}0\r?\n\s{0,4}SECTION\r?\n"), "image/vnd.dxf"),
    (re.compile(r"(?:/\*[^*]{0,300}\*/\s{0,9})?#define \w{1,99}_width \d{1,5}\s{1,9}#define \w{1,99}_height \d"),
     "image/x-xbitmap"),
)  # fmt: skip
_PEM_SUFFIXES = frozenset({"pem", "crt", "cer", "key", "csr", "crl"})
"""Such files may begin with a comment."""
_PEM_WITHIN = re.compile(r"^-----BEGIN ([A-Z0-9 ]{3,40})-----\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Bytes that decode as text."""

    text: str
    charset: str
    sure: bool


def read(head: bytes, hints: Hints, *, whole: bool) -> Written | None:
    """The decoded text, if the bytes are text."""
    for bom, charset in _BOMS:
        if head.startswith(bom):
            text = head[len(bom) :].decode(charset, "ignore").lstrip("\ufeff")
            return Written(text=text, charset=charset, sure=True) if _plain(text) else None
    if EBCDIC_MARKUP.match(head):
        return Written(text=head.decode(EBCDIC).replace("\x85", "\n"), charset=EBCDIC, sure=True)
    return _utf8(head, whole=whole) or _utf32(head) or _utf16(head) or _utf16_signs(head) or _legacy(head, hints)


def text_type(written: Written, hints: Hints, *, whole: bool) -> Found:
    """The kind of text; where its content does not show it, by name or declaration."""
    told = _php(written.text, hints) or _markup(written.text, hints) or _marked(written.text, hints)
    if told:
        return told, True
    if _is_json(written.text, whole=whole):
        finer = hints.named or hints.declared
        return (finer, False) if finer.endswith(("+json", "x-ndjson")) else ("application/json", True)
    if (
        whole
        and hints.suggests("application/json")
        and (value := _JSON.fullmatch(written.text.rstrip()))
        and not value[1]
    ):
        return "application/json", False
    if not hints.suggests("text/x-diff") and _is_mail(written.text, hints):
        return ("application/mbox" if _is_mailbox(written.text, hints) else "message/rfc822"), True
    if hints.suggests("text/html") and _TAG.search(written.text):
        return "text/html", False  # a page that begins with template or server directives
    if written.text.startswith("solid ") and "facet" in written.text[:1024]:
        return "model/stl", True
    hinted = _hinted(hints)
    if hinted:
        return hinted, hinted == "text/plain" and written.sure
    return ("text/csv", False) if _is_table(written.text) else ("text/plain", written.sure)


def _plain(text: str) -> bool:
    return bool(text) and "\0" not in text and len(_CONTROLS.findall(text)) <= max(1, len(text) * _CONTROLS_AT_MOST)


def _utf8(head: bytes, *, whole: bool) -> Written | None:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        cut = not whole and error.reason == "unexpected end of data" and error.start >= len(head) - 3
        if not cut:
            return None
        text = head[: error.start].decode()
    return Written(text=text, charset="us-ascii" if text.isascii() else "utf-8", sure=True) if _plain(text) else None


def _utf16(head: bytes) -> Written | None:
    """Without a byte order mark: one byte of most pairs is zero (or, in other scripts, nearly constant)."""
    pairs = head[: len(head) & ~1][:8192]
    if len(pairs) < 8:
        return None
    for charset, high in (("utf-16-le", pairs[1::2]), ("utf-16-be", pairs[0::2])):
        spaces = pairs.decode(charset, "replace")
        common = max(high.count(byte) for byte in {0, *high[:64]}) / len(high)
        readable = sum(character.isalnum() or character.isspace() for character in spaces) / len(spaces)
        if common >= 0.6 and readable >= 0.6 and "\ufffd" not in spaces and _plain(spaces) and b"\0" in pairs:
            return Written(text=head[: len(head) & ~1].decode(charset, "ignore"), charset=charset, sure=True)
    return None


def _utf32(head: bytes) -> Written | None:
    """Without a byte order mark: one of every four bytes is zero, and the characters are of living scripts."""
    whole = head[: len(head) & ~3]
    for charset, zero in (("utf-32-le", 3), ("utf-32-be", 0)):
        if len(whole) >= 8 and not any(whole[zero::4]):
            text = whole.decode(charset, "replace")
            if _LIVING.fullmatch(text) and _plain(text):
                return Written(text=text, charset=charset, sure=True)
    return None


def _utf16_signs(head: bytes) -> Written | None:
    """Large scripts without a byte order mark: only living scripts, with a space or a full stop among them."""
    pairs = head[: len(head) & ~1][:8192]
    for charset in ("utf-16-le", "utf-16-be"):
        text = pairs.decode(charset, "replace")
        if len(text) >= 4 and _STOPS.search(text) and _LIVING.fullmatch(text) and _plain(text):
            return Written(text=head[: len(head) & ~1].decode(charset, "ignore"), charset=charset, sure=True)
    return None


def _legacy(head: bytes, hints: Hints) -> Written | None:
    """A legacy encoding: only its letters, white space and printable ASCII."""
    sample = head[:8192]
    if not sample or _LEGACY_CONTROLS.search(sample):
        return None
    hinted = hints.suffix in TEXT_SUFFIXES or hints.declared.startswith("text/")
    printable = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in sample) / len(sample)
    if len(sample) >= _SURE_WITHOUT_CONTROLS or hinted or (printable >= 0.7 and len(sample) >= 16):
        return Written(text=head.decode("latin-1"), charset="unknown-8bit", sure=False)
    return None


def _php(text: str, hints: Hints) -> str | None:
    """Checked before markup: `<?php` looks like an XML declaration."""
    own = text[:200].lstrip().startswith(("<?php", "<?="))
    return "text/x-php" if own or ("<?php" in text and hints.suggests("text/x-php")) else None


def _markup(text: str, hints: Hints) -> str | None:
    """HTML, SVG and XML by their root, after declarations, comments and white space."""
    at, declared = 0, text[:64].lstrip().startswith("<?xml")
    for _ in range(_PIECES_AT_MOST):
        passed = _BEFORE_ROOT.match(text, at)
        if not passed:
            break
        at = passed.end()
    if doctype := _DOCTYPE.match(text, at):
        return _by_doctype(doctype.group(1).lower(), hints, declared=declared)
    root = _ROOT.match(text, at)
    name = root.group(1).lower().rpartition(":")[2] if root else ""
    if name == "svg":
        return "image/svg+xml"
    if name == "html" and hints.named != "text/html" and (declared or hints.suggests("application/xhtml+xml")):
        return "application/xhtml+xml"
    if root and not declared and name not in _HTML_PAGES and hints.suggests(*_CARRIES_HTML):
        return None
    if name in _HTML_ROOTS and (name == "html" or not declared):
        return "text/html"
    if root and not declared and hints.suggests("text/html"):
        return "text/html"  # custom elements
    if root and not declared and hints.named == "text/plain" and "xmlns" not in text[root.end() : root.end() + 400]:
        return None  # tags in a text
    known = declared or (root and (_closes(text, root) or hints.suggests("application/xml")))
    return _other_xml(hints, rootless=not root) if known else None


def _by_doctype(name: str, hints: Hints, *, declared: bool) -> str:
    if name == "html":
        return "application/xhtml+xml" if declared and hints.suggests("application/xhtml+xml") else "text/html"
    return "image/svg+xml" if name == "svg" else _other_xml(hints)


def _other_xml(hints: Hints, *, rootless: bool = False) -> str:
    """XML of the declared type; for self-evident types only if the root is out of reach."""
    finer = hints.named or hints.declared
    foreign = finer in ("image/svg+xml", "application/xhtml+xml") and not rootless
    return finer if finer.endswith("+xml") and not foreign else "application/xml"


def _closes(text: str, root: re.Match[str]) -> bool:
    """Whether it looks like markup, not like a text that happens to begin with a bracket."""
    return "xmlns" in text[root.end() : root.end() + 400] or f"</{root.group(1)}>" in text or text.count("</") >= 2


def _marked(text: str, hints: Hints) -> str | None:
    begun = text[:200].lstrip()
    for start, mime in _STARTS:
        if begun.startswith(start):
            return mime
    for shape, mime in _SHAPES:
        if shape.match(text):
            return mime
    if line := _SHEBANG.match(begun):
        return next((mime for program, mime in _SHEBANGS if program in line[0]), "text/x-shellscript")
    if hints.suffix in _PEM_SUFFIXES and (found := _PEM_WITHIN.search(text)):
        return "application/x-x509-ca-cert" if found[1] == "CERTIFICATE" else "application/x-pem-file"
    return None


def _is_json(text: str, *, whole: bool) -> bool:
    """An object or a list, well formed as far as available (and up to two thousand tokens)."""
    if text[:4096].lstrip()[:1] not in ("{", "["):
        return False
    opened, before, count = "", "", 0
    for count, (mark, at) in enumerate(_json_marks(text)):
        if not _may_follow(before, mark, opened[-1:]):
            return False
        if mark in "{[":
            opened += mark
        elif mark in "}]":
            opened = opened[:-1]
            if not opened:
                rest = text[at:].lstrip()
                return not rest or (rest[0] in "{[" and "\n" in text[at : at + 2])
        before = mark
        if count >= _JSON_MARKS or len(opened) > _JSON_DEEP:
            return True
    return not whole and count >= 1


def _json_marks(text: str) -> Iterator[tuple[str, int]]:
    """Brackets, colons and commas as they are, `"` for a string, `0` for any other value, `?` for invalid JSON."""
    at = 0
    while found := _JSON.match(text, at):
        at = found.end()
        yield found.group(1) or ('"' if found.group(2) else "0"), at
    # A value cut off by the end of the head may be a prefix of one; anything else unreadable is not JSON.
    if text[at : at + 400].lstrip()[:1] not in ("", '"', "t", "f", "n", "-", *"0123456789"):
        yield "?", at


def _may_follow(before: str, mark: str, container: str) -> bool:
    match mark:
        case '"' | "0" | "{" | "[":
            return before in ("", "[", ",", ":") or (before == "{" and mark == '"')
        case ":":
            return before == '"' and container == "{"
        case ",":
            return before in ('"', "0", "}", "]")
        case "}":
            return container == "{" and before in ('"', "0", "{", "}", "]")
        case "]":
            return container == "[" and before in ('"', "0", "[", "}", "]")
        case _:
            return False


def _is_mail(text: str, hints: Hints) -> bool:
    hinted = hints.suggests("message/rfc822", "application/mbox")
    first = (_MAIL_HEADER if hinted else _MAIL_FIRST).match(text)
    if not first and not text.startswith("From "):
        return False
    block = text[:16_384].replace("\r\n", "\n").partition("\n\n")[0]
    names = {found.group(1).lower() for found in _MAIL_HEADER.finditer(block)}
    return len(names & _MAIL_KNOWN) >= (2 if hinted else 3)


def _is_mailbox(text: str, hints: Hints) -> bool:
    """Whether mail is in a mailbox: a line of its own precedes each message."""
    return text.startswith("From ") and (hints.suffix == "mbox" or _MAILBOX.search(text, 5) is not None)


def _hinted(hints: Hints) -> str:
    for mime in (TEXT_SUFFIXES.get(hints.suffix, ""), hints.declared):
        if mime in _UNTOLD or (mime.startswith("text/") and mime not in _TOLD):
            return mime
    return ""


_TOLD = frozenset({"text/html", "text/calendar", "text/vcard", "text/vtt"})
"""Kinds of text that are recognised by content: a claim is not enough for them."""
_UNTOLD = frozenset(
    {
        "application/yaml",
        "application/toml",
        "application/sql",
        "application/x-subrip",
        "application/x-ndjson",
        "application/vnd.apple.mpegurl",
    }
)


def _is_table(text: str) -> bool:
    """At least three lines with the same number of commas, tabs or semicolons, and at least two in each."""
    lines = [line for line in text[:4096].splitlines()[:20] if line.strip()]
    lines = lines[:-1] if len(text) > 4096 or not text.endswith(("\n", "\r")) else lines
    if len(lines) < 3:
        return False
    for mark in (",", ";"):
        counts = {re.sub(r'"[^"]*"', "", line).count(mark) for line in lines}
        if len(counts) == 1 and counts.pop() >= 2:
            return True
    return False
