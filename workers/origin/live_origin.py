"""The built-in origin: publishing points that receive live streams, and play them. It is for laptops and tests. See ADR 0055."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from domain.channel.point_token import PointToken, read_point_token
from domain.kernel.clock import Clock
from domain.kernel.encryption import IngestKeys
from workers.origin.ingest import Ingest
from workers.origin.knowledge import NoDatabase, PointDirectory
from workers.origin.limits import OriginLimits
from workers.origin.playback import Playback
from workers.origin.recordings import Points
from workers.origin.room import RecordingStorage
from workers.ports.media import MediaSource


class LiveOrigin:
    """The built-in origin. `keys` are those of tokens. `files` reads below `root`; `free` returns the free bytes of a disk. Without
    a `directory` of its points, it requires a token of everyone."""

    def __init__(
        self,
        root: Path,
        *,
        keys: IngestKeys,
        limits: OriginLimits,
        files: MediaSource,
        free: Callable[[Path], int],
        clock: Clock,
        directory: PointDirectory | None = None,
    ) -> None:
        def now() -> float:
            return clock().timestamp()

        self._keys = keys
        self._now = now
        self.directory: PointDirectory = directory or NoDatabase()
        points = Points(root)
        self._storage = RecordingStorage(root, points=points, limits=limits, free=free, clock=now, directory=self.directory)
        self.files = files
        self.ingest = Ingest(points, limits=limits, storage=self._storage, clock=now, runs=self.directory.runs)
        self.playback = Playback(points, window=limits.window, clock=now)

    def token(self, point: str, text: str) -> PointToken | None:
        """Return the token for this publishing point in the text; None if it is not one, or has expired."""
        now = self._now()
        tokens = [read_point_token(key, text, point=point, now=now) for key in self._keys.all]
        return next((point_token for point_token in tokens if point_token is not None), None)

    async def tidy(self) -> None:
        """Remove recordings that have been stored for long enough, and those for which there is no space."""
        await self._storage.tidy()
