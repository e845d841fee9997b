"""Resumable uploads to YouTube: a session takes parts by Content-Range, and says after each how much it has.

The address of a session opens it without a login, so it is sealed in the state of the upload."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from re import compile as regex
from typing import Any, Final

from workers.adapters.targets.documents import document, same_origin
from workers.adapters.targets.parts import pieces
from workers.adapters.targets.sealed import sealed, unsealed
from workers.adapters.targets.youtube_api import YouTubeApi, refused
from workers.ports import Reply
from workers.target_ports import ServiceAddresses, TargetFailed, UploadProgress, UploadSource, UploadState

GRANULE: Final = 256 * 1024
"""The size of each part but the last is a multiple of it."""
PART: Final = 64 * GRANULE
_LARGEST: Final = 256 * 1024**3
VIDEOS: Final = "/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status"
CAPTIONS: Final = "/upload/youtube/v3/captions?uploadType=resumable&part=snippet"
_RESUME: Final = 308
_RANGE: Final = regex(r"(?:bytes=)?0-(\d{1,15})")


class ResumableUpload:
    """The upload of one file."""

    def __init__(
        self,
        api: YouTubeApi,
        source: UploadSource,
        *,
        addresses: ServiceAddresses,
        secret: str,
        path: str = VIDEOS,
        part: int,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> None:
        self._api = api
        self._source = source
        self._addresses = addresses
        self._secret = secret
        self._path = path
        self._part = part
        self._save = save
        self._progress = progress

    async def run(self, video: Mapping[str, Any], state: UploadState | None) -> Mapping[str, Any]:
        """The video that YouTube has made of it. `video` is what is said of it at the beginning."""
        if not 0 < self._source.size <= _LARGEST:
            raise TargetFailed("media", "The file is empty, or larger than the 256 GB that YouTube takes.")
        session = self._session_of(state)
        reply = await self._asked(session) if session is not None else None
        if session is None or reply is None:
            session, at = await self._begun(video), 0
            await self._kept(session)
        elif reply.status != _RESUME:
            return self._made(reply)
        else:
            at = self._confirmed(reply)
        while True:
            reply = await self._sent(session, at)
            if reply.status != _RESUME:
                return self._made(reply)
            before, at = at, self._confirmed(reply)
            if at <= before:
                raise TargetFailed("retry", "YouTube has not taken the part that was sent.")
            await self._kept(session)

    async def _begun(self, video: Mapping[str, Any]) -> str:
        headers = {"X-Upload-Content-Length": str(self._source.size), "X-Upload-Content-Type": self._source.media_type}
        reply = await self._api.request("POST", f"{self._addresses.youtube}{self._path}", headers=headers, body=video)
        if reply.status != 200:
            raise refused(reply)
        session = reply.headers.get("location", "")
        if not same_origin(session, self._addresses.youtube):
            raise TargetFailed("destination", "YouTube names a place for the upload that is not its own: nothing was sent there.")
        return session

    async def _asked(self, session: str) -> Reply | None:
        """How far it is; None: YouTube does not know this session any more."""
        reply = await self._api.request("PUT", session, headers={"Content-Range": f"bytes */{self._source.size}"})
        return None if reply.status in (400, 404, 410) else reply

    async def _sent(self, session: str, at: int) -> Reply:
        size = min(self._part, self._source.size - at)
        headers = {
            "Content-Type": self._source.media_type,
            "Content-Range": f"bytes {at}-{at + size - 1}/{self._source.size}",
        }

        def sent(count: int) -> None:
            self._progress(UploadProgress(at + count, self._source.size))

        part = partial(pieces, self._source.path, start=at, size=size, sent=sent)
        return await self._api.request("PUT", session, headers=headers, pieces=part, size=size)

    def _confirmed(self, reply: Reply) -> int:
        told = reply.headers.get("range")
        found = _RANGE.fullmatch(told) if told else None
        at = int(found[1]) + 1 if found is not None else 0
        if (told and found is None) or at >= self._source.size:
            raise TargetFailed("retry", "YouTube says that it has what was not sent.")
        return at

    def _made(self, reply: Reply) -> Mapping[str, Any]:
        if reply.status in (404, 410):
            raise TargetFailed("retry", "YouTube does not know the upload any more: it begins anew.")
        if reply.status not in (200, 201):
            raise refused(reply)
        return document(reply)

    async def _kept(self, session: str) -> None:
        await self._save({"session": sealed(session, secret=self._secret), "sha256": self._source.sha256})

    def _session_of(self, state: UploadState | None) -> str | None:
        match state:
            case {"session": str(kept), "sha256": self._source.sha256}:
                session = unsealed(kept, secret=self._secret)
                return session if session is not None and same_origin(session, self._addresses.youtube) else None
        return None
