"""Answers to the questions of steps about captions: the text that a client has sent, and the tracks of a film."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from domain.asset.row import AssetRow
from domain.asset.values import FOUND, CaptionKind
from projections.asset.queries import AssetQueries, StoredCaptionTexts
from workers.job.context import StepContext, StepFailed
from workers.media.captions.tracks import TextTrack

TEXT: Final = "caption_text"
TRACKS: Final = "caption_tracks"
REMOVED: Final = "removed_captions"
_GONE: Final = "The text that was sent is no longer stored: send it again."

FindTracks = Callable[[str], Awaitable[Sequence[TextTrack]]]
"""Finds the text tracks of the content with this id."""

_log = logging.getLogger(__name__)


async def no_tracks(content_id: str) -> Sequence[TextTrack]:
    """Find nothing: for workers without captions."""
    return ()


class CaptionAnswers:
    """Answers the steps of a process."""

    def __init__(self, texts: StoredCaptionTexts, assets: AssetQueries) -> None:
        self._texts = texts
        self._assets = assets

    async def tracks(self, content_id: str) -> Sequence[TextTrack]:
        """List the text tracks that clients have added to a film."""
        event = _event(content_id)
        return () if event is None else [_track(row) for row in await self._assets.captions(event)]

    async def removed(self, content_id: str) -> Sequence[TextTrack]:
        """List the text tracks of the source of a film that were deleted, and not found again by another ingest."""
        event = _event(content_id)
        return () if event is None else [_track(row) for row in await self._assets.removed_captions(event)]

    async def leaving(self, content_id: str) -> Sequence[TextTrack]:
        """List the text tracks of the source of a film that are deleted, and whose files are still there."""
        event = _event(content_id)
        rows = () if event is None else await self._assets.of_event(event)
        return [_track(row) for row in rows if row.is_found and row.removed]

    async def text(self, sent: str) -> Mapping[str, Any]:
        try:
            sent_text = await self._texts.read(UUID(sent))
        except Exception as fault:  # of any kind: the step would wait for ever
            _log.error("a step cannot get its captions: %s: %s", type(fault).__name__, fault)
            return {"refused": "The captions cannot be read; see the log of the worker."}
        return {"refused": _GONE, "final": True} if sent_text is None else {"text": b64encode(sent_text).decode()}

    async def forget(self, sent: str) -> None:
        await self._texts.forget(UUID(sent))


async def answer(find: FindTracks, content_id: str) -> Mapping[str, Any]:
    """Make the answer for a step that asks for tracks of its content."""
    try:
        tracks = await find(content_id)
    except Exception as fault:  # of any kind: the step would wait for ever
        _log.error("a step cannot get the tracks of captions: %s: %s", type(fault).__name__, fault)
        return {"refused": "The captions of the film cannot be read; see the log of the worker."}
    return {
        "tracks": [{"name": track.name, "language": track.language, "kind": track.kind, "stem": track.stem} for track in tracks]
    }


def caption_tracks(context: StepContext[Any]) -> Sequence[TextTrack]:
    """Ask the worker for the tracks that clients have added to the film of a step.

    The list is empty if the worker does not answer such questions: after the job, the packages are brought into line with the
    captions anyway.
    """
    tracks = context.ask(TRACKS).get("tracks", ())
    return [TextTrack(**{**track, "kind": CaptionKind(track["kind"])}) for track in tracks]


def removed_tracks(context: StepContext[Any]) -> Sequence[TextTrack]:
    """Ask the worker for the tracks of the source that were deleted. The list is empty if the worker does not answer such
    questions."""
    answer = context.ask(REMOVED)
    if "refused" in answer:
        raise StepFailed(str(answer["refused"]))
    return [TextTrack(**{**track, "kind": CaptionKind(track["kind"]), "folder": FOUND}) for track in answer.get("tracks", ())]


def _event(content_id: str) -> UUID | None:
    try:
        return UUID(content_id)
    except ValueError:
        return None


def _track(row: AssetRow) -> TextTrack:
    assert row.language is not None
    assert row.kind is not None
    *_, folder, file = row.path.split("/")
    return TextTrack(name=row.name, language=row.language, kind=row.kind, stem=file.removesuffix(".vtt"), folder=folder)
