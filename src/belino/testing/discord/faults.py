"""What Discord answers on a bad day, as the faults of one call."""

import json

from belino.testing.discord.pace import limited
from belino.testing.discord.shapes import Json
from belino.testing.faults import CannedAnswer

CDN = "CDN"
"""The name under which a fault waits for the next file request."""

_BAN = """<!DOCTYPE html><html><head><title>Access denied | Cloudflare</title></head>
<body><h1>Error 1015</h1><h2>You are being rate limited</h2></body></html>"""


def refusal(status: int, code: int, message: str, **more: Json) -> CannedAnswer:
    """A status with Discord's own code."""
    return _answer(status, {"message": message, "code": code, **more}, {})


def slow_down(seconds: float, scope: str = "user") -> CannedAnswer:
    """A 429: of the route (`user`), of everything (`global`), or of what others use too (`shared`)."""
    body, headers = limited(seconds, scope)
    return _answer(429, body, {**headers, "Via": "1.1 google"})


def cloudflare_ban(seconds: int | None = None) -> CannedAnswer:
    """The 429 of who stands before Discord: a page, no JSON, no Via."""
    headers = {"Content-Type": "text/html; charset=UTF-8"}
    return CannedAnswer(
        status=429, body=_BAN.encode(), headers=headers | ({"Retry-After": str(seconds)} if seconds is not None else {})
    )


def _answer(status: int, body: Json, headers: dict[str, str]) -> CannedAnswer:
    return CannedAnswer(
        status=status, body=json.dumps(body).encode(), headers={**headers, "Content-Type": "application/json"}
    )
