"""The strategies of status checks, over HTTP: docs/reference/api/health.md#strategies."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from time import monotonic
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from domain.channel.channel import StatusCheckStrategy
from domain.channel.hosts import has_placeholder
from domain.channel.points import UNKNOWN, WatchedPoint
from domain.event.playback.video_object import split_url, url_below
from domain.kernel.clock import Clock, iso
from domain.kernel.urls import origin
from workers.adapters.point_status.state_pages import StatePage, smil_page, status_page
from workers.media.errors import Unreadable
from workers.media.live_edge import is_playlist, newest_in_mpd, newest_in_playlist, variant
from workers.ports.outbound import NO_HEADERS, Outbound, OutboundFailed, OutboundRefused
from workers.ports.points import PointReport, PointSilent, PointStatusReader

# The requests of one check of a publishing point. They are limited in time and size, and none is sent to a host that has not
# answered before.

SECONDS: Final = 3.0
"""The time limit for one strategy in seconds, from resolving the host to the last byte."""
SECONDS_OF_ALL: Final = 5.0
"""Seconds after which no further request of the same check begins. It is not longer than the lease of a prober: a prober that was
frozen until after its lease sends nothing more."""
LARGEST_PAGE: Final = 256 * 1024
LARGEST_MANIFEST: Final = 1024 * 1024
_UNREACHABLE: Final = frozenset({"dns", "connect", "tls", "timeout", "closed"})


class Asking:
    """Remembers the hosts that could not be reached: several strategies use the same host, and each would wait in vain."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._ends = monotonic() + SECONDS_OF_ALL
        self._until = self._ends
        self._silent: dict[str, PointSilent] = {}

    def begin(self) -> None:
        """Begin one more strategy."""
        self._until = min(monotonic() + SECONDS, self._ends)

    async def get(self, url: str, *, most: int = LARGEST_PAGE, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return the complete body of an answer with status 200. Raises `PointSilent`."""
        where = origin(url)
        if where in self._silent:
            raise self._silent[where]
        address, credentials = _without_user(url)
        seconds = self._until - monotonic()
        if seconds <= 0:
            raise PointSilent("timeout", "No time was left for a request.")
        try:
            reply = await self._outbound.request("GET", address, headers={**credentials, **headers}, seconds=seconds, most=most + 1)
        except OutboundRefused as refusal:
            raise PointSilent(refusal.kind, str(refusal)) from None
        except OutboundFailed as failure:
            silent = PointSilent(failure.kind, str(failure))
            if failure.kind in _UNREACHABLE:
                self._silent[where] = silent
            raise silent from None
        if 300 <= reply.status < 400:
            raise PointSilent("answer", f"It redirects (status {reply.status}), which is not followed.")
        if reply.status != 200:
            raise PointSilent("answer", f"It answered with status {reply.status}.")
        if len(reply.body) > most:
            raise PointSilent("answer", f"Its answer is larger than {most // 1024} KiB.")
        return reply.body


def _without_user(url: str) -> tuple[str, Mapping[str, str]]:
    """Return the address without its user info, and a header made of it."""
    try:
        split = urlsplit(url)
    except ValueError:
        return url, NO_HEADERS  # the client reports what is wrong with it
    user, separator, host = split.netloc.rpartition("@")
    if not separator:
        return url, NO_HEADERS
    name, _, password = user.partition(":")
    credentials = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
    return urlunsplit(split._replace(netloc=host)), {"Authorization": f"Basic {credentials}"}


FRESH: Final = timedelta(seconds=30)
"""The largest distance of a manifest's last segment from now, in either direction, at which the point counts as started."""
KEY_HEADER: Final = "API-KEY"
_LONGEST: Final = 400

_Ask = Callable[[Asking, WatchedPoint, str | None], Awaitable[PointReport]]


def point_status(outbound: Outbound, clock: Clock) -> Mapping[StatusCheckStrategy, PointStatusReader]:
    """Return the adapters by strategy."""
    timestamp = _Timestamp(clock)
    asks: dict[StatusCheckStrategy, _Ask] = {
        StatusCheckStrategy.SRVA_ARCHIVE: _Archive(clock).ask,
        StatusCheckStrategy.SRVA_API: _api,
        StatusCheckStrategy.STATUS_PHP: _status_php,
        StatusCheckStrategy.SRVC_TIMESTAMP: timestamp.ask,
    }
    return MappingProxyType(
        {
            StatusCheckStrategy.ALL: Strategies(outbound, asks),
            StatusCheckStrategy.NONE: NoCheck(),
            **{strategy: Strategies(outbound, {strategy: ask}) for strategy, ask in asks.items()},
        }
    )


class NoCheck:
    """The strategy NONE: nothing is requested, the state is unknown."""

    async def ask(self, point: WatchedPoint, *, key: str | None = None, first: StatusCheckStrategy | None = None) -> PointReport:
        return PointReport(StatusCheckStrategy.NONE, UNKNOWN)


class Strategies:
    """Tries strategies in order; the first one that finds a state counts."""

    def __init__(self, outbound: Outbound, asks: Mapping[StatusCheckStrategy, _Ask]) -> None:
        self._outbound = outbound
        self._asks = asks

    async def ask(self, point: WatchedPoint, *, key: str | None = None, first: StatusCheckStrategy | None = None) -> PointReport:
        if not point.resolved:
            raise PointSilent("unaskable", "Its address contains a placeholder that is not filled.")
        asking = Asking(self._outbound)
        failures: list[tuple[StatusCheckStrategy, PointSilent]] = []
        for strategy in sorted(self._asks, key=lambda candidate: candidate is not first):
            asking.begin()
            try:
                return await self._asks[strategy](asking, point, key)
            except PointSilent as silent:
                failures.append((strategy, silent))
        raise _together(failures)


def _together(failures: list[tuple[StatusCheckStrategy, PointSilent]]) -> PointSilent:
    """Combine several failures. The most informative one about the point decides the kind."""
    if len(failures) == 1:
        return failures[0][1]
    worst = next((silent for _, silent in failures if silent.is_at_fault), failures[0][1])
    local = next((silent for _, silent in failures if silent.kind == "local"), None)
    texts = dict.fromkeys(str(silent) for _, silent in failures)
    if len(texts) == 1:
        return local or worst
    sentence = " ".join(f"{strategy.name}: {silent}" for strategy, silent in failures)
    return PointSilent((local or worst).kind, sentence[:_LONGEST])


class _Archive:
    """SRVA_ARCHIVE: `/archive` of the point lists its recording. If it reports no state, the age of the latest clip decides."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def ask(self, asking: Asking, point: WatchedPoint, _: str | None) -> PointReport:
        page = smil_page(await asking.get(_below(point.url, "archive")))
        state = page.state
        if not state and page.last_updated is not None:
            state = "started" if abs(self._clock() - page.last_updated) < FRESH else "stopped"
        return _report(StatusCheckStrategy.SRVA_ARCHIVE, page, state)


async def _api(asking: Asking, point: WatchedPoint, key: str | None) -> PointReport:
    """SRVA_API: request the state page of the streaming server's API, with its key; without an API, that of the point itself."""
    if not point.srva_api:
        return _report(StatusCheckStrategy.SRVA_API, smil_page(await asking.get(_below(point.url, "state"))))
    address = split_url(point.srva_api)[0]
    url = point.srva_api if address.rstrip("/").endswith("/state") else url_below(point.srva_api, "state")
    page = smil_page(await asking.get(url, headers={KEY_HEADER: key} if key else NO_HEADERS))
    return _report(StatusCheckStrategy.SRVA_API, page)


async def _status_php(asking: Asking, point: WatchedPoint, _: str | None) -> PointReport:
    page = status_page(await asking.get(point.status_url or _below(point.url, "status.php")))
    return _report(StatusCheckStrategy.STATUS_PHP, page)


def _report(strategy: StatusCheckStrategy, page: StatePage, state: str = "") -> PointReport:
    reported_state = page.state or state
    if not reported_state:
        raise PointSilent("answer", "Its answer contains no state.")
    mark = page.updated or (iso(page.newest) if page.newest is not None else "")
    return PointReport(strategy, reported_state, page.last_updated, mark, page.receiving)


class _Timestamp:
    """SRVC_TIMESTAMP: the age of the end of the live manifest, which advances while data come."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def ask(self, asking: Asking, point: WatchedPoint, _: str | None) -> PointReport:
        failures = []
        for url in _manifests(point):
            try:
                return await self._of(asking, url)
            except PointSilent as silent:
                failures.append(silent)
            except Unreadable as fault:
                failures.append(PointSilent("answer", fault.sentence))
        raise failures[0]

    async def _of(self, asking: Asking, url: str) -> PointReport:
        body = await asking.get(url, most=LARGEST_MANIFEST)
        if is_playlist(body) and (inner := variant(body, url)) is not None:
            body = await asking.get(inner, most=LARGEST_MANIFEST)
        newest = newest_in_playlist(body) if is_playlist(body) else newest_in_mpd(body)
        started = not newest.ended and abs(self._clock() - newest.at) < FRESH
        state = "started" if started else "stopped"
        return PointReport(StatusCheckStrategy.SRVC_TIMESTAMP, state, newest.at, iso(newest.at))


def _manifests(point: WatchedPoint) -> tuple[str, ...]:
    """Return the manifests of the channel, or those that the kind of the point's address suggests."""
    if filled := tuple(url for url in point.manifests if not has_placeholder(url)):
        return filled
    path = split_url(point.url)[0].lower()
    if path.endswith((".m3u8", ".mpd")):
        return (_http(point.url),)
    names = (".m3u8", ".mpd") if path.endswith((".isml", ".isml/")) else ("master.m3u8", "manifest.mpd")
    return tuple(_below(point.url, name) for name in names)


def _below(url: str, path: str) -> str:
    return url_below(_http(url), path)


def _http(url: str) -> str:
    """Return the URL. Raises `PointSilent` if it is not one of HTTP, such as rtmp."""
    if url.partition("://")[0].lower() not in ("http", "https"):
        raise PointSilent("unaskable", "Its address is not one of HTTP, and the channel has no other to check.")
    return url
