"""The chat page's own files, served as written; the list of files is fixed at start, never by a request."""

import hashlib
from pathlib import Path

from starlette.responses import Response

from belino.web.request_context import RouteCall
from belino.web.responses import not_found

STATIC = Path(__file__).parent / "static"

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'"
)

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
_FILES = {
    path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.is_file() and path.suffix in _TYPES
}


async def index(call: RouteCall) -> Response:
    """The page."""
    return _serve(call, "index.html")


async def static(call: RouteCall) -> Response:
    """One of the page's files."""
    return _serve(call, call.request.path_params["path"])


def _serve(call: RouteCall, name: str) -> Response:
    path = _FILES.get(name)
    if path is None:
        raise not_found()
    body = path.read_bytes()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": etag, "cache-control": "no-cache", "content-security-policy": PAGE_POLICY}
    if call.request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=_TYPES[path.suffix])
