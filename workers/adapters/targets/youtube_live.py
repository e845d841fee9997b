"""Live broadcasts on YouTube: a broadcast, a stream, their binding, and the states from testing to complete.

YouTube creates a second broadcast for a repeated request. So the title of the stream, which viewers do not see, contains the id of
the publication, and the broadcast has it in its description while it is private and not bound. After an interrupted call, the next
one finds what the earlier one created.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from domain.kernel.clock import Clock, system_clock
from workers.adapters.targets.documents import identifier, member
from workers.adapters.targets.youtube_api import PRIVATE, YouTubeApi, YouTubeRefused, privacy, tag, words
from workers.ports.live import LiveIngest
from workers.ports.targets import Details, PublicationOrder, TargetFailed

BROADCAST: Final = "yt_broadcastId"
_STREAM: Final = "yt_streamId"
_SOON: Final = timedelta(seconds=60)
_OVER: Final = ("complete", "revoked")
_ON_AIR: Final = ("live", "liveStarting")
_WAIT: Final = 2.0
_PARTS: Final = "id,snippet,status,contentDetails"


class YouTubeLive:
    """The live broadcasts of one channel."""

    def __init__(self, api: YouTubeApi, *, clock: Clock = system_clock) -> None:
        self._api = api
        self._clock = clock

    async def open(self, order: PublicationOrder) -> LiveIngest:
        stream = await self._stream(order) or await self._new_stream(order)
        broadcast = await self._broadcast(order, stream) or await self._new_broadcast(order)
        if _life(broadcast) in _OVER:
            raise TargetFailed("publication", "The broadcast on YouTube has ended: create the publication again.")
        if member(broadcast, "contentDetails").get("boundStreamId") != identifier(stream):
            bound = {"part": "id", "id": identifier(broadcast), "streamId": identifier(stream)}
            await self._api.call("POST", "liveBroadcasts/bind", query=bound)
        if member(broadcast, "snippet").get("description") == tag(order):
            await self._set_texts(order, broadcast)
        return _ingest(stream, identifier(broadcast))

    async def go(self, details: Details) -> Details:
        broadcast = await self._existing_broadcast(details)
        match _life(broadcast):
            case "live" | "liveStarting":
                return details
            case "testing":
                await self._turn(broadcast, "live")
                return details
            case "ready" | "created":
                stream = await self._api.get_item("liveStreams", str(details.get(_STREAM)), part="id,status")
                if member(stream or {}, "status").get("streamStatus") == "active":
                    await self._turn(broadcast, "testing")
            case "complete" | "revoked":
                raise TargetFailed("publication", "The broadcast on YouTube has ended: create the publication again.")
        raise TargetFailed("retry", "YouTube is not ready to show the stream yet.", after=_WAIT)

    async def close(self, details: Details) -> None:
        """Complete the broadcast. A broadcast that was never shown is removed: nothing of it was recorded."""
        broadcast = await self._api.get_item("liveBroadcasts", str(details.get(BROADCAST)), part=_PARTS)
        if broadcast is not None and _life(broadcast) in _ON_AIR:
            await self._turn(broadcast, "complete")
        elif broadcast is not None and _life(broadcast) not in _OVER:
            await self._api.remove("liveBroadcasts", identifier(broadcast))
        await self._remove_stream(str(details.get(_STREAM) or ""))

    async def remove(self, order: PublicationOrder, details: Details | None) -> None:
        """Remove the broadcast with its recording, and the stream. Without details, search for what a call with a lost answer
        created."""
        stream, broadcast_id = await self._stream(order), (details or {}).get(BROADCAST)
        if isinstance(broadcast_id, str):
            broadcast = await self._api.get_item("liveBroadcasts", broadcast_id, part=_PARTS)
        else:
            broadcast = await self._broadcast(order, stream or {})
        if broadcast is not None:
            if _life(broadcast) in _ON_AIR:
                await self._turn(broadcast, "complete")
            await self._api.remove("liveBroadcasts", identifier(broadcast))
        if stream is not None:
            await self._remove_stream(identifier(stream))

    async def _stream(self, order: PublicationOrder) -> Mapping[str, Any] | None:
        streams = await self._api.list_mine("liveStreams", {"part": "id,snippet,cdn,status", "mine": "true"})
        return next((stream for stream in streams if member(stream, "snippet").get("title") == tag(order)), None)

    async def _broadcast(self, order: PublicationOrder, stream: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the broadcast that is bound to the stream, or that was about to be bound."""
        broadcasts = await self._api.list_mine("liveBroadcasts", {"part": _PARTS, "mine": "true"})
        bound = stream.get("id")
        for broadcast in broadcasts:
            ours = bound is not None and member(broadcast, "contentDetails").get("boundStreamId") == bound
            if ours or member(broadcast, "snippet").get("description") == tag(order):
                return broadcast
        return None

    async def _new_stream(self, order: PublicationOrder) -> Mapping[str, Any]:
        body = {
            "snippet": {"title": tag(order)},
            "cdn": {"ingestionType": "rtmp", "resolution": "variable", "frameRate": "variable"},
            "contentDetails": {"isReusable": True},  # only reusable streams are listed
        }
        return await self._api.call("POST", "liveStreams", query={"part": "id,snippet,cdn,contentDetails,status"}, body=body)

    async def _new_broadcast(self, order: PublicationOrder) -> Mapping[str, Any]:
        body = {
            "snippet": {"title": words(order)["title"], "description": tag(order), "scheduledStartTime": self._soon()},
            "status": {"privacyStatus": PRIVATE, "selfDeclaredMadeForKids": order.options.get("yt_madeForKids") is True},
            "contentDetails": {"monitorStream": {"enableMonitorStream": True}, "enableAutoStart": False, "enableAutoStop": False},
        }
        return await self._api.call("POST", "liveBroadcasts", query={"part": _PARTS}, body=body)

    async def _set_texts(self, order: PublicationOrder, broadcast: Mapping[str, Any]) -> None:
        """Give the broadcast its title and description, and its visibility."""
        start = member(broadcast, "snippet").get("scheduledStartTime") or self._soon()
        body = {
            "id": identifier(broadcast),
            "snippet": {**words(order), "scheduledStartTime": start},
            "status": {"privacyStatus": privacy(order)},
        }
        await self._api.call("PUT", "liveBroadcasts", query={"part": "id,snippet,status"}, body=body)

    async def _existing_broadcast(self, details: Details) -> Mapping[str, Any]:
        broadcast = await self._api.get_item("liveBroadcasts", str(details.get(BROADCAST)), part=_PARTS)
        if broadcast is None:
            raise TargetFailed("publication", "YouTube does not have the broadcast: it may have been deleted there.")
        return broadcast

    async def _turn(self, broadcast: Mapping[str, Any], status: str) -> None:
        query = {"part": "id,status", "id": identifier(broadcast), "broadcastStatus": status}
        try:
            await self._api.call("POST", "liveBroadcasts/transition", query=query)
        except YouTubeRefused as failed:
            if "redundantTransition" not in failed.reasons:
                raise

    async def _remove_stream(self, stream: str) -> None:
        """Remove a stream. YouTube keeps a stream whose broadcast has not quite ended; it is then removed with the publication."""
        try:
            if stream:
                await self._api.remove("liveStreams", stream)
        except YouTubeRefused as failed:
            if "liveStreamDeletionNotAllowed" not in failed.reasons:
                raise

    def _soon(self) -> str:
        return (self._clock() + _SOON).isoformat()


def shown(video: str) -> Details:
    address = f"https://www.youtube.com/embed/{video}"
    return {
        "link": f"https://www.youtube.com/watch?v={video}",
        "embedHtml": f'<iframe src="{address}" allowfullscreen></iframe>',
        "isUnavailable": False,
    }


def _life(broadcast: Mapping[str, Any]) -> object:
    return member(broadcast, "status").get("lifeCycleStatus")


def _ingest(stream: Mapping[str, Any], broadcast: str) -> LiveIngest:
    ingestion = member(stream, "cdn", "ingestionInfo")
    secure = ingestion.get("rtmpsIngestionAddress")
    address, name = secure or ingestion.get("ingestionAddress"), ingestion.get("streamName")
    if not isinstance(address, str) or not isinstance(name, str) or not address.startswith(("rtmp://", "rtmps://")):
        raise TargetFailed("retry", "YouTube returned no address for the stream.")
    place = {"rtmpServerUrl": address, "rtmpStreamName": None, "rtmpApplicationName": address.rpartition("/")[2], "isPrimary": True}
    ids = {BROADCAST: broadcast, _STREAM: identifier(stream)}
    return LiveIngest(address, name, {**ids, **shown(broadcast), "ingestionDetails": [{**place, "isSsl": bool(secure)}]})
