"""Bodies of uploads: each takes a place in a limit of the process, and must arrive fast enough."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final

from workers.kernel.fair_places import FairPlaces, NoPlace, Place
from workers.origin.refusals import RefusalReason, UploadRefused

Pieces = AsyncIterator[bytes]

_FIRST: Final = 60.0
"""Seconds after which a body must arrive at the least rate."""


class UploadBody:
    """The body of one request to a publishing point, used as a context manager. `least` is the number of bytes a second that must
    arrive after the first minute; None for a stream, which may take any time. Its place may be given up for another publishing
    point: then the body ends with an error, at once if a caller is waiting for data."""

    def __init__(self, pieces: Pieces, *, places: FairPlaces, point: str, least: int | None) -> None:
        self._pieces = pieces
        self._places = places
        self._point = point
        self._least = least
        self._place: Place | None = None
        self._given_up = False
        self._waiting: asyncio.Timeout | None = None

    def __enter__(self) -> UploadBody:
        """Take a place. Raise `UploadRefused`."""
        try:
            self._place = self._places.take(self._point, self.give_up)
        except NoPlace:
            raise UploadRefused(RefusalReason.BUSY, "Too many uploads are in progress.") from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._place is not None:
            self._places.leave(self._place)

    def give_up(self) -> None:
        self._given_up = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def __aiter__(self) -> Pieces:
        """Yield the pieces of the body. Raise `UploadRefused`."""
        begun, taken = asyncio.get_running_loop().time(), 0
        while True:
            until = None if self._least is None else begun + _FIRST + taken / self._least
            try:
                piece = await self._next(until)
            except StopAsyncIteration:
                return
            taken += len(piece)
            if self._place is not None:
                self._places.moved(self._place)
            yield piece

    async def _next(self, until: float | None) -> bytes:
        if not self._given_up:
            waiting = self._waiting = asyncio.timeout_at(until)
            try:
                async with waiting:
                    return await anext(self._pieces)
            except TimeoutError:
                if not waiting.expired():
                    raise
            finally:
                self._waiting = None
        if self._given_up:
            raise UploadRefused(RefusalReason.BUSY, "Too many uploads are in progress, and this publishing point has most of them.")
        raise UploadRefused(RefusalReason.SLOW, "The body arrives too slowly.")
