"""Encoders that send to an origin in this process, with a clock that the test controls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from domain.channel.point_token import PointToken, Use
from domain.kernel.encryption import IngestKeys
from tests.support.clock import HandClock
from tests.workers.origin.mp4 import AAC, AVC, Codec, fragment, init
from workers.adapters.media_directory import MediaDirectory
from workers.origin.knowledge import IsAwaited
from workers.origin.limits import OriginLimits
from workers.origin.live_origin import LiveOrigin
from workers.origin.names import upload
from workers.origin.playback import PlaybackView

LIVE = PlaybackView(archive=False, up="")
ARCHIVE = PlaybackView(archive=True, up="../")
CODECS: Mapping[str, Codec] = {"v": AVC, "a": AAC}


def writer(session: int) -> PointToken:
    return PointToken(Use.HAND, 2**32, 2**32 + 1, session)


@dataclass(slots=True)
class Disk:
    """The free space on the disk."""

    free: int = 10**15

    def __call__(self, path: Path) -> int:
        return self.free


class Studio:
    """An origin at `root`, and its directory of points. Several with the same root act like several processes of one
    installation."""

    def __init__(self, root: Path, clock: HandClock, **limits: Any) -> None:
        self.root, self.clock, self.disk = root, clock, Disk()
        self.published: dict[str, Sequence[tuple[float, float]]] = {}
        self.ended: set[int] = set()
        self.to_capture: dict[tuple[str, int], bool] = {}
        self.gone: list[tuple[str, int]] = []
        origin_limits = OriginLimits(**{"free": 0, "pace": 10**9, **limits})
        files = MediaDirectory(root)
        keys = IngestKeys(bytes(32))
        self.origin = LiveOrigin(root, keys=keys, limits=origin_limits, files=files, free=self.disk, clock=clock, directory=self)

    async def public_parts(self, point: str) -> Sequence[tuple[float, float]]:
        return self.published.get(point, ())

    async def runs(self, session: int) -> bool:
        return session not in self.ended

    async def awaited(self) -> IsAwaited:
        return lambda point, session: self.to_capture.get((point, session))

    async def lost(self, point: str, session: int) -> None:
        self.gone.append((point, session))

    async def put(self, path: str, *content: bytes, session: int = 1, point: str = "news", window: float | None = None) -> None:
        async def body() -> AsyncIterator[bytes]:
            for piece in content:
                yield piece

        await self.origin.ingest.take(point, upload(path), writer=writer(session), body=body(), window=window)

    async def master(self, view: PlaybackView = LIVE) -> str | None:
        return await self.origin.playback.master("news", view)

    async def manifest(self, view: PlaybackView = LIVE) -> str | None:
        return await self.origin.playback.manifest("news", view)

    async def media(self, track: str, view: PlaybackView = LIVE) -> str:
        return await self.origin.playback.media("news", view, track=track) or ""

    def moment(self) -> float:
        return self.clock().timestamp()


class Track:
    """A track of an encoder that sends HLS by PUT, as `medialedger` does: segment by segment, each with its playlist. The first
    letter of its name says if it is video or audio."""

    def __init__(
        self, studio: Studio, name: str, *, session: int = 1, lasts: float = 1.0, begins: float = 0.0, point: str = "news"
    ) -> None:
        self._studio, self._name, self._session, self._lasts, self._point = studio, name, session, lasts, point
        self._begins, self.count = begins, 0

    async def send(self, *, data: bytes = b"media", ended: bool = False, window: float | None = None) -> None:
        """Send the next segment."""
        name, number, put = self._name, self.count, partial(self._studio.put, point=self._point)
        if number == 0:
            await put(f"{name}.mp4", init(CODECS[name[0]]), session=self._session, window=window)
        time = self._begins + number * self._lasts
        await put(f"{name}-{number}.m4s", fragment(time, lasts=self._lasts, data=data), session=self._session)
        lines = ["#EXTM3U", f"#EXT-X-MEDIA-SEQUENCE:{number}", f'#EXT-X-MAP:URI="{name}.mp4"']
        lines += [f"#EXTINF:{self._lasts},", f"{name}-{number}.m4s", *(["#EXT-X-ENDLIST"] if ended else [])]
        await put(f"{name}.m3u8", "\n".join(lines).encode(), session=self._session)
        self.count += 1


def master_playlist(*videos: str) -> bytes:
    """A master playlist with these videos, and the sound a0."""
    lines = ["#EXTM3U", '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="a0.m3u8"']
    for name in videos:
        lines += ['#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"', f"{name}.m3u8"]
    return "\n".join(lines).encode()
