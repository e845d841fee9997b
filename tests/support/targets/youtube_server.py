"""A server with the parts of the YouTube Data API that the product uses, which refuses what its reference forbids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from aiohttp import web

CLIENT, CLIENT_SECRET, REFRESH = "client-1", "marked-client-secret-8c1e", "marked-refresh-2f7d"
SCOPE = "https://www.googleapis.com/auth/youtube"
GRANULE = 256 * 1024
_PARTS = {
    "videos": {"id", "snippet", "status", "fileDetails", "processingDetails", "contentDetails"},
    "channels": {"id", "snippet", "contentDetails"},
    "playlistItems": {"id", "snippet", "contentDetails"},
    "captions": {"id", "snippet"},
    "liveBroadcasts": {"id", "snippet", "status", "contentDetails"},
    "liveStreams": {"id", "snippet", "cdn", "status", "contentDetails"},
}
_TURNS = {"testing": ("ready",), "live": ("testing",), "complete": ("live", "testing")}
_REACHED = {"testing": "testStarting", "live": "liveStarting", "complete": "complete"}


class Refusal(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass
class Session:
    size: int
    video: dict[str, Any]
    content: bytearray = field(default_factory=bytearray)
    made: str = ""
    caption: bool = False


class YouTubeServer:
    """A server with one channel. `injected` are refusals for the next requests whose path ends so; `expire` ends all tokens."""

    def __init__(self, *, scope: str = SCOPE, lifetime: int = 3600) -> None:
        self.scope = scope
        self.lifetime = lifetime
        self.numbers = count(1)
        self.tokens: set[str] = set()
        self.refreshed = 0
        self.sessions: dict[str, Session] = {}
        self.videos: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.captions: dict[str, dict[str, Any]] = {}
        self.texts: dict[str, bytes] = {}
        self.broadcasts: dict[str, dict[str, Any]] = {}
        self.streams: dict[str, dict[str, Any]] = {}
        self.injected: list[tuple[str, int, str]] = []
        self.seen: list[str] = []
        """Paths with their queries, as a proxy would log them."""
        self.lost: int | None = None
        """The number of the next request that is carried out, but whose answer does not arrive."""
        self.elsewhere = ""
        """The address that is returned for sessions of uploads."""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/token", self._token)
        app.router.add_post("/upload/youtube/v3/videos", self._guarded(self._begin))
        app.router.add_put("/upload/youtube/v3/videos", self._guarded(self._put))
        app.router.add_post("/upload/youtube/v3/captions", self._guarded(self._begin_caption))
        app.router.add_put("/upload/youtube/v3/captions", self._guarded(self._put))
        app.router.add_post("/youtube/v3/liveBroadcasts/bind", self._guarded(self._bind))
        app.router.add_post("/youtube/v3/liveBroadcasts/transition", self._guarded(self._transition))
        app.router.add_route("*", "/youtube/v3/{resource}", self._guarded(self._resource))
        return app

    def expire(self) -> None:
        self.tokens.clear()

    def inject(self, path: str, status: int, reason: str) -> None:
        self.injected.append((path, status, reason))

    def _guarded(self, handle: Any) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            self.seen.append(request.path_qs)
            try:
                self._admit(request)
                made: web.StreamResponse = await handle(request)
            except Refusal as refusal:
                errors = [{"domain": "youtube", "reason": refusal.reason, "message": refusal.reason}]
                body = {"error": {"code": refusal.status, "message": refusal.reason, "errors": errors}}
                return web.json_response(body, status=refusal.status)
            if self.lost is not None:
                self.lost -= 1
                if self.lost == 0 and request.transport is not None:
                    request.transport.abort()
            return made

        return answer

    def _admit(self, request: web.Request) -> None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or token not in self.tokens:
            raise Refusal(401, "authError")
        for refusal in self.injected:
            if request.path.endswith(refusal[0]):
                self.injected.remove(refusal)
                raise Refusal(*refusal[1:])
        if self.scope not in (SCOPE, f"{SCOPE}.force-ssl"):
            raise Refusal(403, "insufficientPermissions")

    async def _token(self, request: web.Request) -> web.Response:
        given = await request.post()
        if given.get("grant_type") != "refresh_token":
            return web.json_response({"error": "unsupported_grant_type"}, status=400)
        if (given.get("client_id"), given.get("client_secret")) != (CLIENT, CLIENT_SECRET):
            return web.json_response({"error": "invalid_client"}, status=401)
        if given.get("refresh_token") != REFRESH:
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = f"marked-access-{next(self.numbers)}"
        self.tokens.add(token)
        self.refreshed += 1
        answer = {"access_token": token, "expires_in": self.lifetime, "scope": self.scope, "token_type": "Bearer"}
        return web.json_response(answer)

    # --- uploads

    async def _begin(self, request: web.Request) -> web.Response:
        if request.query.get("uploadType") != "resumable":
            raise Refusal(400, "uploadTypeUnsupported")
        video = await self._body(request, "videos")
        _checked_snippet(video)
        size = request.headers.get("x-upload-content-length", "")
        if not size.isdigit() or not request.headers.get("x-upload-content-type", "").startswith("video/"):
            raise Refusal(400, "mediaBodyRequired")
        key = f"session{next(self.numbers)}"
        self.sessions[key] = Session(int(size), video)
        place = self.elsewhere or f"http://{request.host}/upload/youtube/v3/videos?uploadType=resumable&upload_id={key}"
        return web.Response(headers={"Location": place})

    async def _begin_caption(self, request: web.Request) -> web.Response:
        if request.query.get("uploadType") != "resumable":
            raise Refusal(400, "uploadTypeUnsupported")
        caption = await self._body(request, "captions")
        snippet = caption.get("snippet", {})
        if snippet.get("videoId") not in self.videos:
            raise Refusal(404, "videoNotFound")
        if not snippet.get("language") or not isinstance(snippet.get("name"), str) or len(snippet["name"]) > 150:
            raise Refusal(400, "invalidMetadata")
        same = ("videoId", "language", "name")
        if any(all(existing["snippet"][name] == snippet[name] for name in same) for existing in self.captions.values()):
            raise Refusal(409, "captionExists")
        size, kind = request.headers.get("x-upload-content-length", ""), request.headers.get("x-upload-content-type")
        if not size.isdigit() or int(size) > 100 * 1024**2 or kind not in ("text/xml", "application/octet-stream"):
            raise Refusal(400, "contentRequired")
        key = f"session{next(self.numbers)}"
        self.sessions[key] = Session(int(size), caption, caption=True)
        place = f"http://{request.host}/upload/youtube/v3/captions?uploadType=resumable&upload_id={key}"
        return web.Response(headers={"Location": place})

    async def _put(self, request: web.Request) -> web.Response:
        session = self.sessions.get(request.query.get("upload_id", ""))
        if session is None:
            raise Refusal(404, "notFound")
        given = request.headers.get("content-range", "")
        if session.made:
            return web.json_response(self.videos.get(session.made, {"id": session.made}))
        if given == f"bytes */{session.size}":
            return _incomplete(session)
        first, last = _range(given, session.size)
        length = request.headers.get("content-length")
        if first != len(session.content) or length != str(last - first + 1):
            raise Refusal(400, "invalidContentRange")
        if last + 1 != session.size and (last - first + 1) % GRANULE:
            raise Refusal(400, "invalidChunkSize")
        await self._take(request, session, size=last - first + 1)
        if len(session.content) < session.size:
            return _incomplete(session)
        session.made = self._made(session)
        return web.json_response((self.captions if session.caption else self.videos)[session.made], status=201)

    async def _take(self, request: web.Request, session: Session, *, size: int) -> None:
        """Receive a part. An interrupted part is stored in whole granules."""
        start, whole = len(session.content), False
        try:
            async for piece in request.content.iter_any():
                session.content += piece
            whole = len(session.content) - start == size
        finally:
            if not whole:
                del session.content[start + (len(session.content) - start) // GRANULE * GRANULE :]

    def _made(self, session: Session) -> str:
        if session.caption:
            key = f"caption{next(self.numbers)}"
            self.captions[key] = {"id": key, "snippet": session.video["snippet"]}
            self.texts[key] = bytes(session.content)
            return key
        key = f"video{next(self.numbers)}"
        status = {"uploadStatus": "uploaded", "privacyStatus": "private", **session.video.get("status", {})}
        size = {"fileSize": str(session.size)}
        self.videos[key] = {"id": key, "snippet": session.video["snippet"], "status": status, "fileDetails": size}
        self.contents[key] = bytes(session.content)
        return key

    # --- resources

    async def _resource(self, request: web.Request) -> web.Response:
        resource, method = request.match_info["resource"], request.method
        if resource not in _PARTS:
            raise Refusal(404, "notFound")
        match method:
            case "GET":
                return self._list(request, resource)
            case "POST" if resource == "liveBroadcasts":
                return web.json_response(self._new_broadcast(await self._body(request, resource)))
            case "POST" if resource == "liveStreams":
                return web.json_response(self._new_stream(await self._body(request, resource)))
            case "PUT" if resource in ("videos", "liveBroadcasts"):
                return web.json_response(self._update(resource, await self._body(request, resource)))
            case "DELETE" if resource in ("captions", "videos", "liveBroadcasts", "liveStreams"):
                return self._delete(request, resource)
        raise Refusal(405, "methodNotAllowed")

    def _list(self, request: web.Request, resource: str) -> web.Response:
        parts = _parts(request, resource)
        asked = request.query.get("id")
        if resource == "channels":
            resources = [{"id": "channel", "contentDetails": {"relatedPlaylists": {"uploads": "uploads"}}}]
        elif resource == "playlistItems":
            if request.query.get("playlistId") != "uploads":
                raise Refusal(404, "playlistNotFound")
            resources = [{"contentDetails": {"videoId": key}} for key in reversed(self.videos)]
        elif resource == "captions":
            resources = [
                resource_item
                for resource_item in self.captions.values()
                if resource_item["snippet"]["videoId"] == request.query.get("videoId")
            ]
        elif asked is not None:
            resources = [resource_item for key in asked.split(",") if (resource_item := self._all(resource).get(key)) is not None]
        elif request.query.get("mine") == "true" and resource != "videos":
            resources = list(self._all(resource).values())
        else:
            raise Refusal(400, "missingRequiredParameter")
        start, size = int(request.query.get("pageToken", 0)), int(request.query.get("maxResults", 5))
        if not 0 <= size <= 50:
            raise Refusal(400, "invalidValue")
        if asked is not None:
            size = 50
        items = [{name: value for name, value in resource_item.items() if name in {*parts, "id"}} for resource_item in resources]
        following = {"nextPageToken": str(start + size)} if len(resources) > start + size else {}
        return web.json_response({"items": items[start : start + size], **following})

    def _all(self, resource: str) -> dict[str, dict[str, Any]]:
        for broadcast in self.broadcasts.values():  # what is starting has started when it is asked for again
            status = broadcast["status"]
            status["lifeCycleStatus"] = {"testStarting": "testing", "liveStarting": "live"}.get(*[status["lifeCycleStatus"]] * 2)
        live = {"liveBroadcasts": self.broadcasts, "liveStreams": self.streams}
        return {"captions": self.captions, "videos": self.videos, **live}[resource]

    def _new_broadcast(self, body: dict[str, Any]) -> dict[str, Any]:
        snippet, status = body.get("snippet", {}), body.get("status", {})
        if not snippet.get("title"):
            raise Refusal(400, "titleRequired")
        if "scheduledStartTime" not in snippet:
            raise Refusal(400, "scheduledStartTimeRequired")
        if datetime.fromisoformat(snippet["scheduledStartTime"]) <= datetime.now(UTC):
            raise Refusal(400, "invalidScheduledStartTime")
        if status.get("privacyStatus") not in ("public", "private", "unlisted"):
            raise Refusal(400, "privacyStatusRequired")
        key = f"broadcast{next(self.numbers)}"
        self.broadcasts[key] = {"id": key, **body, "status": {**status, "lifeCycleStatus": "created"}}
        return self.broadcasts[key]

    def _new_stream(self, body: dict[str, Any]) -> dict[str, Any]:
        cdn = body.get("cdn", {})
        if not body.get("snippet", {}).get("title"):
            raise Refusal(400, "titleRequired")
        for name in ("ingestionType", "resolution", "frameRate"):
            if name not in cdn:
                raise Refusal(400, f"{name}Required")
        key = f"stream{next(self.numbers)}"
        info = {
            "ingestionAddress": "rtmp://a.rtmp.example/live2",
            "rtmpsIngestionAddress": "rtmps://a.rtmps.example/live2",
            "streamName": f"marked-stream-{key}",
        }
        self.streams[key] = {"id": key, **body, "cdn": {**cdn, "ingestionInfo": info}, "status": {"streamStatus": "ready"}}
        return self.streams[key]

    def _update(self, resource: str, body: dict[str, Any]) -> dict[str, Any]:
        existing = self._all(resource).get(body.get("id", ""))
        if existing is None:
            raise Refusal(404, "videoNotFound" if resource == "videos" else "liveBroadcastNotFound")
        if "snippet" in body:
            _checked_snippet(body)
            if resource == "videos" and "categoryId" not in body["snippet"]:
                raise Refusal(400, "invalidCategoryId")
            if resource == "liveBroadcasts" and "scheduledStartTime" not in body["snippet"]:
                raise Refusal(400, "scheduledStartTimeRequired")
        protected = {
            "status": {name: existing["status"][name] for name in ("uploadStatus", "lifeCycleStatus") if name in existing["status"]}
        }
        for part in body.keys() - {"id"}:  # what is left out of a part is reset
            existing[part] = {**body[part], **protected.get(part, {})}
        return existing

    def _delete(self, request: web.Request, resource: str) -> web.Response:
        key, existing = request.query.get("id", ""), self._all(resource)
        if key not in existing:
            raise Refusal(404, "notFound")
        if resource == "liveBroadcasts" and existing[key]["status"]["lifeCycleStatus"] == "live":
            raise Refusal(403, "liveBroadcastDeletionNotAllowed")
        bound = [broadcast for broadcast in self.broadcasts.values() if broadcast["contentDetails"].get("boundStreamId") == key]
        if any(broadcast["status"]["lifeCycleStatus"] != "complete" for broadcast in bound):
            raise Refusal(403, "liveStreamDeletionNotAllowed")
        del existing[key]
        self.contents.pop(key, None)
        return web.Response(status=204)

    async def _bind(self, request: web.Request) -> web.Response:
        _parts(request, "liveBroadcasts")
        broadcast = self._all("liveBroadcasts").get(request.query.get("id", ""))
        if broadcast is None:
            raise Refusal(404, "liveBroadcastNotFound")
        stream = request.query.get("streamId", "")
        if stream not in self.streams:
            raise Refusal(404, "liveStreamNotFound")
        if broadcast["status"]["lifeCycleStatus"] not in ("created", "ready"):
            raise Refusal(403, "liveBroadcastBindingNotAllowed")
        broadcast["contentDetails"]["boundStreamId"] = stream
        broadcast["status"]["lifeCycleStatus"] = "ready"
        return web.json_response(broadcast)

    async def _transition(self, request: web.Request) -> web.Response:
        _parts(request, "liveBroadcasts")
        broadcast = self._all("liveBroadcasts").get(request.query.get("id", ""))
        if broadcast is None:
            raise Refusal(404, "liveBroadcastNotFound")
        to, now = request.query.get("broadcastStatus", ""), broadcast["status"]["lifeCycleStatus"]
        if to not in _TURNS:
            raise Refusal(400, "statusRequired")
        if to == now:
            raise Refusal(403, "redundantTransition")
        if now not in _TURNS[to]:
            raise Refusal(403, "invalidTransition")
        stream = self.streams.get(broadcast["contentDetails"].get("boundStreamId", ""), {"status": {}})
        if to != "complete" and stream["status"].get("streamStatus") != "active":
            raise Refusal(403, "errorStreamInactive")
        if to == "testing" and not broadcast["contentDetails"].get("monitorStream", {}).get("enableMonitorStream"):
            raise Refusal(403, "invalidTransition")
        broadcast["status"]["lifeCycleStatus"] = _REACHED[to]
        return web.json_response(broadcast)

    async def _body(self, request: web.Request, resource: str) -> dict[str, Any]:
        parts = _parts(request, resource)
        with suppress(json.JSONDecodeError):
            body = await request.json()
            if isinstance(body, dict) and body.keys() <= {*parts, "id"}:
                return body
            raise Refusal(400, "unexpectedPart")
        raise Refusal(400, "parseError")


def _parts(request: web.Request, resource: str) -> set[str]:
    parts = set(request.query.get("part", "").split(",")) - {""}
    if not parts:
        raise Refusal(400, "missingRequiredParameter")
    if not parts <= _PARTS[resource]:
        raise Refusal(400, "unknownPart")
    return parts


def _checked_snippet(body: Mapping[str, Any]) -> None:
    snippet = body.get("snippet", {})
    title, text = snippet.get("title", ""), snippet.get("description", "")
    if not title or len(title) > 100 or set("<>") & set(title):
        raise Refusal(400, "invalidTitle")
    if len(text.encode()) > 5000 or set("<>") & set(text):
        raise Refusal(400, "invalidDescription")


def _range(given: str, size: int) -> tuple[int, int]:
    with suppress(ValueError):
        unit, _, rest = given.partition(" ")
        span, _, total = rest.partition("/")
        first, last = (int(text) for text in span.split("-"))
        if unit == "bytes" and int(total) == size and first <= last < size:
            return first, last
    raise Refusal(400, "invalidContentRange")


def _incomplete(session: Session) -> web.Response:
    had = {"Range": f"bytes=0-{len(session.content) - 1}"} if session.content else {}
    return web.Response(status=308, headers=had)
