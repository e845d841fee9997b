"""Makes the packages of a film consistent with its captions, after each change of either.

Jobs of several clients change captions and package films, and none of them may replace what a job of another client has published.
Therefore the product itself writes the two short texts that name the tracks, one process at a time for each film.
"""

from __future__ import annotations

import logging
from asyncio import Lock
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from domain.asset.values import FOUND
from domain.channel.placeholders import CBCS, CENC, CLEAR
from domain.kernel.media_files import MediaFiles
from projections.kernel.database.database import Database
from workers.job.caption_answers import CaptionAnswers
from workers.media.captions.tracks import TextTrack, in_manifest, in_playlist

_LOCK: Final = 0x63617074  # "capt"
_LARGEST: Final = 4 * 1024 * 1024
_TRIES: Final = 5
_LOCKED: Final = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"

_log = logging.getLogger(__name__)

Change = Callable[[bytes], bytes]


class CaptionPackages:
    """Rewrites `master.m3u8` and `manifest.mpd` if their tracks are not those of the Event. It removes the tracks from the source
    that are to be deleted."""

    def __init__(self, database: Database, captions: CaptionAnswers, *, files: MediaFiles) -> None:
        self._database = database
        self._captions = captions
        self._files = files
        self._turn = Lock()
        """A lock that is taken before a connection: otherwise tasks that wait could hold all connections of the pool while the
        first one needs another."""

    async def agree(self, event_id: UUID) -> None:
        content = str(event_id)
        async with self._turn, self._database.connection() as connection, connection.transaction():
            await connection.execute(_LOCKED, (_LOCK, content))
            tracks, leaving = await self._captions.tracks(content), await self._captions.leaving(content)
            for folder in (CLEAR, CENC, CBCS):
                await self._change(f"{content}/{folder}/master.m3u8", partial(_playlist, tracks=tracks, leaving=leaving))
                await self._change(f"{content}/{folder}/manifest.mpd", partial(_manifest, tracks=tracks, leaving=leaving))

    async def _change(self, path: str, change: Change) -> None:
        """Change a file. If a job has replaced it meanwhile, the new file is changed."""
        for _ in range(_TRIES):
            file = await self._files.find(path)
            if file is None:
                return
            try:
                before = await self._files.read(path, limit=_LARGEST)
                after = None if before is None else change(before)
            except ValueError as fault:
                _log.warning("the captions of %s cannot be added to it: %s", path, fault)
                return
            if after is None or after == before or await self._files.replace(file, after):
                return


def _playlist(before: bytes, *, tracks: Sequence[TextTrack], leaving: Sequence[TextTrack]) -> bytes:
    text = before.decode()
    for track in leaving:
        text = in_playlist(text, (), folder=FOUND, stem=track.stem)
    return in_playlist(text, tracks).encode()


def _manifest(before: bytes, *, tracks: Sequence[TextTrack], leaving: Sequence[TextTrack]) -> bytes:
    for track in leaving:
        before = in_manifest(before, (), folder=FOUND, stem=track.stem)
    return in_manifest(before, tracks)
