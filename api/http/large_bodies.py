"""Requests with large bodies: so many at a time in memory, and one after another from their parsing to their response.

Parsing and storing a megabyte takes a tenth of a second in which nothing else runs. Many at once would hold up all other requests
for as long as all of them take.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from api.http.errors import HttpError

_LARGE: Final = 32_768
_MOST: Final = 32
_PATIENCE: Final = 5.0


class TooManyLargeBodies(HttpError):
    status = 503

    def __init__(self) -> None:
        super().__init__("Too many large requests are under way.", headers=(("retry-after", "2"),))


def is_large(headers: Mapping[bytes, bytes]) -> bool:
    """A body without a length may be."""
    length = headers.get(b"content-length", b"")
    return int(length) > _LARGE if length.isdigit() else b"transfer-encoding" in headers


class LargeBodies:
    """`most` are read and held at a time. Who has waited `patience` seconds is refused with 503."""

    def __init__(self, most: int = _MOST, *, patience: float = _PATIENCE) -> None:
        self._room = asyncio.Semaphore(most)
        self._turn = asyncio.Semaphore()
        self._patience = patience

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """To read the body, and until the response."""
        async with self._waited_for(self._room):
            yield

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """To parse the body, and until the response."""
        async with self._waited_for(self._turn):
            yield

    @asynccontextmanager
    async def _waited_for(self, places: asyncio.Semaphore) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._patience):
                await places.acquire()
        except TimeoutError:
            raise TooManyLargeBodies from None
        try:
            yield
        finally:
            places.release()
