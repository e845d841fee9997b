"""Login to the console by an API key: docs/reference/api/console-session.md."""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Callable
from typing import Annotated, Final

from cachetools import TTLCache
from fastapi import APIRouter
from pydantic import ConfigDict, Field, StringConstraints

from api.http.errors import Forbidden, TooManyRequests, Unauthenticated
from api.http.response import Response
from api.http.routing import OPEN, Route, Service, rules
from api.http.surface import Surface
from api.kernel.browser_sessions import BrowserSessions, cookie, is_own_origin, token_of
from api.kernel.request import Request
from api.kernel.wire import Instant, Wire
from domain.kernel.clock import Clock
from domain.kernel.errors import Unavailable
from projections.client.console_sessions import ConsoleSession, ConsoleSessions
from projections.log_store.log_store import Level, Logbook

CONSOLE: Final = Surface("console", prefix="/console", body_limit=4096, never=frozenset({412}))


class ConsoleRoute(Route):
    """A route of the console."""

    surface = CONSOLE


MOST: Final = 10
SECONDS: Final = 60
_ADDRESSES: Final = 10_000
MOST_OF_KEY: Final = 20
"""Logins with one key in a minute, in each process. Sessions in use are newer than the logins of the minute before, so logins at
this rate do not end them."""
_KEYS: Final = 10_000


class FailedLogins:
    """A limit of `MOST` wrong keys from each address; the count expires `SECONDS` after the last one. IPv6 addresses are counted by
    their network of 64 bits. A correct key is always accepted, so an address that others share does not lock anyone out."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._counts: TTLCache[str, int] = TTLCache(_ADDRESSES, SECONDS, timer=monotonic)

    def failed(self, address: str) -> None:
        """Count a wrong key. Raise `TooManyRequests` if there were too many."""
        network = _network(address)
        failed = self._counts.get(network, 0)
        if failed >= MOST:
            raise TooManyRequests("Too many logins from this address have failed; wait a minute.", retry_after=SECONDS)
        self._counts[network] = failed + 1


class LoginsOfKeys:
    """A limit of `MOST_OF_KEY` logins per minute with one key. Each login is a session and may end another session of the key."""

    def __init__(self, *, clock: Clock) -> None:
        self._counts: TTLCache[str, list[int]] = TTLCache(_KEYS, SECONDS, timer=lambda: clock().timestamp())

    def begun(self, key_id: str) -> bool:
        """Count a login and return True if it is the first with this key in this minute. Raise `TooManyRequests` if there were too
        many."""
        count = self._counts.setdefault(key_id, [0])
        if count[0] >= MOST_OF_KEY:
            raise TooManyRequests("Too many logins with this key; wait a minute.", retry_after=SECONDS)
        count[0] += 1
        return count[0] == 1


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))


routes = APIRouter(prefix="/console/session", tags=["Console"], route_class=ConsoleRoute)

_log = logging.getLogger("medialedger.console")
_NEVER_STORED = ("cache-control", "no-store")
_WRONG = {401: "The key is not valid, or there is no session"}
_OTHER_PAGE = {403: "A page of another origin may have made the request"}
_UNAVAILABLE = {503: "The database is not available"}
_TOO_MANY = {429: "There were too many wrong keys from this address, or too many logins with this key; see Retry-After"}

Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=512)]


class LogInRequest(Wire):
    """A login to the console."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"apiKey": "mlk_0f8a6c2d4e1b3957_Kx3…"}]})

    api_key: Key = Field(description="An API key of a client, at most 512 characters.", repr=False)


class Session(Wire):
    """A session of the console. It also ends after a time without requests, and when its key ends."""

    client: str = Field(description="The name of the client.", examples=["admin"])
    roles: list[str] = Field(description="The roles of the client.", examples=[["admin"]])
    expires_at: Instant = Field(description="The time when the session ends at the latest.")

    @classmethod
    def of(cls, session: ConsoleSession) -> Session:
        return cls.model_construct(client=session.client.name, roles=list(session.client.roles), expires_at=session.ends_at)


class Logins:
    """Logins and logouts, with limits. Each logout and the first login with a key in a minute are written to the log store."""

    def __init__(self, sessions: ConsoleSessions, logbook: Logbook, *, clock: Clock) -> None:
        self.sessions = sessions
        self.clock = clock
        self.failed = FailedLogins()
        self.of_keys = LoginsOfKeys(clock=clock)
        self._logbook = logbook

    async def begin(self, address: str, key: str) -> tuple[str, ConsoleSession]:
        """Begin a session and return its token. Raise `Unauthenticated` for a wrong key and `TooManyRequests` at a limit."""
        firsts: list[bool] = []
        begun = await self.sessions.begin(key, admit=lambda key_id: firsts.append(self.of_keys.begun(key_id)))
        if begun is None:
            self.failed.failed(address)
            raise Unauthenticated("The API key is not valid.")
        if all(firsts):
            await self.note("logged in to the console", begun[1])
        return begun

    async def note(self, what: str, session: ConsoleSession) -> None:
        """Write an entry for the client to the log store, or to the process log if the store is unavailable."""
        name = session.client.name
        try:
            await self._logbook.add(Level.INFO, what, username=name, logger="medialedger", subject=f"console/{name}")
        except Unavailable as fault:
            _log.warning("%s %s (not in the log store: %s)", name, what, fault)


@routes.post("", dependencies=[OPEN], response_model=Session)
@rules(errors=_WRONG | _OTHER_PAGE | _TOO_MANY | _UNAVAILABLE)
async def add_console_session(request: Request, body: LogInRequest, logins: Service[Logins]) -> Response:
    """Begin a session with the roles of an API key. The response sets its cookie."""
    site = request.fields.get(b"sec-fetch-site")
    if site not in (None, b"same-origin", b"none") or (b"origin" in request.fields and not is_own_origin(request)):
        raise Forbidden("A login must come from a page of this server.")
    client = request.scope.get("client")
    token, session = await logins.begin(client[0] if client else "", body.api_key)
    seconds = max(1, int((session.ends_at - logins.clock()).total_seconds()))
    return Response(Session.of(session), headers=(_NEVER_STORED, cookie(request, token, seconds=seconds)))


@routes.get("", dependencies=[OPEN], response_model=Session)
@rules(errors=_WRONG | _OTHER_PAGE | _UNAVAILABLE)
async def get_console_session(request: Request, browsers: Service[BrowserSessions]) -> Response:
    """The session of the request's cookie."""
    session = await browsers.session(request, changes=False)
    if session is None:
        raise Unauthenticated("There is no session; log in.")
    return Response(Session.of(session), headers=(_NEVER_STORED,))


@routes.delete("", dependencies=[OPEN], status_code=204)
@rules(errors=_WRONG | _OTHER_PAGE | _UNAVAILABLE)
async def delete_console_session(request: Request, browsers: Service[BrowserSessions], logins: Service[Logins]) -> Response:
    """End the session of the request's cookie. The response removes the cookie, even if the session had already ended."""
    forget = cookie(request, "", seconds=0)
    try:
        session = await browsers.session(request, changes=True)
        token = token_of(request)
    except Unauthenticated:
        return Response(status_code=204, headers=(_NEVER_STORED, forget))
    if session is not None and token is not None:
        await logins.sessions.end(token)
        await logins.note("logged out of the console", session)
    return Response(status_code=204, headers=(_NEVER_STORED, forget))
