"""The outbound HTTP client, for every request to an address from a client: docs/adr/0017-one-guarded-outbound-client.md.

`outbound_guard` decides which addresses are allowed. This module adds one total timeout, truncated bodies, redirects that are
reported and not followed, no cookies, no proxies and passwords from the environment, and errors that do not repeat secrets of the
URL. Downloads have no total timeout and follow redirects; each new URL is checked like the first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from re import compile as regex
from socket import socket
from time import perf_counter
from urllib.parse import urljoin

import aiohttp
from aiohttp import http_exceptions
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from yarl import URL

from workers.adapters.outbound_answers import BoundedResponses
from workers.adapters.outbound_connection import connect, connect_socket
from workers.adapters.outbound_file import Receiving
from workers.adapters.outbound_guard import AddressGuard, GuardedResolver, Network, NotPublic, target
from workers.kernel.shortage import SHORTAGES
from workers.ports.outbound import NO_HEADERS, Downloaded, DownloadStart, OutboundFailed, OutboundRefused, Reply

CONNECT_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 4.0  # many servers close after five; a request that meets the close is lost
NAMES_SECONDS = 10
_AGENT = "medialedger"
_REDIRECTS = 5
_REDIRECTED = frozenset({301, 302, 303, 307, 308})

# Headers for framing and routing, which only this client sets.
_FRAMING = "host content-length transfer-encoding connection keep-alive te trailer upgrade expect proxy-connection"
_OURS = frozenset(_FRAMING.split())
_READS = frozenset({"GET", "HEAD"})
_POINT = regex(r"/origin/live/([A-Za-z0-9._-]{1,64})(?:/|$)")
ReadToken = Callable[[str], str | None]
"""Returns the token with which the product reads a publishing point of the built-in origin, by its name."""
_TOKEN = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2


class GuardedClient:
    """An HTTP client that keeps connections open and checks the address of each new one."""

    def __init__(
        self,
        allow: Sequence[Network] = (),
        *,
        origin: str | None = None,
        resolver: AbstractResolver | None = None,
        permit: Callable[[], None] = lambda: None,
        read_token: ReadToken = lambda point: None,
    ) -> None:
        """`origin` is passed to `AddressGuard`. `permit` is called before each request and connection; it may raise
        `OutboundRefused`. `read_token` returns the token with which the product reads a publishing point of that origin; it is sent
        to no other address."""
        self._guard = AddressGuard(allow, origin=origin)
        self._resolver = resolver
        self._permit = permit
        self._read_token = read_token
        self._sessions: dict[AddressGuard, aiohttp.ClientSession] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        seconds: float = 15.0,
        most: int = 16_384,
        whole: bool = True,
    ) -> Reply:
        begun = perf_counter()
        where = target(url)
        _check(headers)
        with _translate_errors(f"No complete answer within {seconds:g} s."):
            async with asyncio.timeout(seconds) as limit:
                bound = None if whole else limit
                return await self._exchange(method, where, headers=headers, body=body, most=most, begun=begun, bound=bound)

    async def send(
        self,
        method: str,
        url: str,
        *,
        pieces: AsyncIterable[bytes],
        size: int | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        seconds: float | None = None,
        seconds_without_progress: float | None = None,
        most: int = 1_024,
    ) -> Reply:
        """Send a request whose body is made while it is sent: `size` bytes, or in chunks until it is over. `seconds` limits the
        whole request, `seconds_without_progress` each piece, and the answer after the last one. An exception of `pieces` ends the
        request like a lost connection."""
        begun = perf_counter()
        where = target(url)
        _check(headers)
        length_header = {} if size is None else {"Content-Length": str(size)}
        bound = seconds if seconds_without_progress is None else seconds_without_progress
        late = "It took too long." if bound is None else f"No complete answer within {bound:g} s."
        with _translate_errors(late):
            async with asyncio.timeout(seconds), asyncio.timeout(seconds_without_progress) as silence:
                body = pieces if seconds_without_progress is None else _with_progress(pieces, silence, seconds_without_progress)
                return await self._exchange(method, where, headers={**headers, **length_header}, body=body, most=most, begun=begun)

    async def stream(self, url: str, *, seconds_without_data: float = 10.0) -> AsyncGenerator[bytes, None]:
        """Yield the body of a GET as it comes, which may be endless. Redirects are followed. A status other than 200 is a failure
        of kind protocol."""
        late = f"No data came for {seconds_without_data:g} s."
        where = target(url)
        for _ in range(_REDIRECTS + 1):
            headers = self._with_token(where, {"Accept-Encoding": "identity"})
            with _translate_errors(late):
                async with asyncio.timeout(seconds_without_data):
                    answer = await self._session(where).get(where, headers=headers, allow_redirects=False)
            try:
                if answer.status in _REDIRECTED and "location" in answer.headers:
                    where = _redirect_url(where, answer.headers["location"])
                    continue
                if answer.status != 200:
                    raise OutboundFailed("protocol", f"It answers with status {answer.status}.")
                while True:
                    with _translate_errors(late):
                        async with asyncio.timeout(seconds_without_data):
                            piece = await answer.content.readany()
                    if not piece:
                        return
                    yield piece
            finally:
                answer.close()
        raise OutboundFailed("protocol", f"The host redirects more than {_REDIRECTS} times.")

    async def connect(self, authority: str, *, port: int, secure: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection for another protocol than HTTP, with TLS if `secure`, to the host of this authority of a URL."""
        host, addresses = await self._resolve(authority, port)
        with _translate_errors(f"No connection within {CONNECT_SECONDS:g} s."):
            async with asyncio.timeout(CONNECT_SECONDS * 2):
                return await connect(self._guard, addresses, name=host if secure else None)

    async def socket(self, authority: str, *, port: int) -> socket:
        """Return a connected socket for a library that speaks another protocol than HTTP and does not connect itself."""
        _, addresses = await self._resolve(authority, port)
        with _translate_errors(f"No connection within {CONNECT_SECONDS:g} s."):
            async with asyncio.timeout(CONNECT_SECONDS * 2):
                return await connect_socket(self._guard, addresses)

    async def _resolve(self, authority: str, port: int) -> tuple[str, list[ResolveResult]]:
        """Return the host of an authority of a URL, and its addresses, all of which are permitted."""
        self._permit()
        host = target(f"http://{authority}/").raw_host or ""
        with _translate_errors(f"No address within {CONNECT_SECONDS:g} s."):
            async with asyncio.timeout(CONNECT_SECONDS * 2):
                return host, await (self._resolver or GuardedResolver(self._guard)).resolve(host, port)

    async def download(
        self,
        url: str,
        to: Path,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        offset: int = 0,
        if_range: str | None = None,
        part: tuple[int, int] | None = None,
        seconds_without_data: float = 30.0,
        most: int | None = None,
        began: Callable[[DownloadStart], None] = lambda _: None,
        seen: Callable[[bytes], None] = lambda _: None,
    ) -> Downloaded:
        where = target(url)
        _check(headers)
        ours = {"Accept-Encoding": "identity"}
        if offset and if_range is not None:
            ours |= {"Range": f"bytes={offset}-", "If-Range": if_range}
        if part is not None:
            ours |= {"Range": f"bytes={part[0]}-{sum(part) - 1}"}
        receiving = Receiving(to, offset=offset, if_range=if_range, part=part, most=most, began=began, seen=seen)
        for _ in range(_REDIRECTS + 1):
            target_url = await self._receive(where, {**headers, **ours}, receiving=receiving, seconds=seconds_without_data)
            if isinstance(target_url, Downloaded):
                return target_url
            if target_url.origin() != where.origin():
                headers = NO_HEADERS  # any of them may be a credential
            where = target_url
        raise OutboundFailed("protocol", f"The host redirects more than {_REDIRECTS} times.")

    async def _receive(self, where: URL, headers: Mapping[str, str], *, receiving: Receiving, seconds: float) -> Downloaded | URL:
        """Return the whole response, or the URL of a redirect."""
        late = f"No data came for {seconds:g} s."
        session = self._session(where)
        with _translate_errors(late):
            async with asyncio.timeout(seconds):
                answer = await session.get(where, headers=self._with_token(where, headers), allow_redirects=False)
        try:
            response_headers = {name.lower(): value for name, value in answer.headers.items()}
            if answer.status in _REDIRECTED and "location" in response_headers:
                return _redirect_url(where, response_headers["location"])
            with receiving.of(answer.status, response_headers) as write:
                while write is not None:
                    with _translate_errors(late):
                        async with asyncio.timeout(seconds):
                            piece = await answer.content.readany()
                    if not piece:
                        break
                    write(piece)
            return Downloaded(answer.status, response_headers, receiving.ended(), str(where))
        finally:
            answer.close()

    async def _exchange(
        self,
        method: str,
        where: URL,
        *,
        headers: Mapping[str, str],
        body: bytes | AsyncIterable[bytes],
        most: int,
        begun: float,
        bound: asyncio.Timeout | None = None,
    ) -> Reply:
        """Send a request and read the answer. `bound` is the time limit of a request whose status is sufficient: it does not apply
        to the body of the answer."""
        session = self._session(where)
        if method in _READS:
            headers = self._with_token(where, headers)
        answer = await session.request(method, where, headers=headers, data=body or None, allow_redirects=False)
        head = bytearray()
        try:
            if bound is None:
                await _read(answer.content, head, most=most)
            else:
                await _read_what_comes(answer.content, head, most=most, bound=bound)
        finally:
            answer.close()  # a connection whose answer was read to its end is back in the pool already
        return Reply(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.headers.items()},
            body=bytes(head),
            seconds=perf_counter() - begun,
            address=answer.address if isinstance(answer, _Answer) else "",
        )

    def _with_token(self, where: URL, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers with the token of the URL. The token is looked up for each URL, so a redirect to another address does
        not pass it on."""
        if self._guard.towards(where) is self._guard or any(name.lower() == "authorization" for name in headers):
            return headers
        point = _POINT.match(where.raw_path)
        token = None if point is None else self._read_token(point[1])
        return headers if token is None else {**headers, "Authorization": f"Bearer {token}"}

    def _session(self, where: URL) -> aiohttp.ClientSession:
        """Return the session for the guard of this URL, because open connections are used only for URLs of the guard that permitted
        them. It is made at the first request, since it needs a running event loop, which does not exist in the composition root."""
        self._permit()
        guard = self._guard.towards(where)
        session = self._sessions.get(guard)
        if session is None:
            session = self._sessions[guard] = self._open(guard)
        return session

    def _open(self, guard: AddressGuard) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=self._resolver or GuardedResolver(guard),
            socket_factory=guard.socket,
            ttl_dns_cache=NAMES_SECONDS,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            limit=0,  # callers limit their concurrency; waiting here would look like a slow receiver
        )
        connector._factory = partial(BoundedResponses, loop=asyncio.get_running_loop())  # type: ignore[assignment]  # a subclass
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": _AGENT},
            skip_auto_headers=["Accept-Encoding"],  # responses are not decompressed
            auto_decompress=False,
            trust_env=False,
            response_class=_Answer,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        )

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


class _Answer(aiohttp.ClientResponse):
    """A response that stores the address of its server: the connection may be back in the pool before it is returned."""

    address = ""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        if connection.transport is not None:
            self.address = str(connection.transport.get_extra_info("peername", ("",))[0])
        return await super().start(connection)


@lru_cache(1024)
def _may_be_set(header: str) -> bool:
    return header.lower() not in _OURS and _TOKEN.fullmatch(header) is not None


async def _with_progress(pieces: AsyncIterable[bytes], silence: asyncio.Timeout, seconds: float) -> AsyncGenerator[bytes, None]:
    """Yield the pieces, restarting the timeout after each one."""
    async for piece in pieces:
        yield piece
        silence.reschedule(asyncio.get_running_loop().time() + seconds)


async def _read(content: aiohttp.StreamReader, into: bytearray, *, most: int) -> None:
    """Read the first `most` bytes."""
    into += await content.read(most)
    while len(into) < most and not content.at_eof():
        into += await content.read(most - len(into))


async def _read_what_comes(content: aiohttp.StreamReader, into: bytearray, *, most: int, bound: asyncio.Timeout) -> None:
    """Read as much of the body as comes in time."""
    when = bound.when()
    bound.reschedule(None)
    try:
        async with asyncio.timeout_at(when):
            await _read(content, into, most=most)
    except (aiohttp.ClientError, http_exceptions.HttpProcessingError, OSError) as error:
        _drop_tracebacks(error)


def _check(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not (_may_be_set(name) and value.isprintable()):
            raise OutboundRefused(
                f"The header {name!r} may not be set, or its value contains a line break or another control character."
            )


def _redirect_url(where: URL, location: str) -> URL:
    """Return the URL of a redirect, checked like any other."""
    try:
        joined = urljoin(str(where), location)
    except ValueError:
        raise OutboundRefused("The host redirects to an invalid URL.") from None
    return target(joined)


@contextmanager
def _translate_errors(late: str) -> Iterator[None]:
    """Replace all errors of the libraries, because their texts contain the whole URL, and an answer may contain anything."""
    try:
        yield
    except (OutboundRefused, OutboundFailed):
        raise
    except Exception as error:
        _drop_tracebacks(error)
        raise _translation(error, late=late) from None


def _drop_tracebacks(error: BaseException) -> None:
    """Drop the tracebacks of an error and of its causes. Frames of the libraries hold the error itself, so without this step
    everything in these frames stays until the garbage collector finds it, in one pause for thousands of failed requests."""
    cause: BaseException | None = error
    while cause is not None and cause.__traceback__ is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__


def _translation(error: Exception, *, late: str) -> OutboundFailed | OutboundRefused:
    match error:
        case aiohttp.ClientConnectorError() if (shortage := _shortage(error)) is not None:
            return OutboundFailed("local", f"No connection could be opened here: {os.strerror(shortage)}.")
        case aiohttp.ClientConnectorDNSError():
            return OutboundFailed("dns", "No address was found for the name of the host.")
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "") or "it was refused"
            return OutboundFailed("tls", f"The certificate of the host cannot be trusted: {reason}.")
        case aiohttp.ClientConnectorSSLError():
            return OutboundFailed("tls", "No secure connection could be negotiated with the host.")
        case aiohttp.ClientConnectorError(os_error=NotPublic() as inside):
            return inside.refusal()
        case aiohttp.ClientConnectorError():
            return OutboundFailed("connect", f"The host cannot be reached: {_reason(error.os_error)}.")
        case aiohttp.ConnectionTimeoutError():
            return OutboundFailed("timeout", f"No connection within {CONNECT_SECONDS:g} s.")
        case TimeoutError():
            return OutboundFailed("timeout", late)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | OSError():
            return OutboundFailed("closed", "The host closed the connection before its answer was complete.")
        case aiohttp.ClientResponseError():
            return OutboundFailed("protocol", "The host did not answer in HTTP.")
        case aiohttp.InvalidURL():
            return OutboundRefused("The URL is not valid.")
    return OutboundFailed("protocol", "The request could not be made, or its answer could not be read.")


def _shortage(error: aiohttp.ClientConnectorError) -> int | None:
    """Return the error number of what this machine lacks. The resolver of the system reports a missing descriptor as a name that it
    cannot find."""
    number = error.os_error.errno
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as fault:
            number = fault.errno
    return number if number in SHORTAGES else None


def _reason(error: OSError) -> str:
    """Return the system's text for the error; when several addresses fail, the libraries may give no number."""
    return os.strerror(error.errno) if error.errno else "none of its addresses answers"
