"""Signatures of webhook calls: an HMAC-SHA256 over the raw bytes, which is verified before anything is read."""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Literal

from belino.domain.ports import Hook
from belino.net.redact import Secret, same_secret

_FORMS = {"hex": re.compile(r"[0-9a-f]{64}"), "base64": re.compile(r"[A-Za-z0-9+/]{43}=")}


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSignature:
    """How a platform signs; the same signature in another spelling does not count."""

    header: str
    """Its header, in lower case."""
    prefix: str = ""
    spelled: Literal["hex", "base64"] = "hex"

    def of(self, hook: Hook) -> str:
        """The signature of a call, as it is written there."""
        return hook.headers.get(self.header, "")

    def may_be(self, hook: Hook) -> bool:
        """Whether the header has the form of a signature."""
        told = self.of(hook)
        return told.startswith(self.prefix) and bool(_FORMS[self.spelled].fullmatch(told[len(self.prefix) :]))

    def is_of(self, hook: Hook, secret: Secret | None, *, before: bytes = b"") -> bool:
        """Whether these very bytes, after those that are signed `before` them, were signed with the secret."""
        key = secret.reveal() if secret is not None else ""
        if not key or not self.may_be(hook):
            return False
        digest = hmac.new(key.encode(), before + hook.body, hashlib.sha256).digest()
        made = digest.hex() if self.spelled == "hex" else base64.b64encode(digest).decode()
        return same_secret(self.of(hook), f"{self.prefix}{made}")
