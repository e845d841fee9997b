"""The programme of one encoder of a session: the playlist as it changes, the item on the air, and the items that were skipped and
why.

The item on the air is stored outside of the process, so that a later session knows what is to be on the air by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from domain.composition.values import Item
from domain.kernel.clock import Clock
from domain.kernel.ports import ServiceNotes
from projections.kernel.background_task import TRANSIENT, run_forever, start_task
from workers.playout.schedule import PlayoutAnchor, due, successor
from workers.ports.playout import (
    DueItem,
    ItemFiles,
    OpenedItem,
    Place,
    PlaceStore,
    Playlists,
    PlayoutCounts,
    PlayoutPlaylist,
    item_label,
)

LOOK: Final = 1.0
"""Seconds between two reads of the playlist, and between two writes of the place."""
LAST: Final = 3.0
"""Seconds for which the end of a playout waits for the last write of its place."""
_AHEAD: Final = 3
_MOST_LENGTHS: Final = 4_096

_log = logging.getLogger(__name__)


class PlayoutProgramme:
    """The programme of one encoder. `last_place` is the place that the previous session under the same order stored in `places`."""

    def __init__(
        self,
        event_id: UUID,
        playlist: PlayoutPlaylist,
        *,
        playlists: Playlists,
        files: ItemFiles,
        places: PlaceStore,
        notes: ServiceNotes,
        clock: Clock,
        counts: PlayoutCounts,
        last_place: Mapping[str, Any] | None = None,
        look: float = LOOK,
    ) -> None:
        self.playlist = playlist
        self.counts = counts
        self.skipped = 0
        self._event_id = event_id
        self._playlists = playlists
        self._files = files
        self._places = places
        self._notes = notes
        self._clock = clock
        self._look = look
        self._anchor, self._lengths = _read(last_place or {})
        self._noted: dict[str, str] = {}
        self._noting: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    # --- what is to be played

    def due(self) -> DueItem | None:
        """Return what is to be on the air now, by the clock."""
        return due(self.playlist, self._anchor, now=self.now(), lengths=self._lengths)

    def successor(self, place: Place | None) -> Place | None:
        return successor(self.playlist, place)

    def item(self, place: Place) -> Item | None:
        """Return the item at this place; None if the playlist has changed meanwhile."""
        marks = self.playlist.marks
        return self.playlist.items[place.index] if place.index < len(marks) and marks[place.index] == place.mark else None

    async def open(self, item: Item, *, place: Place, within: float) -> OpenedItem:
        """Open an item, and prefetch the items after it. Raise `Unplayable`."""
        following, after = list[Item](), place
        for _ in range(_AHEAD):
            after = self.successor(after) or place
            if after == place:
                break
            following.append(self.playlist.items[after.index])
        self._files.expect(following)
        return await self._files.open(item, within=within)

    def length(self, mark: str) -> float | None:
        return self._lengths.get(mark)

    def now(self) -> float:
        return self._clock().timestamp()

    # --- what was on the air

    def began(self, place: Place, *, at: float) -> None:
        """Record that the item is on the air; its beginning was due `at`."""
        self._anchor = PlayoutAnchor(place, at)
        self._noted.pop(place.mark, None)
        self.counts.played()
        self._changed.set()

    def over(self, place: Place) -> None:
        """Record that the playlist is over after this item."""
        if self._anchor is None or not self._anchor.over:
            self._anchor = PlayoutAnchor(place, self.now(), over=True)
            self._changed.set()

    def measured(self, mark: str, seconds: float) -> None:
        if self._lengths.get(mark) != seconds:
            self._lengths[mark] = seconds
            while len(self._lengths) > _MOST_LENGTHS:
                del self._lengths[next(iter(self._lengths))]
            self._changed.set()

    def skip(self, place: Place, *, item: Item, reason: str) -> None:
        """Record that an item is skipped. This is noted once for each reason until the item was on the air. The caller does not
        wait for the note."""
        self.skipped += 1
        self.counts.skipped()
        if self._noted.get(place.mark) == reason:
            return
        self._noted[place.mark] = reason
        message = f"item {place.index + 1} of the playlist, {item_label(item)}, was skipped: {reason}"
        task = start_task(self._note(message), what="note of a playout")
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    # --- tasks of the player

    async def follow(self) -> None:
        """Read the playlist repeatedly. While the database does not answer, the playlist stays as it is."""
        await run_forever(self._read_playlist, what="playlist of a playout", pause=self._look)

    async def keep(self) -> None:
        """Write the place whenever it has changed, and at the end if it was not written yet."""
        try:
            await run_forever(self._keep_place, what="place of a playout", pause=self._look)
        finally:
            if self._changed.is_set():
                with suppress(*TRANSIENT):
                    async with asyncio.timeout(LAST):
                        await self._places.keep(self.place())

    async def _note(self, message: str) -> None:
        with suppress(*TRANSIENT):
            await self._notes.warn(message, subject=str(self._event_id))

    async def _read_playlist(self) -> None:
        read = await self._playlists.of(self._event_id) or PlayoutPlaylist(-1, ())
        if read != self.playlist:
            self.playlist = read
        await asyncio.sleep(self._look)

    async def _keep_place(self) -> None:
        await self._changed.wait()
        self._changed.clear()
        try:
            await self._places.keep(self.place())
        except BaseException:
            self._changed.set()
            raise
        await asyncio.sleep(self._look)

    def place(self) -> Mapping[str, Any]:
        """Return the place to store. It names items by their marks only, since their values may hold secrets."""
        lengths = {mark: round(self._lengths[mark], 4) for mark in self.playlist.marks if mark in self._lengths}
        if self._anchor is None:
            return {"lengths": lengths}
        place = self._anchor.place
        if place.mark in self._lengths:
            lengths[place.mark] = round(self._lengths[place.mark], 4)
        anchor = {"index": place.index, "mark": place.mark, "at": round(self._anchor.at, 4), "over": self._anchor.over}
        return {"anchor": anchor, "lengths": lengths}


def _read(place: Mapping[str, Any]) -> tuple[PlayoutAnchor | None, dict[str, float]]:
    """Parse a stored place. A place that another release wrote in another form is ignored."""
    try:
        lengths = {str(mark): float(seconds) for mark, seconds in place.get("lengths", {}).items()}
        anchor = place.get("anchor")
        if anchor is None:
            return None, lengths
        return PlayoutAnchor(
            Place(int(anchor["index"]), str(anchor["mark"])), float(anchor["at"]), over=bool(anchor["over"])
        ), lengths
    except (AttributeError, KeyError, TypeError, ValueError):
        _log.warning("the place of a playout cannot be read; it restarts from the beginning")
        return None, {}
