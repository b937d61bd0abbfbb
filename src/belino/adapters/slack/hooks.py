"""Hooks: events over HTTP; the signature over the raw bytes is checked before they are parsed."""

import hashlib
import hmac
import json
import re
from datetime import datetime
from urllib.parse import parse_qsl

from belino.domain.ports import Hook
from belino.net.json_fields import Raw, from_json, words
from belino.net.redact import Secret, same_secret

SIGNATURE, TIMESTAMP = "x-slack-signature", "x-slack-request-timestamp"
WINDOW_SECONDS = 300
CERTIFICATE_BYTES = 1_024
_FIELDS = 100
_SIZE = re.compile(r"[0-9]{1,6}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


def may_be_signed(hook: Hook, now: datetime) -> bool:
    """Whether the headers claim a signature of the last five minutes."""
    at = hook.headers.get(TIMESTAMP, "")
    if not (at.isascii() and at.isdecimal() and len(at) < 16):
        return False
    return abs(now.timestamp() - int(at)) <= WINDOW_SECONDS and bool(
        _SIGNATURE.fullmatch(hook.headers.get(SIGNATURE, ""))
    )


def is_signed(hook: Hook, secret: Secret | None, now: datetime) -> bool:
    """Whether Slack signed these bytes within the last five minutes."""
    key, at = secret.reveal() if secret is not None else "", hook.headers.get(TIMESTAMP, "")
    if not key or not may_be_signed(hook, now):
        return False
    made = "v0=" + hmac.new(key.encode(), f"v0:{at}:".encode() + hook.body, hashlib.sha256).hexdigest()
    return same_secret(hook.headers.get(SIGNATURE, ""), made)


def read_hook(hook: Hook) -> Raw | None:
    """The payload: an event as JSON, a command as a form, an interaction as JSON in a form; None if neither."""
    if "json" in hook.headers.get("content-type", "") or hook.body[:1] == b"{":
        return from_json(hook.body) or None
    try:
        fields = dict(parse_qsl(hook.body.decode(), max_num_fields=_FIELDS))
    except ValueError:
        return None
    return (from_json(fields["payload"]) if "payload" in fields else fields) or None


def looks_at_certificate(hook: Hook) -> bool:
    """Whether Slack only checks the server's certificate, as it does from time to time, and expects a 200."""
    return b"ssl_check=1" in (*hook.query.encode().split(b"&"), *hook.body.split(b"&", _FIELDS))


def may_look_at_certificate(hook: Hook) -> bool:
    """Whether an unsigned call may be one that `looks_at_certificate`: a short form, by its headers."""
    size = _SIZE.fullmatch(hook.headers.get("content-length", ""))
    is_short = size is not None and int(size.group()) <= CERTIFICATE_BYTES
    return looks_at_certificate(hook) or (is_short and "form" in hook.headers.get("content-type", ""))


def challenge_of(payload: Raw) -> bytes | None:
    """The answer to the challenge that Slack sends before it delivers events to a URL."""
    if words(payload, "type") != "url_verification":
        return None
    return json.dumps({"challenge": words(payload, "challenge")}).encode()
