"""Session cookie: named after the instance, so that several gateways on one host have separate logins."""

from datetime import datetime

from starlette.requests import HTTPConnection
from starlette.responses import Response

from belino.web.auth import Origins, Visitor

NAME = "belino_session"
"""The full name up to version 0.7.0; browsers send cookies to every port of a host."""


class SessionCookie:
    """Reads and writes the cookie of one gateway."""

    def __init__(self, instance: str, origins: Origins) -> None:
        self._name = f"{NAME}_{instance}"
        self._origins = origins

    def name(self, connection: HTTPConnection) -> str:
        """`__Host-` over HTTPS, where browsers support it. No subdomain and no plain page can then set one."""
        return f"__Host-{self._name}" if self._origins.is_https(connection) else self._name

    def read(self, connection: HTTPConnection) -> str | None:
        """The secret of a browser's cookie; under the former name only if there is none under its own."""
        return connection.cookies.get(self.name(connection)) or connection.cookies.get(NAME)

    def write(self, request: HTTPConnection, response: Response, secret: str, *, seconds: int) -> None:
        """Set the cookie; zero seconds delete it."""
        self._set(request, response, self.name(request), secret, seconds)

    def rename(self, request: HTTPConnection, response: Response, visitor: Visitor, now: datetime) -> None:
        """Move a login of version 0.7.0, under the former name, to the name of this instance."""
        expires = visitor.grant.expires
        if request.cookies.get(NAME) != visitor.secret or expires is None:
            return
        self.write(request, response, visitor.secret, seconds=max(1, int((expires - now).total_seconds())))
        self._set(request, response, NAME, "", 0)

    def _set(self, request: HTTPConnection, response: Response, name: str, value: str, seconds: int) -> None:
        secure = self._origins.is_https(request)
        response.set_cookie(name, value, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")
