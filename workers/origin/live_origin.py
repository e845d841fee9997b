"""The built-in origin: publishing points that take live streams, and play them. For laptops and tests. ADR 0055."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from domain.configuration.point_token import PointToken, read_point_token
from domain.kernel.clock import Clock
from domain.kernel.encryption import IngestKeys
from workers.origin.ingest import Ingest
from workers.origin.knowledge import Knowledge, NoDatabase
from workers.origin.limits import OriginLimits
from workers.origin.playback import Playback
from workers.origin.recordings import Points
from workers.origin.room import Room
from workers.ports import MediaSource


class LiveOrigin:
    """`keys` are those of tokens. `files` reads below `root`; `free` gives a disk's free bytes. Without what is `known` of its
    points it asks everybody for a token."""

    def __init__(
        self,
        root: Path,
        *,
        keys: IngestKeys,
        limits: OriginLimits,
        files: MediaSource,
        free: Callable[[Path], int],
        clock: Clock,
        known: Knowledge | None = None,
    ) -> None:
        def now() -> float:
            return clock().timestamp()

        self._keys = keys
        self._now = now
        self.known: Knowledge = known or NoDatabase()
        points = Points(root)
        self._room = Room(root, points=points, limits=limits, free=free, clock=now, known=self.known)
        self.files = files
        self.ingest = Ingest(points, limits=limits, room=self._room, clock=now, runs=self.known.runs)
        self.playback = Playback(points, window=limits.window, clock=now)

    def token(self, point: str, text: str) -> PointToken | None:
        """The token for this publishing point that the text is, and that has not expired; else None."""
        now = self._now()
        found = [read_point_token(key, text, point=point, now=now) for key in self._keys.all]
        return next((one for one in found if one is not None), None)

    async def tidy(self) -> None:
        """Remove what has been kept for long enough, and what there is no room for."""
        await self._room.tidy()
