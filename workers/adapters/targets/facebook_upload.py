"""Resumable uploads to Facebook: the phases start, transfer and finish. After each part, Facebook names the part that it expects
next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from workers.adapters.targets.documents import identifier
from workers.adapters.targets.facebook_api import FacebookApi, FacebookRefused
from workers.ports.targets import TargetFailed, UploadProgress, UploadSource, UploadState

PART: Final = 16 * 1024 * 1024
_SMALLEST: Final = 64 * 1024
"""The smallest acceptable part in bytes: with smaller parts, a large file would never be finished."""
_LARGEST: Final = 10 * 1024**3
_OTHER_OFFSET: Final = 1363037
_CORRECTIONS: Final = 3
_ENDED: Final = (1363019, 1363041)


@dataclass(frozen=True, slots=True)
class UploadSession:
    id: str
    video: str


class PhasedUpload:
    """The upload of one file to one page. `api` receives the file, `graph` all other requests."""

    def __init__(
        self,
        api: FacebookApi,
        source: UploadSource,
        *,
        graph: FacebookApi,
        path: str,
        part: int,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> None:
        self._api = api
        self._graph = graph
        self._source = source
        self._path = path
        self._part = part
        self._save = save
        self._progress = progress
        self._corrections = 0

    async def run(self, words: Mapping[str, str], state: UploadState | None) -> str:
        """Upload the file and return the id of the video. `words` is the description that is sent at the end."""
        if not 0 < self._source.size <= _LARGEST:
            raise TargetFailed("media", "The file is empty, or larger than the 10 GB that Facebook accepts.")
        session, at, end = self._resume(state) or await self._begin()
        while at < self._source.size:
            at, end = await self._send_part(session, at, end)
            await self._save_state(session, at)
        await self._finish(session, words)
        return session.video

    async def _begin(self) -> tuple[UploadSession, int, int]:
        form = {"upload_phase": "start", "file_size": str(self._source.size)}
        answer = await self._api.post(self._path, form)
        session = UploadSession(identifier(answer, "upload_session_id"), identifier(answer, "video_id"))
        at, end = self._expected_range(answer, 0)
        await self._save_state(session, at)
        return session, at, end

    async def _send_part(self, session: UploadSession, at: int, end: int) -> tuple[int, int]:
        """Send a part and return the range that is expected next. Facebook reports as an error that it expects another part than
        was sent."""
        size = min(end - at, self._part, self._source.size - at)
        form = {"upload_phase": "transfer", "upload_session_id": session.id, "start_offset": str(at)}

        def sent(count: int) -> None:
            self._progress(UploadProgress(at + count, self._source.size))

        try:
            answer = await self._api.transfer(self._path, self._source, form=form, start=at, size=size, sent=sent)
        except FacebookRefused as failed:
            if failed.subcode in _ENDED:
                await self._save({"sha256": self._source.sha256})
                raise TargetFailed("retry", "Facebook has ended the upload: it starts over.") from None
            self._corrections += 1
            if failed.subcode != _OTHER_OFFSET or "start_offset" not in failed.data or self._corrections > _CORRECTIONS:
                raise
            return self._expected_range(failed.data, None)
        return self._expected_range(answer, at + 1)

    def _expected_range(self, answer: Mapping[str, Any], least: int | None) -> tuple[int, int]:
        """Return the range that Facebook expects. `least` is the smallest valid beginning."""
        start, end = (_number(answer.get(name)) for name in ("start_offset", "end_offset"))
        size = self._source.size
        if start is None or end is None or not 0 <= start <= end <= size or (start == end < size):
            raise TargetFailed("retry", "Facebook asks for a part that the file does not have.")
        if least is not None and start < least:
            raise TargetFailed("retry", "Facebook has not accepted the part that was sent.")
        if end - start < min(_SMALLEST, size - start):
            raise TargetFailed("retry", "Facebook asks for parts that are too small.")
        return start, end

    async def _finish(self, session: UploadSession, words: Mapping[str, str]) -> None:
        """Finish the upload. If an earlier run did, but its answer was lost, the refusal is ignored."""
        form = {"upload_phase": "finish", "upload_session_id": session.id, **words}
        try:
            await self._api.post(self._path, form)
        except FacebookRefused:
            if not await is_uploaded(self._graph, session.video):
                raise

    async def _save_state(self, session: UploadSession, at: int) -> None:
        await self._save({"session": session.id, "video": session.video, "at": at, "sha256": self._source.sha256})

    def _resume(self, state: UploadState | None) -> tuple[UploadSession, int, int] | None:
        match state:
            case {"session": str(key), "video": str(video), "at": int(at), "sha256": self._source.sha256}:
                if 0 <= at <= self._source.size:
                    return UploadSession(key, video), at, self._source.size
        return None


async def is_uploaded(api: FacebookApi, video: str) -> bool:
    """Return True if Facebook has received all of a video."""
    answer = await api.get_or_none(video, {"fields": "status"})
    status = (answer or {}).get("status")
    phase = status.get("uploading_phase") if isinstance(status, Mapping) else None
    return isinstance(phase, Mapping) and phase.get("status") == "complete"


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
