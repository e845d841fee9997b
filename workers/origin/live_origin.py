"""The built-in origin: publishing points that take live streams, and play them. For laptops and tests. ADR 0055."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from domain.configuration.ingest_token import read_ingest_token
from domain.kernel.clock import Clock
from domain.kernel.encryption import IngestKeys
from workers.origin.ingest import Ingest
from workers.origin.limits import OriginLimits
from workers.origin.playback import Playback
from workers.origin.recordings import Points
from workers.origin.room import Awaited, Room
from workers.ports import MediaSource


async def nothing_known() -> Mapping[tuple[str, int], bool]:
    """Without the database nobody knows which recordings are still to be captured."""
    return {}


async def not_told(point: str, session: int) -> None:
    return None


class LiveOrigin:
    """`keys` are those of ingest tokens. `files` reads below `root`; `free` gives a disk's free bytes."""

    def __init__(
        self,
        root: Path,
        *,
        keys: IngestKeys,
        limits: OriginLimits,
        files: MediaSource,
        free: Callable[[Path], int],
        clock: Clock,
        awaited: Awaited = nothing_known,
        lost: Callable[[str, int], Awaitable[None]] = not_told,
    ) -> None:
        def now() -> float:
            return clock().timestamp()

        self._keys = keys
        points = Points(root)
        self._room = Room(root, points=points, limits=limits, free=free, clock=now, awaited=awaited, lost=lost)
        self.files = files
        self.ingest = Ingest(points, limits=limits, room=self._room, clock=now)
        self.playback = Playback(points, window=limits.window, clock=now)

    def session(self, point: str, token: str) -> int | None:
        """The session of an ingest token for this publishing point; None for any other text."""
        found = [read_ingest_token(key, token, point=point) for key in self._keys.all]
        return next((one for one in found if one is not None), None)

    async def tidy(self) -> None:
        """Remove what has been kept for long enough, and what there is no room for."""
        await self._room.tidy()
