"""The limit on clients that read files. Each holds a file descriptor and a part of its file in memory, so addresses share the
places."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from api.guards.application import CLOSE
from api.guards.proxies import share_of
from api.http.request import Request
from domain.kernel.errors import Unavailable
from workers.kernel.fair_places import FairPlaces, NoPlace, WorkPlace
from workers.ports.media import MediaSource, OpenMedia


class Readers:
    """The places for readers. When all `places` are taken, the address that holds the most loses the connection of its slowest
    reader."""

    def __init__(self, places: FairPlaces) -> None:
        self.places = places

    async def open(self, source: MediaSource, path: str, *, request: Request) -> OpenMedia | None:
        """Open a file; None if it does not exist. The caller closes it. Raise `Unavailable` if there is no place."""
        client = request.scope.get("client")
        close = request.scope.get("extensions", {}).get(CLOSE)
        try:
            place = self.places.take(share_of(client[0]) if client else "", close)
        except NoPlace:
            raise Unavailable("Too many files are being read.") from None
        opened: OpenMedia | None = None
        try:
            opened = await source.open(path)
        finally:
            if opened is None:
                self.places.leave(place)
        return None if opened is None else _Reading(opened, self.places, place)


class _Reading:
    """An open file that holds a place."""

    def __init__(self, opened: OpenMedia, places: FairPlaces, place: WorkPlace) -> None:
        self.file = opened.file
        self.etag = opened.etag
        self._opened = opened
        self._places = places
        self._place = place

    async def read(self, start: int, size: int) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._opened.read(start, size)) as pieces:
            async for piece in pieces:
                self._places.moved(self._place)
                yield piece

    async def close(self) -> None:
        self._places.leave(self._place)
        await self._opened.close()
