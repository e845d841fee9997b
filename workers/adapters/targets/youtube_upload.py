"""Resumable uploads to YouTube: a session takes parts by Content-Range, and reports after each part how much it has received.

The address of a session gives access without a login, so it is sealed in the state of the upload.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import sha256
from re import compile as regex
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from workers.adapters.targets.documents import document, same_origin
from workers.adapters.targets.parts import pieces
from workers.adapters.targets.youtube_api import YouTubeApi, refused
from workers.ports.outbound import Reply
from workers.ports.targets import ServiceAddresses, TargetFailed, UploadProgress, UploadSource, UploadState

# Sealing of addresses in the state of an upload that give access without a login. They are encrypted with a secret of the
# destination. The state is stored next to the job and contains no secret in plain text; it can be read only with the decrypted
# destination.

_NONCE: Final = 12
_PURPOSE: Final = b"state of an upload\0"


def seal(text: str, *, secret: str) -> str:
    nonce = os.urandom(_NONCE)
    return urlsafe_b64encode(nonce + _cipher(secret).encrypt(nonce, text.encode(), _PURPOSE)).decode()


def unseal(text: str, *, secret: str) -> str | None:
    """Return the text; None if it was sealed with another secret or is damaged."""
    try:
        raw = urlsafe_b64decode(text)
        return _cipher(secret).decrypt(raw[:_NONCE], raw[_NONCE:], _PURPOSE).decode()
    except (ValueError, InvalidTag):
        return None


def _cipher(secret: str) -> AESGCM:
    return AESGCM(sha256(_PURPOSE + secret.encode()).digest())


GRANULE: Final = 256 * 1024
"""The unit of the size of each part except the last, in bytes."""
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
        """Upload the file and return the video that YouTube made of it. `video` is the description that is sent first."""
        if not 0 < self._source.size <= _LARGEST:
            raise TargetFailed("media", "The file is empty, or larger than the 256 GB that YouTube accepts.")
        session = self._session_of(state)
        reply = await self._request_progress(session) if session is not None else None
        if session is None or reply is None:
            session, at = await self._begin(video), 0
            await self._save_session(session)
        elif reply.status != _RESUME:
            return self._result(reply)
        else:
            at = self._confirmed(reply)
        while True:
            reply = await self._send_part(session, at)
            if reply.status != _RESUME:
                return self._result(reply)
            before, at = at, self._confirmed(reply)
            if at <= before:
                raise TargetFailed("retry", "YouTube has not accepted the part that was sent.")
            await self._save_session(session)

    async def _begin(self, video: Mapping[str, Any]) -> str:
        headers = {"X-Upload-Content-Length": str(self._source.size), "X-Upload-Content-Type": self._source.media_type}
        reply = await self._api.request("POST", f"{self._addresses.youtube}{self._path}", headers=headers, body=video)
        if reply.status != 200:
            raise refused(reply)
        session = reply.headers.get("location", "")
        if not same_origin(session, self._addresses.youtube):
            raise TargetFailed("destination", "YouTube returned an upload address of another origin: nothing was sent there.")
        return session

    async def _request_progress(self, session: str) -> Reply | None:
        """Return the progress of the session; None if YouTube no longer knows it."""
        reply = await self._api.request("PUT", session, headers={"Content-Range": f"bytes */{self._source.size}"})
        return None if reply.status in (400, 404, 410) else reply

    async def _send_part(self, session: str, at: int) -> Reply:
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
        header = reply.headers.get("range")
        match = _RANGE.fullmatch(header) if header else None
        at = int(match[1]) + 1 if match is not None else 0
        if (header and match is None) or at >= self._source.size:
            raise TargetFailed("retry", "YouTube reports more data than was sent.")
        return at

    def _result(self, reply: Reply) -> Mapping[str, Any]:
        if reply.status in (404, 410):
            raise TargetFailed("retry", "YouTube no longer knows the upload: it starts over.")
        if reply.status not in (200, 201):
            raise refused(reply)
        return document(reply)

    async def _save_session(self, session: str) -> None:
        await self._save({"session": seal(session, secret=self._secret), "sha256": self._source.sha256})

    def _session_of(self, state: UploadState | None) -> str | None:
        match state:
            case {"session": str(sealed_session), "sha256": self._source.sha256}:
                session = unseal(sealed_session, secret=self._secret)
                return session if session is not None and same_origin(session, self._addresses.youtube) else None
        return None
