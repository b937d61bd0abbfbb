"""Hooks: Meta's handshake, and its signature over the raw bytes, which is verified before anything is read.

https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/create-webhook-endpoint
"""

import hashlib
import hmac
import re
from urllib.parse import parse_qsl

from belino.domain.ports import Hook, HookAnswer
from belino.net.redact import Secret, same_secret

SIGNATURE = "x-hub-signature-256"
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_CHALLENGE = re.compile(r"[\w.~-]{1,256}", re.ASCII)
_FIELDS = 20


def may_be_signed(hook: Hook) -> bool:
    """Whether the header has the form of a signature."""
    return bool(_SIGNATURE.fullmatch(hook.headers.get(SIGNATURE, "")))


def is_signed(hook: Hook, secret: Secret | None) -> bool:
    """Whether these very bytes were signed with the app's secret."""
    key = secret.reveal() if secret is not None else ""
    if not key or not may_be_signed(hook):
        return False
    made = "sha256=" + hmac.new(key.encode(), hook.body, hashlib.sha256).hexdigest()
    return same_secret(hook.headers.get(SIGNATURE, ""), made)


def handshake(hook: Hook, token: Secret | None) -> HookAnswer:
    """The answer to Meta's question whether this address expects its calls."""
    try:
        asked = dict(parse_qsl(hook.query, max_num_fields=_FIELDS))
    except ValueError:
        return HookAnswer(status=400)
    challenge = asked.get("hub.challenge", "")
    expected = token.reveal() if token is not None else ""
    if not same_secret(asked.get("hub.verify_token", ""), expected):
        return HookAnswer(status=403)
    if asked.get("hub.mode") != "subscribe" or not _CHALLENGE.fullmatch(challenge):
        return HookAnswer(status=400)
    return HookAnswer(status=200, body=challenge.encode())
