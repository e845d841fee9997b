"""The playout of a programme: its items, one after the other, as one stream of raw pictures and sounds in real time (ADR 0067).

Raw frames carry no time: the frame with the number n is shown n frames after the first one. So no border between items can make a
gap or a jump, whatever the items are. Each frame is written when it is due by a monotonic clock. The decoder of the next item is
ready before the present one ends; the last picture, or black, bridges what does not come in time.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from domain.event.values import AudioInput
from projections.kernel.background_task import start_task
from workers.adapters.encoders.canvas import SAMPLE, Canvas
from workers.adapters.encoders.encode_command import Input
from workers.adapters.encoders.item_decoder import Over, Slot
from workers.adapters.encoders.raw_pipes import RawWriter, pipe
from workers.adapters.encoders.upcoming_items import PlayoutPatience, ReadyItem, UpcomingItems
from workers.kernel.confinement import Confinement
from workers.ports.playout import PlayoutStatistics, Programme, item_label

_PICTURES_WAITING: Final = 2
_SOUNDS_WAITING: Final = 250
PATIENCE: Final = PlayoutPatience()


@dataclass
class _Pace:
    """The times at which frames are due. The first frame is due when it is available."""

    canvas: Canvas
    began: float | None = None

    def late(self, frame: int) -> float:
        """Return by how many seconds the frame is late; negative before it is due."""
        if self.began is None:
            self.began = time.monotonic()
        return time.monotonic() - self.began - self.canvas.seconds(frame)

    async def due(self, frame: int) -> None:
        if (late := self.late(frame)) < 0:
            await asyncio.sleep(-late)


@dataclass(eq=False)
class Playout:
    """The playout of one encode: call `opened` before the encode is started, then `run`."""

    programme: Programme
    canvas: Canvas
    program: Path
    confinement: Confinement
    sounds: Sequence[AudioInput]
    patience: PlayoutPatience = PATIENCE
    _descriptors: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _frame: int = 0
    _repeated: int = 0
    _late: float = 0.0

    def __post_init__(self) -> None:
        self._pace = _Pace(self.canvas)
        self._upcoming = UpcomingItems(self.programme, self.canvas, self.program, self.confinement, self.patience)

    def opened(self) -> Input:
        """Open the pipes and return the arguments of an encode that reads them."""
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
        """Return the descriptors for the encode, which takes them over."""
        taken, self._descriptors = self._descriptors, []
        return taken

    def close(self) -> None:
        """Close the pipes of a playout that was not run."""
        for descriptor in self._ends:
            os.close(descriptor)
        self._ends = []

    @property
    def on_air(self) -> ReadyItem | None:
        return self._upcoming.on_air

    def statistics(self) -> PlayoutStatistics:
        on_air, following = self.on_air, next(iter(self._upcoming.queue), None)
        place = on_air.place if on_air is not None else None
        return PlayoutStatistics(
            item=None if place is None else place.index,
            value="" if on_air is None else item_label(on_air.item),
            position=0.0 if on_air is None else round(on_air.position(self.canvas), 3),
            length=None if on_air is None or on_air.length is None else round(on_air.length, 3),
            next=None if following is None else following.place.index,
            version=self.programme.playlist.version,
            skipped=self.programme.skipped,
            repeated=self._repeated,
            late=round(self._late, 3),
        )

    async def run(self) -> None:
        """Play until this is cancelled or the encode stops reading."""
        ends, self._ends = self._ends, []
        pictures = RawWriter(ends[0], most=_PICTURES_WAITING)
        sounds = RawWriter(ends[1], most=_SOUNDS_WAITING)
        tasks = [
            start_task(self._upcoming.prepare(), what="items of a playout"),
            start_task(self.programme.follow(), what="playlist of a playout"),
            start_task(self.programme.keep(), what="place of a playout"),
        ]
        try:
            await self._upcoming.until_first(seconds=self.patience.first)
            with suppress(BrokenPipeError):
                await self._play(pictures, sounds)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.gather(pictures.close(), sounds.close())
            await self._upcoming.close()

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
            on_air = self.on_air or self._next(frame)
            if on_air is None:
                return Slot(self.canvas.black, bytes(self.canvas.samples(frame) * SAMPLE))
            try:
                slot = on_air.decoder.take(frame)
            except Over:
                self._upcoming.end()
                continue
            if slot is not None:
                on_air.bridged = 0
                on_air.waited = on_air.waited if self._pace.late(frame) > self.patience.late else 0.0
                return slot
            if on_air.waited >= self.patience.late:
                if self.canvas.seconds(on_air.bridged) < self.patience.gone:
                    return self._bridge(on_air, frame)
                self._give_up(on_air)
                continue
            begun = time.monotonic()
            await on_air.decoder.read_more(seconds=self.patience.late - on_air.waited)
            on_air.waited += time.monotonic() - begun

    def _bridge(self, on_air: ReadyItem, frame: int) -> Slot:
        """Return the last picture again."""
        on_air.bridged += 1
        self._repeated += 1
        self.programme.counts.repeated()
        return on_air.decoder.bridge(frame)

    def _next(self, frame: int) -> ReadyItem | None:
        ready = self._upcoming.take()
        if ready is None:
            return None
        now = self.programme.now()
        if ready.began is not None:
            later = round((now - ready.began - ready.offset) * self.canvas.rate)
            ready.decoder.leave_out(frame, max(later, 0))
        self.programme.began(ready.place, at=now - self._pace.late(frame) if ready.began is None else ready.began)
        return ready

    def _give_up(self, on_air: ReadyItem) -> None:
        """Skip an item that gives no more frames and does not end."""
        self._upcoming.end()
        self.programme.skip(on_air.place, item=on_air.item, reason="its decoder gave no more pictures while it was on the air")
