"""Hooks: Meta's signature of its calls, and its handshake, the question whether an address expects them.

https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/create-webhook-endpoint
"""

import re
from urllib.parse import parse_qsl

from belino.domain.ports import Hook, HookAnswer
from belino.net.redact import Secret, same_secret
from belino.net.rest import HookSignature

SIGNATURE = HookSignature(header="x-hub-signature-256", prefix="sha256=")
_CHALLENGE = re.compile(r"[\w.~-]{1,256}", re.ASCII)
_FIELDS = 20


def handshake(hook: Hook, token: Secret | None) -> HookAnswer:
    """The answer to Meta's question."""
    try:
        asked = dict(parse_qsl(hook.query, max_num_fields=_FIELDS))
    except ValueError:
        return HookAnswer(status=400)
    challenge = asked.get("hub.challenge", "")
    if not same_secret(asked.get("hub.verify_token", ""), token.reveal() if token is not None else ""):
        return HookAnswer(status=403)
    if asked.get("hub.mode") != "subscribe" or not _CHALLENGE.fullmatch(challenge):
        return HookAnswer(status=400)
    return HookAnswer(status=200, body=challenge.encode())
