"""Targets without uploads: CUSTOM, which takes only live streams, and a placeholder for targets that are not available."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from domain.destination.custom_stream import NAME, NEEDS_NAME, URL, is_elsewhere, stream_of
from workers.adapters.encoders.point import NotSent
from workers.adapters.encoders.rtmp import RtmpPublication
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import published_names
from workers.adapters.targets.answers import translate_client_faults
from workers.ports.live import LIVE, LiveIngest
from workers.ports.targets import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

_STREAMS: Final = ("rtmp", "rtmps")
_PORTS: Final = {"rtmp": 1935, "rtmps": 443, "http": 80, "https": 443}
SECONDS: Final = 5.0
_NO_SRT: Final = (
    "SRT is not supported, neither by pushes nor by streaming servers: use the rtmp:// or rtmps:// address of the receiver."
)


class WithoutUpload:
    """A target that refuses every operation with a reason."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self, why: str) -> None:
        self._why = why

    async def check(self) -> None:
        raise self._refusal()

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        raise self._refusal()

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        raise self._refusal()

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        raise self._refusal()

    async def unpublish(self, order: PublicationOrder, details: Details) -> None:
        raise self._refusal()

    async def update(self, order: PublicationOrder, details: Details) -> None:
        raise self._refusal()

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        raise self._refusal()

    async def close(self) -> None:
        return None

    def _refusal(self) -> TargetFailed:
        return TargetFailed("destination", self._why)


class CustomTarget(WithoutUpload):
    """A receiver of live streams. Its configuration is `cstm_streamUrl`, of RTMP or RTMPS, and `cstm_streamName`. A publication may
    have its own values, and must have its own name for another origin. The receiver accepts any stream: nothing is created there
    before a stream, and nothing remains after it."""

    capabilities: frozenset[str] = frozenset({LIVE})

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, seconds: float = SECONDS) -> None:
        super().__init__(
            "A CUSTOM destination takes live streams only, no files: publish the Event live, or choose another destination."
        )
        self._config = config
        self._client = client
        self._seconds = seconds

    async def check(self) -> None:
        """Do the RTMP handshake; for other protocols only connect."""
        parts = _parsed(published_names.text(self._config, "cstm_streamUrl"))
        port = parts.port or _PORTS.get(parts.scheme)
        if port is None:
            raise TargetFailed("destination", "The cstm_streamUrl needs a port.")
        with translate_client_faults():
            await self._greet(parts, port)

    async def open_live(self, order: PublicationOrder, details: Details | None) -> LiveIngest:
        stream = stream_of(self._config, order.options)
        if NAME not in stream and is_elsewhere(self._config, order.options):
            raise TargetFailed("publication", f"The {NAME} of the publication {NEEDS_NAME}.")
        url, name = (published_names.text(stream, member) for member in (URL, NAME))
        parts = _parsed(url)
        if parts.scheme not in _STREAMS:
            raise TargetFailed("destination", "The cstm_streamUrl must begin with rtmp:// or rtmps://.")
        return LiveIngest(url, name, {"ingestionDetails": [_shown(parts)]})

    async def go_live(self, order: PublicationOrder, details: Details) -> Details:
        return details

    async def close_live(self, order: PublicationOrder, details: Details) -> None:
        """Do nothing: the stream is over when nothing is sent any more."""

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        """Do nothing: a stream that is over leaves nothing."""

    async def close(self) -> None:
        await self._client.close()

    async def _greet(self, parts: SplitResult, port: int) -> None:
        secure = parts.scheme in ("rtmps", "https")
        reader, writer = await self._client.connect(_authority(parts), port=port, secure=secure)
        try:
            if parts.scheme.startswith("rtmp"):
                async with asyncio.timeout(self._seconds):
                    await RtmpPublication(reader, writer).shake_hands()
        except (TimeoutError, NotSent, OSError, EOFError):
            raise TargetFailed("destination", "The server at cstm_streamUrl does not speak RTMP: check host and port.") from None
        finally:
            writer.transport.abort()


def _parsed(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise TargetFailed("destination", "The cstm_streamUrl is not a valid URL.") from None
    if parts.scheme == "srt":
        raise TargetFailed("destination", _NO_SRT)
    if not parts.hostname or parts.scheme not in _PORTS:
        raise TargetFailed("destination", "The cstm_streamUrl must begin with rtmp:// or rtmps:// and name a host.")
    return parts


def _shown(parts: SplitResult) -> Mapping[str, Any]:
    """Return the address without the name of the stream, which is its key, and without a query, which may contain a passphrase."""
    port = f":{parts.port}" if parts.port else ""
    return {
        "rtmpServerUrl": f"{parts.scheme}://{_authority(parts)}{port}{parts.path}",
        "rtmpStreamName": None,
        "rtmpApplicationName": parts.path.strip("/") or None,
        "isPrimary": True,
        "isSsl": parts.scheme == "rtmps",
    }


def _authority(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host
