"""The upcoming items of a playout: their decoders are ready before they are due, in the order of the playlist at that time."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from domain.composition.values import Item
from projections.kernel.background_task import run_forever, start_task
from workers.adapters.encoders.canvas import Canvas
from workers.adapters.encoders.item_decoder import ItemDecoder, ItemStreams, inspect_item
from workers.kernel.confinement import Confinement
from workers.ports.playout import DueItem, Place, PlayoutPlaylist, Programme, Unplayable

_LOOK: Final = 0.2
_UNKNOWN: Final = 30.0
"""The assumed length in seconds of an item of unknown length, for preparing the next one."""


@dataclass(frozen=True, slots=True)
class PlayoutPatience:
    """Time limits in seconds, and `most`, the number of items that are ready at a time. `first`: the wait for an item while nothing
    is on the air. `fixed`: the time before its border from which the next item no longer changes. `late`: the wait for a frame
    before the last one is repeated. `gone`: the time of repeating before the item is skipped. `again`: the pause between two
    attempts when nothing can be played."""

    first: float = 10.0
    fixed: float = 3.0
    late: float = 1.0
    gone: float = 5.0
    again: float = 2.0
    most: int = 6


@dataclass(eq=False)
class ReadyItem:
    """An item whose decoder has its first frame. `began` is the due time of its beginning, for an item that is entered in the
    middle."""

    place: Place
    item: Item
    decoder: ItemDecoder
    length: float | None
    offset: float = 0.0
    began: float | None = None
    waited: float = 0.0
    """Seconds of waiting for overdue frames since the last one that came in time."""
    bridged: int = 0
    """The number of consecutive frames that did not come."""

    def position(self, canvas: Canvas) -> float:
        return self.offset + canvas.seconds(self.decoder.frames)

    def over(self, now: float) -> bool:
        """Return True if the item was entered in the middle and had ended before it was ready."""
        return self.began is not None and self.length is not None and now >= self.began + self.length

    def remaining(self, canvas: Canvas) -> float:
        return max((self.length or _UNKNOWN) - self.position(canvas), 0.0)


@dataclass(eq=False)
class UpcomingItems:
    """The upcoming items. `on_air` is the item that precedes them."""

    programme: Programme
    canvas: Canvas
    program: Path
    confinement: Confinement
    patience: PlayoutPatience
    queue: deque[ReadyItem] = field(default_factory=deque)
    on_air: ReadyItem | None = None
    _last: Place | None = None
    """The place of the last item that was prepared or skipped."""
    _seen: PlayoutPlaylist | None = None
    """The playlist that the queue was made from."""
    _left_out: set[str] = field(default_factory=set)
    _failures: int = 0
    _resumed: bool = False
    """True if the item to be on the air by the clock is known."""
    _waited_for: bool = True
    """True if nothing is sent before the first item is ready."""
    _preparing: bool = False
    _paused: bool = False
    _probes: dict[tuple[int, ...], Mapping[str, Any]] = field(default_factory=dict)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    async def prepare(self) -> None:
        """Prepare items until this is cancelled."""
        await run_forever(self._turn, what="items of a playout", pause=self.patience.again)

    async def until_first(self, *, seconds: float) -> None:
        """Wait until an item is ready or none is being prepared, at most this many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.queue and not self._idle:
                    await self._look()
        self._waited_for = False

    def take(self) -> ReadyItem | None:
        """Put the next item on the air and return it; None if none is ready."""
        if not self.queue:
            if self._last is not None and self._idle and not self._paused:
                self.programme.over(self._last)
            return None
        self.on_air = self.queue.popleft()
        self._moved.set()
        return self.on_air

    def end(self) -> None:
        """End the item that is on the air."""
        if self.on_air is not None:
            self.programme.measured(self.on_air.place.mark, self.on_air.position(self.canvas))
            self._close(self.on_air)
        self.on_air = None

    async def close(self) -> None:
        for ready in (*([self.on_air] if self.on_air is not None else []), *self.queue):
            self._close(ready)
        self.on_air = None
        self.queue.clear()
        if self._closing:
            await asyncio.wait(set(self._closing))

    @property
    def _idle(self) -> bool:
        """True if no item is being prepared."""
        return self._paused or (self._resumed and not self._preparing and self.programme.successor(self._last) is None)

    async def _turn(self) -> None:
        """Prepare the next item, if one is needed."""
        self._follow_playlist()
        due = None if self._enough else self._due()
        item = self.programme.item(due.place) if due is not None and not due.over else None
        if due is None or item is None:
            self._last = due.place if due is not None else self._last
            self._resumed = True
            await self._look()
            return
        self._preparing = True
        try:
            self._take(await self._in_time(due, item))
        except Unplayable as fault:
            await self._leave_out(due.place, item=item, reason=str(fault))
        finally:
            self._preparing = False

    def _take(self, ready: ReadyItem | None) -> None:
        """Append an item to the queue. None stands for an item that is over already by its newly measured length. While nothing has
        been sent yet, an item that ended before it was ready is dropped too, and the item that is due by then is prepared instead.
        """
        if ready is not None and self._waited_for and ready.over(self.programme.now()):
            self._close(ready)
        elif ready is not None:
            self._resumed = True
            self._failures = 0
            self._last = ready.place
            self.queue.append(ready)
            self._moved.set()

    async def _in_time(self, due: DueItem, item: Item) -> ReadyItem | None:
        """Prepare an item in time. Raises `Unplayable`."""
        within = max(self._ahead - self.patience.fixed, 0.0) if self.on_air or self.queue else self.patience.first
        try:
            async with asyncio.timeout(max(within, self.patience.first)):
                return await self._make_ready(due, item, within=within)
        except TimeoutError:
            raise Unplayable("It was not ready in time.") from None

    @property
    def _ahead(self) -> float:
        """Seconds until the item that is prepared next goes on the air."""
        on_air = self.on_air.remaining(self.canvas) if self.on_air is not None else 0.0
        return on_air + sum(ready.remaining(self.canvas) for ready in self.queue)

    @property
    def _enough(self) -> bool:
        if not self.queue:
            return False
        ready = sum(each.remaining(self.canvas) for each in self.queue)
        return ready >= self.patience.fixed or len(self.queue) >= self.patience.most

    def _due(self) -> DueItem | None:
        if not self._resumed:
            return self.programme.due()
        place = self.programme.successor(self._last)
        return None if place is None else DueItem(place)

    async def _make_ready(self, due: DueItem, item: Item, *, within: float) -> ReadyItem | None:
        opened = await self.programme.open(item, place=due.place, within=within)
        try:
            probe = await inspect_item(self.program, opened, confinement=self.confinement, cache=self._probes)
            streams = ItemStreams.of(probe, sound=self.canvas.sound)
        except BaseException:
            os.close(opened.descriptor)
            raise
        length = _length(streams.length, start=opened.start, end=opened.end)
        over = length is not None and due.offset >= length
        if length is not None and (over or not self.programme.length(due.place.mark)):
            self.programme.measured(due.place.mark, length)
        if over:
            os.close(opened.descriptor)
            return None
        opened.start += due.offset
        decoder = await ItemDecoder.start(self.program, opened, streams=streams, canvas=self.canvas, confinement=self.confinement)
        try:
            await decoder.wait_for_first()
        except BaseException:
            await decoder.close()
            raise
        return ReadyItem(due.place, item, decoder, length, due.offset, due.began)

    async def _leave_out(self, place: Place, *, item: Item, reason: str) -> None:
        """Skip an item. When no item can be played, all are tried again after a pause, from the start if none was on the air."""
        self._left_out.add(place.mark)
        self._failures += 1
        if self._resumed:
            self._last = place
        if not self._resumed or self.programme.length(place.mark) is None:
            self.programme.measured(place.mark, 0.0)
        self.programme.skip(place, item=item, reason=reason)
        if self._failures >= len(self.programme.playlist.items):
            await self._pause(place)

    async def _pause(self, place: Place) -> None:
        self._resumed = self._paused = True
        try:
            self._moved.set()
            await asyncio.sleep(self.patience.again)
        finally:
            self._paused = False
        ends = self.on_air is None and not self.queue and self.programme.successor(place) is None
        self._last = None if ends else place

    def _follow_playlist(self) -> None:
        """Adopt a changed playlist from the first item that is not fixed: the items after it are removed from the queue."""
        playlist = self.programme.playlist
        if playlist is self._seen:
            return
        self._seen = playlist
        self._failures = 0
        if self.on_air is None and not self.queue:
            return
        before = self.on_air
        ahead = before.remaining(self.canvas) if before is not None else 0.0
        retained = deque[ReadyItem]()
        for ready in self.queue:
            fixed = ahead <= self.patience.fixed or (before is None and not retained)
            if not fixed and not self._still_follows(retained[-1] if retained else before, ready):
                break
            ahead += ready.remaining(self.canvas)
            retained.append(ready)
        for ready in list(self.queue)[len(retained) :]:
            self._close(ready)
        last = retained[-1] if retained else before
        self._last = last.place if last is not None else self._last
        self.queue = retained
        self._left_out.clear()

    def _still_follows(self, before: ReadyItem | None, ready: ReadyItem) -> bool:
        place = before.place if before is not None else None
        for _ in range(len(self.programme.playlist.items)):
            place = self.programme.successor(place)
            if place is None or place.mark == ready.place.mark:
                break
            if place.mark not in self._left_out:
                return False
        return place is not None and place.mark == ready.place.mark

    def _close(self, ready: ReadyItem) -> None:
        task = start_task(ready.decoder.close(), what="end of a decoder")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _look(self) -> None:
        """Wait until something has changed here, or for the time after which the playlist is looked at again."""
        self._moved.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await self._moved.wait()


def _length(length: float | None, *, start: float, end: float | None) -> float | None:
    ends = [each for each in (length, end) if each is not None]
    return max(min(ends) - start, 0.0) if ends else None
