"""The session cookie of the console: docs/reference/api/console-session.md.

A page of another origin cannot read the cookie. It can make a browser send it if that origin is the same site, such as another
port of this host; therefore a request with the cookie must also come from a page of this origin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from api.http.errors import Forbidden, Unauthenticated
from api.http.request import Caller, Request
from projections.client.console_sessions import ConsoleSession, ConsoleSessions
from projections.client.directory import ClientRow

COOKIE: Final = "medialedger_session"
_LONGEST: Final = 256
_LONGEST_PORT: Final = 5
_TOO_LONG: Final = 8192
"""Bytes in all cookies together. Browsers also send the cookies of other programs on this host."""


class BrowserSessions:
    """Finds the session of a request by its cookie. `caller_of` returns the caller for a client."""

    def __init__(self, sessions: ConsoleSessions, caller_of: Callable[[ClientRow], Caller]) -> None:
        self._sessions = sessions
        self._caller_of = caller_of

    async def caller(self, request: Request, *, changes: bool) -> Caller | None:
        """Return the caller of the session, as the protocol `api.kernel.authentication.Sessions` requires."""
        session = await self.session(request, changes=changes)
        return None if session is None else _person(self._caller_of(session.client))

    async def session(self, request: Request, *, changes: bool) -> ConsoleSession | None:
        """Return the session of the cookie; None without a cookie. Raises `Unauthenticated` and `Forbidden`, like `caller`."""
        token = token_of(request)
        if token is None:
            return None
        session = await self._sessions.find(token)
        if session is None:
            raise Unauthenticated("The session has ended; log in again.")
        check_page(request, changes=changes)
        return session


@lru_cache(maxsize=1024)
def _person(caller: Caller) -> Caller:
    return replace(caller, person=True)


def token_of(request: Request) -> str | None:
    """Return the value of the cookie; None without a cookie. Raise `Unauthenticated` if there are two: another program may have
    set one."""
    if b"cookie" not in request.fields:
        return None
    sent = [value for name, value in request.scope["headers"] if name == b"cookie"]
    if sum(map(len, sent)) > _TOO_LONG:
        raise Unauthenticated("The cookies are too long; delete those of this site in the browser.")
    name = cookie_name(request).encode("ascii")
    pairs = (pair.strip().partition(b"=") for value in sent for pair in value.split(b";"))
    tokens = {value for key, _, value in pairs if key == name}
    if len(tokens) > 1:
        raise Unauthenticated("There are several session cookies; delete those of this site in the browser.")
    token = tokens.pop() if tokens else b""
    return token.decode("latin-1") if 0 < len(token) <= _LONGEST else None


def cookie_name(request: Request) -> str:
    """Return the name of the cookie, with the port if the address has one: browsers send the cookies of a host to all its ports,
    and another port may serve another installation. Over https no other host and no page without TLS can set a cookie of this
    name."""
    name = f"{COOKIE}{_port(request)}"
    return f"__Host-{name}" if _is_secure(request) else name


def cookie(request: Request, token: str, *, seconds: int) -> tuple[str, str]:
    """Return the header that sets the cookie. With 0 `seconds` the browser deletes it."""
    secure = "; Secure" if _is_secure(request) else ""
    value = f"{cookie_name(request)}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return ("set-cookie", value)


def check_page(request: Request, *, changes: bool) -> None:
    """Raise `Forbidden` for a request that a page of another origin may have made."""
    site = request.fields.get(b"sec-fetch-site")
    if site is not None:
        if site != b"same-origin" and (changes or site != b"none"):
            raise Forbidden("A request with the session cookie must come from a page of this server (Sec-Fetch-Site: same-origin).")
    elif changes and not is_own_origin(request):
        raise Forbidden(
            "A change with the session cookie needs the header Sec-Fetch-Site: same-origin or, from browsers that do not send it, "
            "Origin with the address of this server."
        )


def is_own_origin(request: Request) -> bool:
    """Return True if the header Origin names the scheme, host and port of the request, or the public address."""
    origin = (request.header("origin") or "").lower()
    direct = f"{request.scope.get('scheme', 'http')}://{request.header('host')}".lower()
    return origin in {_without_usual_port(direct), _without_usual_port(request.root_url.lower())}


def _without_usual_port(origin: str) -> str:
    """Return the origin without the default port of its scheme, as browsers write it."""
    usual = {"http": ":80", "https": ":443"}.get(urlsplit(origin).scheme, "")
    return origin.removesuffix(usual) if usual else origin


def _port(request: Request) -> str:
    """Return a suffix such as `_8080`; empty for the default port, which browsers omit, and for an invalid port in the header
    Host."""
    _, _, port = _without_usual_port(request.root_url.lower()).rpartition(":")
    return f"_{port}" if port.isascii() and port.isdigit() and len(port) <= _LONGEST_PORT else ""


def _is_secure(request: Request) -> bool:
    """Return True for https. The public address counts too, because a proxy may end TLS without saying so in a header."""
    return request.scope.get("scheme") == "https" or request.root_url.startswith("https://")
