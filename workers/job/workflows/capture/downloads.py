"""Requests to origins, several at a time through one guarded client, each within its own limits."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from projections.kernel.sizes import MIB
from workers.job.context import StepFailed
from workers.job.workflows.capture.segments import MediaResource, SourceFault
from workers.ports.outbound import Download, DownloadLimits, OutboundFailed, OutboundRefused

MOST_PLAYLIST: Final = 8 * MIB
PLAYLIST_SECONDS: Final = 15.0
MOST_SEGMENT: Final = 512 * MIB
SEGMENT_SECONDS: Final = 120.0
SILENCE: Final = 10.0
_LOOK: Final = 64 * MIB
_LATER: Final = frozenset({404, 408, 425, 429})
"""Statuses after which a segment may still come: it may not have reached the origin, or its cache, yet."""


@dataclass(frozen=True, slots=True)
class PlaylistText:
    """A playlist, with its URL after redirects."""

    url: str
    body: bytes


class Downloads:
    """The requests of a capture. Raises `SourceFault` for faults of an origin, and `StepFailed` beyond a limit of the whole
    capture."""

    def __init__(self, client: Download, folder: Path, *, limits: DownloadLimits, silence: float = SILENCE) -> None:
        self._client = client
        self._silence = silence
        self._folder = folder
        self._limits = limits
        self._until = monotonic() + limits.seconds
        self._got = 0
        self._look_at = 0
        self._count = 0
        self.latest: dict[str, PlaylistText] = {}
        """The latest texts from the addresses of `remembered`."""
        self.remembered: frozenset[str] = frozenset()

    async def text(self, url: str) -> PlaylistText:
        text = await self._text(url)
        if url in self.remembered:
            self.latest[url] = text
        return text

    async def _text(self, url: str) -> PlaylistText:
        self._count += 1
        to = self._folder / f"playlist-{self._count}"
        try:
            final_url = await self._get(MediaResource(url), to, most=MOST_PLAYLIST, seconds=PLAYLIST_SECONDS)
            return PlaylistText(final_url, to.read_bytes())
        finally:
            to.unlink(missing_ok=True)

    async def piece(self, resource: MediaResource, *, most: int = MOST_PLAYLIST) -> bytes:
        """Return a small part of a file."""
        if resource.part is not None and resource.part.size > most:
            raise SourceFault(f"A part of a file has more than {most} bytes.", final=True)
        self._count += 1
        to = self._folder / f"piece-{self._count}"
        try:
            await self._get(resource, to, most=most, seconds=PLAYLIST_SECONDS)
            return to.read_bytes()
        finally:
            to.unlink(missing_ok=True)

    async def file(self, resource: MediaResource, to: Path) -> None:
        await self._get(resource, to, most=MOST_SEGMENT, seconds=SEGMENT_SECONDS)

    async def _get(self, resource: MediaResource, to: Path, *, most: int, seconds: float) -> str:
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.download(
                    resource.url, to, part=resource.part, most=most, seconds_without_data=self._silence, seen=self._count_bytes
                )
        except TimeoutError:
            raise SourceFault(f"The host did not send the whole file within {seconds:g} s.") from None
        except OutboundRefused as refused:
            raise SourceFault(str(refused), final=True) from None
        except OutboundFailed as failed:
            raise SourceFault(str(failed), final=failed.kind == "size") from None
        if answer.status not in (200, 206):
            wrong = 400 <= answer.status < 500 and answer.status not in _LATER
            raise SourceFault(f"The host answered {answer.status}.", final=wrong)
        if answer.headers.get("content-encoding", "identity").lower() not in ("identity", ""):
            raise SourceFault("The host sends compressed data, although it was asked not to.", final=True)
        return answer.url

    def _count_bytes(self, piece: bytes) -> None:
        self._got += len(piece)
        if self._got > self._limits.size:
            raise StepFailed(f"The capture has more than {self._limits.size} bytes, which is the limit.", final=True)
        if monotonic() > self._until:
            raise StepFailed(f"The capture took longer than {self._limits.seconds:g} s.", final=True)
        if self._got >= self._look_at:
            self._look_at = self._got + _LOOK
            disk = os.statvfs(self._folder)
            if disk.f_bavail * disk.f_frsize < self._limits.free:
                raise StepFailed(f"The disk would have less than {self._limits.free} bytes of free space.")
