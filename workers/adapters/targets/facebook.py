"""Facebook as a target: films and live videos of a page.

A film has the id of its publication among its labels, which are not shown to viewers; a live video has it as its title until it is
shown. So the result of a call whose answer was lost can be found again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from json import dumps
from typing import Any, Final
from urllib.parse import quote, urlsplit

from workers.adapters.targets import published_names
from workers.adapters.targets.documents import has, identifier, member
from workers.adapters.targets.facebook_api import FacebookApi
from workers.adapters.targets.facebook_upload import PART, PhasedUpload, is_uploaded
from workers.adapters.targets.service import ServiceTarget
from workers.ports.live import LiveIngest
from workers.ports.targets import (
    Details,
    PublicationOrder,
    TargetFailed,
    UploadProgress,
    UploadSource,
    UploadState,
)

_VIDEO: Final = "fb_videoId"
_LIVE: Final = "fb_liveVideoId"
_TITLE: Final = 254
_DESCRIPTION: Final = 60_000
_OVER: Final = ("VOD", "LIVE_STOPPED", "PROCESSING", "SCHEDULED_EXPIRED", "SCHEDULED_CANCELED")
_LIVE_FIELDS: Final = "id,title,status,secure_stream_url"


class FacebookTarget(ServiceTarget):
    """The target. Its configuration is `fb_resourceId`, the id of a page, and `fb_accessToken`."""

    PART = PART

    def _open(self) -> None:
        self._graph = FacebookApi(self._config, client=self._client, base=self._addresses.facebook, seconds=self._seconds)
        self._videos = FacebookApi(self._config, client=self._client, base=self._addresses.facebook_video, seconds=self._seconds)

    async def check(self) -> None:
        """Request the owner of the token, and the page."""
        page = self._page
        await self._graph.get("me", {"fields": "id"})
        if await self._graph.get_or_none(page, {"fields": "id"}) is None:
            raise TargetFailed(
                "destination", "The access token does not reach the page: check fb_resourceId, and take a token of that page."
            )

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        published_names.content_id(order)
        made = await self._finished_video(source, state)
        if made is None:
            run = PhasedUpload(
                *(self._videos, source),
                graph=self._graph,
                path=f"{self._page}/videos",
                part=self._part,
                save=save,
                progress=progress,
            )
            labels = {"custom_labels": dumps([_mark(order)])}
            made = await run.run({**_texts(order), **labels, "published": "true"}, state)
            await save({"made": made, "sha256": source.sha256})
        progress(UploadProgress(source.size, source.size))
        return {_VIDEO: made, **_links(made), "size": source.size, "sha256": source.sha256}

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        if _LIVE in details:
            live = await self._graph.get_or_none(identifier(details, _LIVE), {"fields": "id,status"})
            return None if live is None else {**details, "fb_status": live.get("status")}
        video = await self._graph.get_or_none(identifier(details, _VIDEO), {"fields": "id,status,published,length"})
        if video is None:
            return None
        status = member(video, "status").get("video_status")
        reported = {"fb_status": status, "fb_published": video.get("published"), "fb_length": video.get("length")}
        return {**details, **reported, "isUnavailable": status in ("error", "expired")}

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        await self._graph.post(_object_id(details), {"published": "true"})

    async def unpublish(self, order: PublicationOrder, details: Details) -> None:
        await self._graph.post(_object_id(details), {"published": "false"})

    async def update(self, order: PublicationOrder, details: Details) -> None:
        texts = _texts(order)
        fields = texts if _LIVE in details else {"name": texts["title"], "description": texts["description"]}
        await self._graph.post(_object_id(details), fields)

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        published_names.content_id(order)
        if details:
            await self._graph.remove(_object_id(details))
            return
        live = await self._unshown_live(order)
        for key in ([identifier(live)] if live is not None else []) + await self._labelled_videos(order):
            await self._graph.remove(key)

    async def open_live(self, order: PublicationOrder, details: Details | None) -> LiveIngest:
        live_id = (details or {}).get(_LIVE)
        if live_id is not None:
            live = await self._graph.get_or_none(identifier(details or {}, _LIVE), {"fields": _LIVE_FIELDS})
        else:
            live = await self._unshown_live(order) or await self._new_live(order)
        if live is None or live.get("status") in _OVER:
            raise TargetFailed("publication", "The live video on Facebook has ended: create the publication again.")
        return _ingest(live)

    async def go_live(self, order: PublicationOrder, details: Details) -> Details:
        await self._graph.post(identifier(details, _LIVE), {"status": "LIVE_NOW", **_texts(order)})
        return details

    async def close_live(self, order: PublicationOrder, details: Details) -> None:
        key = identifier(details, _LIVE)
        live = await self._graph.get_or_none(key, {"fields": "id,status"})
        if live is None or live.get("status") in _OVER:
            return
        if live.get("status") == "UNPUBLISHED":
            await self._graph.remove(key)  # it was never shown, so nothing was recorded
        else:
            await self._graph.post(key, {"end_live_video": "true"})

    @property
    def _page(self) -> str:
        return quote(published_names.text(self._config, "fb_resourceId"), safe="")

    async def _finished_video(self, source: UploadSource, state: UploadState | None) -> str | None:
        """Return the video of an earlier run that uploaded all of it."""
        match state:
            case {"made": str(key), "sha256": source.sha256} if await is_uploaded(self._graph, key):
                return key
        return None

    async def _new_live(self, order: PublicationOrder) -> Mapping[str, Any]:
        """Create a live video, which is not shown before its stream has begun."""
        return await self._graph.post(f"{self._page}/live_videos", {"status": "UNPUBLISHED", "title": _mark(order)})

    async def _unshown_live(self, order: PublicationOrder) -> Mapping[str, Any] | None:
        """Return the live video of this publication that was not shown yet."""
        live_videos = await self._graph.newest(f"{self._page}/live_videos", _LIVE_FIELDS)
        return next((live for live in live_videos if live.get("title") == _mark(order)), None)

    async def _labelled_videos(self, order: PublicationOrder) -> list[str]:
        """Return the videos of this publication among the newest ones."""
        videos = await self._graph.newest(f"{self._page}/videos", "id,custom_labels")
        return [identifier(video) for video in videos if has(video, "custom_labels", text=_mark(order))]


def _mark(order: PublicationOrder) -> str:
    """Return the text by which everything that belongs to a publication is found."""
    return f"medialedger-{order.id}"


def _texts(order: PublicationOrder) -> dict[str, str]:
    return {"title": (order.title or order.content_id)[:_TITLE], "description": order.description[:_DESCRIPTION]}


def _object_id(details: Details) -> str:
    return identifier(details, _LIVE if _LIVE in details else _VIDEO)


def _links(video: str) -> Details:
    link = f"https://www.facebook.com/watch/?v={video}"
    address = f"https://www.facebook.com/plugins/video.php?href={quote(link, safe='')}"
    return {"link": link, "embedHtml": f'<iframe src="{address}" allowfullscreen></iframe>', "isUnavailable": False}


def _ingest(live: Mapping[str, Any]) -> LiveIngest:
    """Return the ingest of a live video. The last part of its address is the key of the stream."""
    url = live.get("secure_stream_url")
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme != "rtmps" or not parts.hostname or "/" not in parts.path.strip("/"):
        raise TargetFailed("retry", "Facebook returned no address for the stream.")
    folder, _, name = parts.path.rpartition("/")
    address = f"rtmps://{parts.netloc}{folder}"
    place = {
        "rtmpServerUrl": address,
        "rtmpStreamName": None,
        "rtmpApplicationName": folder.strip("/"),
        "isPrimary": True,
        "isSsl": True,
    }
    key = identifier(live)
    details = {_LIVE: key, "link": f"https://www.facebook.com/{key}", "isUnavailable": False, "ingestionDetails": [place]}
    return LiveIngest(address, f"{name}?{parts.query}" if parts.query else name, details)
