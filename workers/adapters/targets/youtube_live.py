"""Live broadcasts on YouTube: a broadcast, a stream, their binding, and the states from testing to complete.

YouTube makes a second broadcast whenever it is asked again. So the title of the stream, which viewers do not see, has the id of
the publication, and the broadcast has it in its description as long as it is private and not bound: a call that was cut off finds
what an earlier one has made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from domain.kernel.clock import Clock, system_clock
from workers.adapters.targets.documents import identifier, member
from workers.adapters.targets.youtube_api import YouTubeApi, YouTubeRefused
from workers.adapters.targets.youtube_words import PRIVATE, privacy, tag, words
from workers.live_ports import LiveIngest
from workers.target_ports import Details, PublicationOrder, TargetFailed

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
        if member(broadcast, "contentDetails").get("boundStreamId") != stream["id"]:
            bound = {"part": "id", "id": identifier(broadcast), "streamId": identifier(stream)}
            await self._api.call("POST", "liveBroadcasts/bind", query=bound)
        if member(broadcast, "snippet").get("description") == tag(order):
            await self._named(order, broadcast)
        return _ingest(stream, identifier(broadcast))

    async def go(self, details: Details) -> Details:
        broadcast = await self._known(details)
        match _life(broadcast):
            case "live" | "liveStarting":
                return details
            case "testing":
                await self._turn(broadcast, "live")
                return details
            case "ready" | "created":
                stream = await self._api.one("liveStreams", str(details.get(_STREAM)), part="id,status")
                if member(stream or {}, "status").get("streamStatus") == "active":
                    await self._turn(broadcast, "testing")
            case "complete" | "revoked":
                raise TargetFailed("publication", "The broadcast on YouTube has ended: create the publication again.")
        raise TargetFailed("retry", "YouTube is not ready to show the stream yet.", after=_WAIT)

    async def close(self, details: Details) -> None:
        """A broadcast that was never shown is removed: nothing of it was recorded."""
        broadcast = await self._api.one("liveBroadcasts", str(details.get(BROADCAST)), part=_PARTS)
        if broadcast is not None and _life(broadcast) in _ON_AIR:
            await self._turn(broadcast, "complete")
        elif broadcast is not None and _life(broadcast) not in _OVER:
            await self._api.remove("liveBroadcasts", identifier(broadcast))
        await self._without_stream(str(details.get(_STREAM) or ""))

    async def remove(self, order: PublicationOrder, details: Details | None) -> None:
        """The broadcast with its recording, and the stream. Without details what an unheard call has made is looked for."""
        stream, known = await self._stream(order), (details or {}).get(BROADCAST)
        if isinstance(known, str):
            broadcast = await self._api.one("liveBroadcasts", known, part=_PARTS)
        else:
            broadcast = await self._broadcast(order, stream or {})
        if broadcast is not None:
            if _life(broadcast) in _ON_AIR:
                await self._turn(broadcast, "complete")
            await self._api.remove("liveBroadcasts", identifier(broadcast))
        if stream is not None:
            await self._without_stream(identifier(stream))

    async def _stream(self, order: PublicationOrder) -> Mapping[str, Any] | None:
        found = await self._api.mine("liveStreams", {"part": "id,snippet,cdn,status", "mine": "true"})
        return next((one for one in found if member(one, "snippet").get("title") == tag(order)), None)

    async def _broadcast(self, order: PublicationOrder, stream: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The one that is bound to the stream, or that was about to be."""
        found = await self._api.mine("liveBroadcasts", {"part": _PARTS, "mine": "true"})
        bound = stream.get("id")
        for one in found:
            ours = bound is not None and member(one, "contentDetails").get("boundStreamId") == bound
            if ours or member(one, "snippet").get("description") == tag(order):
                return one
        return None

    async def _new_stream(self, order: PublicationOrder) -> Mapping[str, Any]:
        body = {
            "snippet": {"title": tag(order)},
            "cdn": {"ingestionType": "rtmp", "resolution": "variable", "frameRate": "variable"},
            "contentDetails": {"isReusable": True},  # others are in no list
        }
        return await self._api.call("POST", "liveStreams", query={"part": "id,snippet,cdn,contentDetails,status"}, body=body)

    async def _new_broadcast(self, order: PublicationOrder) -> Mapping[str, Any]:
        body = {
            "snippet": {"title": words(order)["title"], "description": tag(order), "scheduledStartTime": self._soon()},
            "status": {"privacyStatus": PRIVATE, "selfDeclaredMadeForKids": order.options.get("yt_madeForKids") is True},
            "contentDetails": {"monitorStream": {"enableMonitorStream": True}, "enableAutoStart": False, "enableAutoStop": False},
        }
        return await self._api.call("POST", "liveBroadcasts", query={"part": _PARTS}, body=body)

    async def _named(self, order: PublicationOrder, broadcast: Mapping[str, Any]) -> None:
        """It gets its own words, and is shown to those who may see it."""
        start = member(broadcast, "snippet").get("scheduledStartTime") or self._soon()
        body = {
            "id": identifier(broadcast),
            "snippet": {**words(order), "scheduledStartTime": start},
            "status": {"privacyStatus": privacy(order)},
        }
        await self._api.call("PUT", "liveBroadcasts", query={"part": "id,snippet,status"}, body=body)

    async def _known(self, details: Details) -> Mapping[str, Any]:
        broadcast = await self._api.one("liveBroadcasts", str(details.get(BROADCAST)), part=_PARTS)
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

    async def _without_stream(self, stream: str) -> None:
        """YouTube keeps a stream whose broadcast has not quite ended; it is removed with the publication then."""
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
    given = member(stream, "cdn", "ingestionInfo")
    secure = given.get("rtmpsIngestionAddress")
    address, name = secure or given.get("ingestionAddress"), given.get("streamName")
    if not isinstance(address, str) or not isinstance(name, str) or not address.startswith(("rtmp://", "rtmps://")):
        raise TargetFailed("retry", "YouTube names no address for the stream.")
    place = {"rtmpServerUrl": address, "rtmpStreamName": None, "rtmpApplicationName": address.rpartition("/")[2], "isPrimary": True}
    ids = {BROADCAST: broadcast, _STREAM: identifier(stream)}
    return LiveIngest(address, name, {**ids, **shown(broadcast), "ingestionDetails": [{**place, "isSsl": bool(secure)}]})
