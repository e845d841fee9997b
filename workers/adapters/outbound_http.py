"""The one way out over HTTP: every request of ours to an address that somebody gave us. Issue 5, point 6; ADR 0017.

What may be reached is decided in `outbound_guard`. Here: one total time, bodies that are cut, redirects that are told and not
followed, no cookies, no proxies and passwords from the environment, and errors that repeat no secret of the URL. Downloads (issue
7, point 5) have no total time and follow redirects, each judged as the first URL was.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from re import compile as regex
from time import perf_counter
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection
from yarl import URL

from workers.adapters.outbound_file import Receiving
from workers.adapters.outbound_guard import Guard, GuardedResolver, Network, NotPublic, target
from workers.ports import NO_HEADERS, Began, Downloaded, OutboundFailed, OutboundRefused, Reply

CONNECT_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 4.0  # many servers close after five; a request that meets the close is lost
NAMES_SECONDS = 10
_AGENT = "medialedger"
_REDIRECTS = 5
_REDIRECTED = frozenset({301, 302, 303, 307, 308})

# They say how the message is framed and where it goes, which is the client's to say.
_FRAMING = "host content-length transfer-encoding connection keep-alive te trailer upgrade expect proxy-connection"
_OURS = frozenset(_FRAMING.split())
_TOKEN = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2


class GuardedClient:
    """Keeps connections open and checks each when it is made. `resolver` takes the place of the guarded one, not of the guard."""

    def __init__(self, allow: Sequence[Network] = (), *, resolver: AbstractResolver | None = None) -> None:
        self._guard = Guard(allow)
        self._resolver = resolver or GuardedResolver(self._guard)
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        seconds: float = 15.0,
        most: int = 16_384,
    ) -> Reply:
        begun = perf_counter()
        where = target(url)
        _check(headers)
        with _telling(f"No complete answer within {seconds:g} s."):
            async with asyncio.timeout(seconds):
                return await self._exchange(method, where, headers=headers, body=body, most=most, begun=begun)

    async def download(
        self,
        url: str,
        to: Path,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        offset: int = 0,
        if_range: str | None = None,
        seconds_without_data: float = 30.0,
        most: int | None = None,
        began: Callable[[Began], None] = lambda _: None,
        seen: Callable[[bytes], None] = lambda _: None,
    ) -> Downloaded:
        where = target(url)
        _check(headers)
        ours = {"Accept-Encoding": "identity"}
        if offset and if_range is not None:
            ours |= {"Range": f"bytes={offset}-", "If-Range": if_range}
        receiving = Receiving(to, offset=offset, if_range=if_range, most=most, began=began, seen=seen)
        for _ in range(_REDIRECTS + 1):
            onward = await self._received(where, {**headers, **ours}, receiving=receiving, seconds=seconds_without_data)
            if isinstance(onward, Downloaded):
                return onward
            if onward.origin() != where.origin():
                headers = NO_HEADERS  # any of them may be a credential
            where = onward
        raise OutboundFailed("protocol", f"The host redirects more than {_REDIRECTS} times.")

    async def _received(self, where: URL, headers: Mapping[str, str], *, receiving: Receiving, seconds: float) -> Downloaded | URL:
        """All of one answer, or where it leads."""
        late = f"No data came for {seconds:g} s."
        session = self._session or self._open()
        with _telling(late):
            async with asyncio.timeout(seconds):
                answer = await session.get(where, headers=headers, allow_redirects=False)
        try:
            told = {name.lower(): value for name, value in answer.headers.items()}
            if answer.status in _REDIRECTED and "location" in told:
                return _onward(where, told["location"])
            with receiving.of(answer.status, told) as write:
                while write is not None:
                    with _telling(late):
                        async with asyncio.timeout(seconds):
                            piece = await answer.content.readany()
                    if not piece:
                        break
                    write(piece)
            return Downloaded(answer.status, told, receiving.ended())
        finally:
            answer.close()

    async def _exchange(
        self, method: str, where: URL, *, headers: Mapping[str, str], body: bytes, most: int, begun: float
    ) -> Reply:
        session = self._session or self._open()
        answer = await session.request(method, where, headers=headers, data=body or None, allow_redirects=False)
        try:
            head = await _head(answer.content, most)
        finally:
            answer.close()  # a connection whose answer was read to its end is back in the pool already
        return Reply(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.headers.items()},
            body=head,
            seconds=perf_counter() - begun,
            address=answer.address if isinstance(answer, _Answer) else "",
        )

    def _open(self) -> aiohttp.ClientSession:
        """At the first request, in the loop that makes it: wiring has none."""
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            socket_factory=self._guard.socket,
            ttl_dns_cache=NAMES_SECONDS,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            limit=0,  # callers bound what they have under way; waiting here would look like a slow receiver
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": _AGENT},
            skip_auto_headers=["Accept-Encoding"],  # nothing is unpacked here, so nothing packed is asked for
            auto_decompress=False,
            trust_env=False,
            response_class=_Answer,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


class _Answer(aiohttp.ClientResponse):
    """Remembers who answered: the connection may be back in the pool before the answer is returned."""

    address = ""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        if connection.transport is not None:
            self.address = str(connection.transport.get_extra_info("peername", ("",))[0])
        return await super().start(connection)


@lru_cache(1024)
def _may_be_set(header: str) -> bool:
    return header.lower() not in _OURS and _TOKEN.fullmatch(header) is not None


async def _head(content: aiohttp.StreamReader, most: int) -> bytes:
    """The first `most` bytes. An answer that came in one piece, as most do, takes one turn."""
    head = await content.read(most)
    while len(head) < most and not content.at_eof():
        head += await content.read(most - len(head))
    return head


def _check(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not (_may_be_set(name) and value.isprintable()):
            raise OutboundRefused(f"The header {name!r} is not the caller's to set, or holds a line break or the like.")


def _onward(where: URL, location: str) -> URL:
    """Judged as any URL that we are given: the last check, of the address, is the same for all."""
    try:
        joined = urljoin(str(where), location)
    except ValueError:
        raise OutboundRefused("The host redirects to what cannot be read as a URL.") from None
    return target(joined)


@contextmanager
def _telling(late: str) -> Iterator[None]:
    """Our words for the errors of the libraries: those and their causes hold the whole URL. A `TimeoutError` is an `OSError`."""
    try:
        yield
    except OutboundRefused:
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise _told(error, late=late) from None


def _told(error: Exception, *, late: str) -> OutboundFailed | OutboundRefused:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return OutboundFailed("dns", "The name of the host has no address that could be found.")
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "") or "it was refused"
            return OutboundFailed("tls", f"The certificate of the host cannot be trusted: {reason}.")
        case aiohttp.ClientConnectorSSLError():
            return OutboundFailed("tls", "No secure connection could be agreed with the host.")
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
            return OutboundRefused("The URL cannot be read.")
    return OutboundFailed("protocol", "The request could not be made or its answer not be read.")


def _reason(error: OSError) -> str:
    """The system's own words for its number; of several errors the libraries may give none."""
    return os.strerror(error.errno) if error.errno else "no address of it answers"
