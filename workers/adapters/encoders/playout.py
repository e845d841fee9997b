"""The playout of a programme: its items, one after the other, as one stream of raw pictures and sounds in real time (ADR 0067).

Raw frames have no time of their own: the frame with the number n is shown n frames after the first one. So no border can make a gap
or a jump, whatever the items are. Each frame is written when it is due by a clock that nobody sets. The decoder of the next item is
ready before the present one ends; what does not come in time is bridged by the last picture, or by black."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from domain.composition.values import Item
from domain.media_event.values import AudioInput
from projections.kernel.background_task import start_forever, start_task
from workers.adapters.encoders.canvas import SAMPLE, Canvas
from workers.adapters.encoders.encode_command import Input
from workers.adapters.encoders.item_decoder import ItemDecoder, Over, Slot, Streams, looked_at
from workers.adapters.encoders.raw_pipes import RawWriter, pipe
from workers.kernel.confinement import Confinement
from workers.playout.programme import Programme, shown
from workers.playout.schedule import Due, Place
from workers.playout_ports import Unplayable
from workers.ports import PlayoutStatistics

_PICTURES_WAITING: Final = 2
_SOUNDS_WAITING: Final = 250
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


PATIENCE: Final = PlayoutPatience()


@dataclass(eq=False)
class _Ready:
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

    def left(self, canvas: Canvas) -> float:
        return max((self.length or _UNKNOWN) - self.position(canvas), 0.0)


@dataclass
class _Pace:
    """When frames are due. The first is due when it is there."""

    canvas: Canvas
    began: float | None = None

    def late(self, frame: int) -> float:
        """Seconds; below zero before it is due."""
        if self.began is None:
            self.began = time.monotonic()
        return time.monotonic() - self.began - self.canvas.seconds(frame)

    async def due(self, frame: int) -> None:
        if (late := self.late(frame)) < 0:
            await asyncio.sleep(-late)


@dataclass(eq=False)
class Playout:
    """One encode's: `opened` before it is started, then `run`."""

    programme: Programme
    canvas: Canvas
    program: Path
    confinement: Confinement
    sounds: Sequence[AudioInput]
    patience: PlayoutPatience = PATIENCE
    _descriptors: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _queue: deque[_Ready] = field(default_factory=deque)
    _on_air: _Ready | None = None
    _last: Place | None = None
    """The item that was prepared or left out last."""
    _seen: int | None = None
    """The version of the playlist that the queue was made from."""
    _left_out: set[str] = field(default_factory=set)
    _failures: int = 0
    _resumed: bool = False
    """Whether it is known what is to be on the air by the clock."""
    _preparing: bool = False
    _paused: bool = False
    _frame: int = 0
    _repeated: int = 0
    _late: float = 0.0
    _known: dict[tuple[int, ...], Mapping[str, Any]] = field(default_factory=dict)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._pace = _Pace(self.canvas)

    def opened(self) -> Input:
        """Opens the pipes, and gives the arguments of an encode that reads them."""
        for _ in range(2):
            reading, writing = pipe()
            self._descriptors.append(reading)
            self._ends.append(writing)
        pictures, sounds = self._descriptors
        quick = ("-thread_queue_size", "8", "-probesize", "32", "-analyzeduration", "0")
        arguments = [*quick, *self.canvas.picture_format, "-i", f"pipe:{pictures}"]
        arguments += [*quick, *self.canvas.sound_format, "-i", f"pipe:{sounds}"]
        return Input(arguments, self.sounds, float(self.canvas.rate), ["1:a:0"] * len(self.sounds))

    def take_descriptors(self) -> Sequence[int]:
        """Those of the encode."""
        taken, self._descriptors = self._descriptors, []
        return taken

    def close(self) -> None:
        """Where it was not run."""
        for descriptor in self._ends:
            os.close(descriptor)
        self._ends = []

    def statistics(self) -> PlayoutStatistics:
        on_air, following = self._on_air, self._queue[0] if self._queue else None
        place = on_air.place if on_air is not None else None
        return PlayoutStatistics(
            item=None if place is None else place.index,
            value="" if on_air is None else shown(on_air.item),
            position=0.0 if on_air is None else round(on_air.position(self.canvas), 3),
            length=None if on_air is None or on_air.length is None else round(on_air.length, 3),
            next=None if following is None else following.place.index,
            version=self.programme.playlist.version,
            skipped=self.programme.skipped,
            repeated=self._repeated,
            late=round(self._late, 3),
        )

    async def run(self) -> None:
        """Until it is cancelled, or the encode reads no more."""
        ends, self._ends = self._ends, []
        pictures = RawWriter(ends[0], most=_PICTURES_WAITING)
        sounds = RawWriter(ends[1], most=_SOUNDS_WAITING)
        tasks = [
            start_forever(self._prepare, what="items of a playout", pause=self.patience.again),
            start_task(self.programme.follow(), what="playlist of a playout"),
            start_task(self.programme.keep(), what="place of a playout"),
        ]
        try:
            await self._until_first()
            with suppress(BrokenPipeError):
                await self._play(pictures, sounds)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.gather(pictures.close(), sounds.close())
            await self._close_all()

    # --- on the air

    async def _until_first(self) -> None:
        """An encode that begins with black would show it before the first item."""
        until = time.monotonic() + self.patience.first
        while not self._queue and not self._idle and time.monotonic() < until:
            await self._wait(self._moved, seconds=_LOOK)

    @property
    def _idle(self) -> bool:
        """Whether nothing is about to come."""
        return self._paused or (self._resumed and not self._preparing and self.programme.successor(self._last) is None)

    async def _play(self, pictures: RawWriter, sounds: RawWriter) -> None:
        while True:
            await self._pace.due(self._frame)
            slot = await self._slot(self._frame)
            await sounds.put(slot.sound)
            await pictures.put(slot.picture)
            self._late = self._pace.late(self._frame)
            self._frame += 1
            if self._frame % 25 == 0:
                self.programme.counts.late(self._late)

    async def _slot(self, frame: int) -> Slot:
        while True:
            on_air = self._on_air or self._next(frame)
            if on_air is None:
                return Slot(self.canvas.black, bytes(self.canvas.samples(frame) * SAMPLE))
            try:
                slot = on_air.decoder.take(frame)
            except Over:
                self._ended(on_air)
                continue
            if slot is not None:
                on_air.bridged = 0
                on_air.waited = on_air.waited if self._pace.late(frame) > self.patience.late else 0.0
                return slot
            if on_air.waited >= self.patience.late:
                if self.canvas.seconds(on_air.bridged) < self.patience.gone:
                    return self._bridged(on_air, frame)
                await self._broken(on_air)
                continue
            begun = time.monotonic()
            await on_air.decoder.more(seconds=self.patience.late - on_air.waited)
            on_air.waited += time.monotonic() - begun

    def _bridged(self, on_air: _Ready, frame: int) -> Slot:
        """The last picture again. The frame that was due is left out when it comes: the item ends when it is due to."""
        on_air.bridged += 1
        self._repeated += 1
        self.programme.counts.repeated()
        on_air.decoder.leave_out(frame)
        return on_air.decoder.repeated(frame)

    def _next(self, frame: int) -> _Ready | None:
        if not self._queue:
            if self._last is not None and self._idle and not self._paused:
                self.programme.over(self._last)
            return None
        ready = self._queue.popleft()
        now = self.programme.now()
        if ready.began is not None:
            later = round((now - ready.began - ready.offset) * self.canvas.rate)
            ready.decoder.leave_out(frame, max(later, 0))
        self._on_air = ready
        self.programme.began(ready.place, at=now - self._pace.late(frame) if ready.began is None else ready.began)
        self._moved.set()
        return ready

    def _ended(self, on_air: _Ready) -> None:
        self.programme.measured(on_air.place.mark, on_air.position(self.canvas))
        self._on_air = None
        self._close(on_air)

    async def _broken(self, on_air: _Ready) -> None:
        """It gives no more, and does not end."""
        self._ended(on_air)
        await self.programme.skip(
            on_air.place, item=on_air.item, reason="its decoder gave no more pictures while it was on the air"
        )

    # --- what comes next

    async def _prepare(self) -> None:
        """One turn: the next item, if one is needed."""
        self._follow_playlist()
        due = None if self._enough else self._due()
        item = self.programme.item(due.place) if due is not None and not due.over else None
        if due is None or item is None:
            self._last = due.place if due is not None else self._last
            self._resumed = True
            await self._wait(self._moved, seconds=_LOOK)
            return
        self._preparing = True
        try:
            self._take(await self._in_time(due, item))
        except Unplayable as fault:
            await self._leave_out(due.place, item=item, reason=str(fault))
        finally:
            self._preparing = False

    def _take(self, ready: _Ready | None) -> None:
        """None: by its length, which was not known before, it is over already."""
        if ready is not None:
            self._resumed = True
            self._failures = 0
            self._last = ready.place
            self._queue.append(ready)
            self._moved.set()

    async def _in_time(self, due: Due, item: Item) -> _Ready | None:
        """Raises `Unplayable`."""
        within = max(self._ahead - self.patience.fixed, 0.0) if self._on_air or self._queue else self.patience.first
        try:
            async with asyncio.timeout(max(within, self.patience.first)):
                return await self._made_ready(due, item, within=within)
        except TimeoutError:
            raise Unplayable("It was not ready in time.") from None

    @property
    def _ahead(self) -> float:
        """Seconds until what is prepared next goes on the air."""
        on_air = self._on_air.left(self.canvas) if self._on_air is not None else 0.0
        return on_air + sum(ready.left(self.canvas) for ready in self._queue)

    @property
    def _enough(self) -> bool:
        if not self._queue:
            return False
        ready = sum(each.left(self.canvas) for each in self._queue)
        return ready >= self.patience.fixed or len(self._queue) >= self.patience.most

    def _due(self) -> Due | None:
        if not self._resumed:
            return self.programme.due()
        place = self.programme.successor(self._last)
        return None if place is None else Due(place)

    async def _made_ready(self, due: Due, item: Item, *, within: float) -> _Ready | None:
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
        return _Ready(due.place, item, decoder, length, due.offset, due.began)

    async def _leave_out(self, place: Place, *, item: Item, reason: str) -> None:
        """When no item can be played, all are tried again after a pause, from the beginning where none was on the air."""
        self._left_out.add(place.mark)
        self._failures += 1
        if self._resumed:
            self._last = place
        if not self._resumed or self.programme.length(place.mark) is None:
            self.programme.measured(place.mark, 0.0)
        await self.programme.skip(place, item=item, reason=reason)
        if self._failures >= len(self.programme.playlist.items):
            await self._pause(place)

    async def _pause(self, place: Place) -> None:
        self._resumed = self._paused = True
        try:
            self._moved.set()
            await asyncio.sleep(self.patience.again)
        finally:
            self._paused = False
        ends = self._on_air is None and not self._queue and self.programme.successor(place) is None
        self._last = None if ends else place

    def _follow_playlist(self) -> None:
        """A changed playlist counts from the first item that is not fixed: what follows is taken out of the queue."""
        playlist = self.programme.playlist
        if playlist.version == self._seen:
            return
        self._seen = playlist.version
        self._failures = 0
        if self._on_air is None and not self._queue:
            return
        before = self._on_air
        ahead = before.left(self.canvas) if before is not None else 0.0
        kept = deque[_Ready]()
        for ready in self._queue:
            fixed = ahead <= self.patience.fixed or (before is None and not kept)
            if not fixed and not self._still_follows(kept[-1] if kept else before, ready):
                break
            ahead += ready.left(self.canvas)
            kept.append(ready)
        for ready in list(self._queue)[len(kept) :]:
            self._close(ready)
        last = kept[-1] if kept else before
        self._last = last.place if last is not None else self._last
        self._queue = kept
        self._left_out.clear()

    def _still_follows(self, before: _Ready | None, ready: _Ready) -> bool:
        place = before.place if before is not None else None
        for _ in range(len(self.programme.playlist.items)):
            place = self.programme.successor(place)
            if place is None or place.mark == ready.place.mark:
                break
            if place.mark not in self._left_out:
                return False
        return place is not None and place.mark == ready.place.mark

    def _close(self, ready: _Ready) -> None:
        task = start_task(ready.decoder.close(), what="end of a decoder")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_all(self) -> None:
        for ready in (*([self._on_air] if self._on_air is not None else []), *self._queue):
            self._close(ready)
        self._on_air = None
        self._queue.clear()
        if self._closing:
            await asyncio.wait(set(self._closing))

    async def _wait(self, event: asyncio.Event, *, seconds: float) -> None:
        event.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


def _length(length: float | None, *, start: float, end: float | None) -> float | None:
    ends = [each for each in (length, end) if each is not None]
    return max(min(ends) - start, 0.0) if ends else None
