"""YouTube as a target: films by resumable upload, and live broadcasts.

A film has the id of its publication among its tags, so that a film can be found and deleted even if the answer to its upload was
lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from workers.adapters.targets import published_names
from workers.adapters.targets.access_tokens import AccessTokens
from workers.adapters.targets.documents import has, identifier, member
from workers.adapters.targets.service import ServiceTarget
from workers.adapters.targets.youtube_api import FULL_SCOPE, PRIVATE, PUBLIC, YouTubeApi, privacy, snippet, tag
from workers.adapters.targets.youtube_live import BROADCAST, YouTubeLive, shown
from workers.adapters.targets.youtube_upload import CAPTIONS, PART, ResumableUpload
from workers.ports.live import LiveIngest
from workers.ports.targets import (
    TEXTS,
    Details,
    PublicationOrder,
    PublishedText,
    TargetFailed,
    UploadProgress,
    UploadSource,
    UploadState,
)

_SCOPES: Final = frozenset({FULL_SCOPE, f"{FULL_SCOPE}.force-ssl"})
_VIDEO: Final = "yt_videoId"
_LONGEST_NAME: Final = 150
"""The limit for the name of a text in characters."""
_ANY_TEXT: Final = "application/octet-stream"
"""The media type of texts for YouTube, which detects the format."""
_NEWEST: Final = 4
"""The number of pages of 50 uploads in which a film with an unknown id is searched."""
_STATUS: Final = ("privacyStatus", "embeddable", "license", "publicStatsViewable", "publishAt", "selfDeclaredMadeForKids")
"""The writable members of a status. Members that are missing in a request would be reset."""
_SNIPPET: Final = ("title", "description", "tags", "categoryId", "defaultLanguage")


class YouTubeTarget(ServiceTarget):
    """The target. Its configuration is `yt_clientId`, `yt_clientSecret` and `yt_refreshToken`."""

    PART = PART
    capabilities = ServiceTarget.capabilities | {TEXTS}

    def _open(self) -> None:
        self._tokens = AccessTokens(self._config, client=self._client, url=self._addresses.youtube_token, seconds=self._seconds)
        self._api = YouTubeApi(self._tokens, client=self._client, addresses=self._addresses, seconds=self._seconds)
        self._live = YouTubeLive(self._api)

    async def check(self) -> None:
        """Fetch a token, and request the channel with it."""
        await self._tokens.current()
        if self._tokens.scopes and not self._tokens.scopes & _SCOPES:
            raise TargetFailed(
                "destination", f"The authorization of the YouTube channel lacks a scope: authorize it again with {FULL_SCOPE}."
            )
        if not await self._channels():
            raise TargetFailed("destination", "The Google account has no YouTube channel: create one.")

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
            run = ResumableUpload(
                *(self._api, source),
                addresses=self._addresses,
                secret=published_names.text(self._config, "yt_refreshToken"),
                part=self._part,
                save=save,
                progress=progress,
            )
            status = {"privacyStatus": privacy(order), "selfDeclaredMadeForKids": order.options.get("yt_madeForKids") is True}
            made = identifier(await run.run({"snippet": {**snippet(order), "tags": [tag(order)]}, "status": status}, state))
            await save({"video": made, "sha256": source.sha256})
        progress(UploadProgress(source.size, source.size))
        return {_VIDEO: made, **shown(made), "size": source.size, "sha256": source.sha256}

    async def add_text(self, text: PublishedText, order: PublicationOrder, *, details: Details) -> Details:
        """Upload a text. YouTube has one text for a language and a name, so the text of an earlier run whose answer was lost is
        removed first."""
        video, name = _key(details), text.name[:_LONGEST_NAME]
        for caption in await self._api.list_items("captions", {"part": "snippet", "videoId": video}, pages=1):
            existing = member(caption, "snippet")
            if (existing.get("language"), existing.get("name")) == (text.language, name):
                await self._api.remove("captions", identifier(caption))

        async def save(state: UploadState) -> None:
            """Save nothing: an interrupted text is sent again from its beginning."""

        run = ResumableUpload(
            *(self._api, replace(text.source, media_type=_ANY_TEXT)),
            addresses=self._addresses,
            secret=published_names.text(self._config, "yt_refreshToken"),
            path=CAPTIONS,
            part=self._part,
            save=save,
            progress=lambda progress: None,
        )
        snippet = {"videoId": video, "language": text.language, "name": name, "isDraft": False}
        return {"yt_captionId": identifier(await run.run({"snippet": snippet}, None))}

    async def remove_text(self, order: PublicationOrder, details: Details) -> None:
        key = details.get("yt_captionId")
        if isinstance(key, str):
            await self._api.remove("captions", key)

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        key = _key(details)
        video = await self._api.get_item("videos", key, part="snippet,status,fileDetails") if key else None
        if video is None:
            return None
        status, size = member(video, "status"), member(video, "fileDetails").get("fileSize")
        more = {"size": int(size)} if isinstance(size, str) and size.isdigit() else {}
        reported = {"yt_uploadStatus": status.get("uploadStatus"), "yt_privacyStatus": status.get("privacyStatus")}
        refused = status.get("uploadStatus") in ("rejected", "failed", "deleted")
        return {**details, **reported, **more, "isUnavailable": refused}

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        chosen = privacy(order)
        await self._change(details, "status", _STATUS, {"privacyStatus": PUBLIC if chosen == PRIVATE else chosen})

    async def unpublish(self, order: PublicationOrder, details: Details) -> None:
        await self._change(details, "status", _STATUS, {"privacyStatus": PRIVATE})

    async def update(self, order: PublicationOrder, details: Details) -> None:
        await self._change(details, "snippet", _SNIPPET, snippet(order))

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        published_names.content_id(order)
        key = _key(details or {})
        if not details or BROADCAST in details:
            await self._live.remove(order, details)
        if not key:
            key = await self._find_video(order)
        if key and BROADCAST not in (details or {}):
            await self._api.remove("videos", key)

    async def open_live(self, order: PublicationOrder, details: Details | None) -> LiveIngest:
        return await self._live.open(order)

    async def go_live(self, order: PublicationOrder, details: Details) -> Details:
        return await self._live.go(details)

    async def close_live(self, order: PublicationOrder, details: Details) -> None:
        await self._live.close(details)

    async def _change(self, details: Details, part: str, writable: tuple[str, ...], changed: Mapping[str, Any]) -> None:
        """Write one part of a video, with all its members, because missing members would be reset."""
        key = _key(details)
        video = await self._api.get_item("videos", key, part=part) if key else None
        if video is None:
            raise TargetFailed("publication", "YouTube does not have the video: it may have been deleted there.")
        before = {name: value for name, value in member(video, part).items() if name in writable}
        await self._api.call("PUT", "videos", query={"part": part}, body={"id": key, part: {**before, **changed}})

    async def _finished_video(self, source: UploadSource, state: UploadState | None) -> str | None:
        """Return the video of an earlier run that uploaded all of it."""
        match state:
            case {"video": str(key), "sha256": source.sha256} if await self._api.get_item("videos", key, part="id"):
                return key
        return None

    async def _channels(self) -> Any:
        return await self._api.list_items("channels", {"part": "contentDetails", "mine": "true"}, pages=1)

    async def _find_video(self, order: PublicationOrder) -> str:
        """Return the video with the tag of this publication among the newest ones of the channel; empty if there is none."""
        for channel in await self._channels():
            uploads = member(channel, "contentDetails", "relatedPlaylists").get("uploads")
            items = await self._api.list_mine(
                "playlistItems", {"part": "contentDetails", "playlistId": str(uploads)}, pages=_NEWEST
            )
            keys = [identifier(member(item, "contentDetails"), "videoId") for item in items]
            for start in range(0, len(keys), 50):
                query = {"part": "snippet", "id": ",".join(keys[start : start + 50])}
                for video in await self._api.list_items("videos", query, pages=1):
                    if has(member(video, "snippet"), "tags", text=tag(order)):
                        return identifier(video)
        return ""


def _key(details: Details) -> str:
    """Return the id of the film, or of the broadcast, which is a video too."""
    key = details.get(_VIDEO) or details.get(BROADCAST)
    return key if isinstance(key, str) else ""
