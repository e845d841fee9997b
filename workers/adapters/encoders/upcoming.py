"""What a playout plays next: items whose decoders are ready before they are due, as the playlist says it by then."""

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
from workers.adapters.encoders.item_decoder import ItemDecoder, Streams, looked_at
from workers.kernel.confinement import Confinement
from workers.playout.programme import Programme
from workers.playout.schedule import Due, Place
from workers.playout_ports import PlayoutPlaylist, Unplayable

_LOOK: Final = 0.2
_UNKNOWN: Final = 30.0
"""Seconds that an item is taken to last that does not say it, where the next one is to be ready."""


@dataclass(frozen=True, slots=True)
class PlayoutPatience:
    """In seconds. `first`: how long an item is waited for while nothing is on the air. `fixed`: so long before its border the next
    item stays the next one. `late`: how long a frame is waited for before the last one is shown again, `gone`: before the item is
    left. `again` is between two tries when nothing can be played. `most` items are ready at a time."""

    first: float = 10.0
    fixed: float = 3.0
    late: float = 1.0
    gone: float = 5.0
    again: float = 2.0
    most: int = 6


@dataclass(eq=False)
class Ready:
    """An item whose decoder has its first frame. `began` is when its beginning was due, where it goes on in the middle."""

    place: Place
    item: Item
    decoder: ItemDecoder
    length: float | None
    offset: float = 0.0
    began: float | None = None
    waited: float = 0.0
    """Seconds that frames were waited for after they were due, since one came in time."""
    bridged: int = 0
    """Frames in a row that did not come."""

    def position(self, canvas: Canvas) -> float:
        return self.offset + canvas.seconds(self.decoder.frames)

    def over(self, now: float) -> bool:
        """Whether it went on in the middle, and was over before it was ready."""
        return self.began is not None and self.length is not None and now >= self.began + self.length

    def left(self, canvas: Canvas) -> float:
        return max((self.length or _UNKNOWN) - self.position(canvas), 0.0)


@dataclass(eq=False)
class Upcoming:
    """`on_air` is the item that they follow."""

    programme: Programme
    canvas: Canvas
    program: Path
    confinement: Confinement
    patience: PlayoutPatience
    queue: deque[Ready] = field(default_factory=deque)
    on_air: Ready | None = None
    _last: Place | None = None
    """The item that was prepared or left out last."""
    _seen: PlayoutPlaylist | None = None
    """The playlist that the queue was made from."""
    _left_out: set[str] = field(default_factory=set)
    _failures: int = 0
    _resumed: bool = False
    """Whether it is known what is to be on the air by the clock."""
    _waited_for: bool = True
    """Whether nothing is sent before the first item is ready."""
    _preparing: bool = False
    _paused: bool = False
    _known: dict[tuple[int, ...], Mapping[str, Any]] = field(default_factory=dict)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    async def prepare(self) -> None:
        """Until it is cancelled."""
        await run_forever(self._turn, what="items of a playout", pause=self.patience.again)

    async def until_first(self, *, seconds: float) -> None:
        """Until an item is ready, or none is about to be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.queue and not self._idle:
                    await self._look()
        self._waited_for = False

    def take(self) -> Ready | None:
        """What is on the air from now on."""
        if not self.queue:
            if self._last is not None and self._idle and not self._paused:
                self.programme.over(self._last)
            return None
        self.on_air = self.queue.popleft()
        self._moved.set()
        return self.on_air

    def end(self) -> None:
        """What was on the air is not any more."""
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
        """Whether nothing is about to come."""
        return self._paused or (self._resumed and not self._preparing and self.programme.successor(self._last) is None)

    async def _turn(self) -> None:
        """One turn: the next item, if one is needed."""
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

    def _take(self, ready: Ready | None) -> None:
        """None: by its length, which was not known before, it is over already. Where nothing is sent yet, one that was over before
        it was ready is left out too: what is due by then is prepared instead."""
        if ready is not None and self._waited_for and ready.over(self.programme.now()):
            self._close(ready)
        elif ready is not None:
            self._resumed = True
            self._failures = 0
            self._last = ready.place
            self.queue.append(ready)
            self._moved.set()

    async def _in_time(self, due: Due, item: Item) -> Ready | None:
        """Raises `Unplayable`."""
        within = max(self._ahead - self.patience.fixed, 0.0) if self.on_air or self.queue else self.patience.first
        try:
            async with asyncio.timeout(max(within, self.patience.first)):
                return await self._made_ready(due, item, within=within)
        except TimeoutError:
            raise Unplayable("It was not ready in time.") from None

    @property
    def _ahead(self) -> float:
        """Seconds until what is prepared next goes on the air."""
        on_air = self.on_air.left(self.canvas) if self.on_air is not None else 0.0
        return on_air + sum(ready.left(self.canvas) for ready in self.queue)

    @property
    def _enough(self) -> bool:
        if not self.queue:
            return False
        ready = sum(each.left(self.canvas) for each in self.queue)
        return ready >= self.patience.fixed or len(self.queue) >= self.patience.most

    def _due(self) -> Due | None:
        if not self._resumed:
            return self.programme.due()
        place = self.programme.successor(self._last)
        return None if place is None else Due(place)

    async def _made_ready(self, due: Due, item: Item, *, within: float) -> Ready | None:
        opened = await self.programme.open(item, place=due.place, within=within)
        try:
            found = await looked_at(self.program, opened, confinement=self.confinement, known=self._known)
            streams = Streams.of(found, sound=self.canvas.sound)
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
            await decoder.primed()
        except BaseException:
            await decoder.close()
            raise
        return Ready(due.place, item, decoder, length, due.offset, due.began)

    async def _leave_out(self, place: Place, *, item: Item, reason: str) -> None:
        """When no item can be played, all are tried again after a pause, from the beginning where none was on the air."""
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
        """A changed playlist counts from the first item that is not fixed: what follows is taken out of the queue."""
        playlist = self.programme.playlist
        if playlist is self._seen:
            return
        self._seen = playlist
        self._failures = 0
        if self.on_air is None and not self.queue:
            return
        before = self.on_air
        ahead = before.left(self.canvas) if before is not None else 0.0
        kept = deque[Ready]()
        for ready in self.queue:
            fixed = ahead <= self.patience.fixed or (before is None and not kept)
            if not fixed and not self._still_follows(kept[-1] if kept else before, ready):
                break
            ahead += ready.left(self.canvas)
            kept.append(ready)
        for ready in list(self.queue)[len(kept) :]:
            self._close(ready)
        last = kept[-1] if kept else before
        self._last = last.place if last is not None else self._last
        self.queue = kept
        self._left_out.clear()

    def _still_follows(self, before: Ready | None, ready: Ready) -> bool:
        place = before.place if before is not None else None
        for _ in range(len(self.programme.playlist.items)):
            place = self.programme.successor(place)
            if place is None or place.mark == ready.place.mark:
                break
            if place.mark not in self._left_out:
                return False
        return place is not None and place.mark == ready.place.mark

    def _close(self, ready: Ready) -> None:
        task = start_task(ready.decoder.close(), what="end of a decoder")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _look(self) -> None:
        """Waits until something has changed here, or in the playlist."""
        self._moved.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await self._moved.wait()


def _length(length: float | None, *, start: float, end: float | None) -> float | None:
    ends = [each for each in (length, end) if each is not None]
    return max(min(ends) - start, 0.0) if ends else None
