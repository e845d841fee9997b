"""A server with the parts of Facebook's Graph API that the product uses, which refuses what its reference forbids."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import BodyPartReader, web
from multidict import MultiDictProxy

PAGE, TOKEN = "4711", "marked-page-token-5b2e"
PERMISSIONS = frozenset({"pages_manage_posts", "pages_read_engagement", "publish_video"})
_VIDEO_FIELDS = {"id", "status", "published", "length", "title", "description", "custom_labels"}
_LIVE_FIELDS = {"id", "title", "description", "status", "secure_stream_url"}
_TURNS = {"LIVE_NOW": ("UNPUBLISHED", "LIVE")}


class Refusal(Exception):
    def __init__(self, status: int, code: int, subcode: int = 0, data: dict[str, Any] | None = None) -> None:
        super().__init__(code)
        self.status = status
        self.error = {"message": "refused", "type": "OAuthException", "code": code, "error_subcode": subcode}
        if data is not None:
            self.error["error_data"] = data


@dataclass
class Session:
    size: int
    video: str
    content: bytearray = field(default_factory=bytearray)
    finished: bool = False


class FacebookServer:
    """A server with one page. `injected` are refusals for the next requests whose path ends so; `chunk` is the size that it
    requests at a time."""

    def __init__(self, *, chunk: int) -> None:
        self.chunk = chunk
        self.permissions = PERMISSIONS
        self.numbers = count(100)
        self.token = TOKEN
        self.sessions: dict[str, Session] = {}
        self.videos: dict[str, dict[str, Any]] = {}
        self.live: dict[str, dict[str, Any]] = {}
        self.injected: list[tuple[str, tuple[int, int, int]]] = []
        self.seen: list[str] = []
        """Paths with their queries, as a proxy would log them."""
        self.lost: int | None = None
        """The number of the next request that is carried out, but whose answer does not arrive."""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post(f"/video/v1.0/{PAGE}/videos", self._guarded(self._upload))
        app.router.add_get(f"/graph/v1.0/{PAGE}/videos", self._guarded(self._videos))
        app.router.add_route("*", f"/graph/v1.0/{PAGE}/live_videos", self._guarded(self._live_videos))
        app.router.add_route("*", "/graph/v1.0/{node}", self._guarded(self._node))
        return app

    def inject(self, path: str, status: int, code: int, subcode: int) -> None:
        self.injected.append((path, (status, code, subcode)))

    @property
    def contents(self) -> dict[str, bytes]:
        return {
            session.video: bytes(session.content)
            for session in self.sessions.values()
            if session.finished and session.video in self.videos
        }

    def _guarded(self, handle: Any) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            self.seen.append(request.path_qs)
            try:
                self._admit(request)
                made: web.StreamResponse = await handle(request)
            except Refusal as refusal:
                return web.json_response({"error": refusal.error}, status=refusal.status)
            if self.lost is not None:
                self.lost -= 1
                if self.lost == 0 and request.transport is not None:
                    request.transport.abort()
            return made

        return answer

    def _admit(self, request: web.Request) -> None:
        if "access_token" in request.query or request.headers.get("authorization") != f"OAuth {self.token}":
            raise Refusal(400, 190, 463)
        for refusal in self.injected:
            if request.path.endswith(refusal[0]):
                self.injected.remove(refusal)
                status, code, subcode = refusal[1]
                raise Refusal(status, code, subcode)
        if request.method != "GET" and not self.permissions >= PERMISSIONS:
            raise Refusal(403, 200)

    # --- films

    async def _upload(self, request: web.Request) -> web.Response:
        if request.content_type == "multipart/form-data":
            return await self._transfer(request)
        form = await request.post()
        match form.get("upload_phase"):
            case "start":
                return self._start(form)
            case "finish":
                return self._finish(form)
        raise Refusal(400, 100)

    def _start(self, form: MultiDictProxy[Any]) -> web.Response:
        size = str(form.get("file_size", ""))
        if not size.isdigit() or not int(size):
            raise Refusal(400, 100)
        key, video = str(next(self.numbers)), str(next(self.numbers))
        self.sessions[key] = Session(int(size), video)
        return web.json_response({"upload_session_id": key, "video_id": video, **self._wanted(self.sessions[key])})

    async def _transfer(self, request: web.Request) -> web.Response:
        """Receive a part. An interrupted part is discarded."""
        fields: dict[str, str] = {}
        chunk: bytes | None = None
        try:
            reader = await request.multipart()
            while (part := await reader.next()) is not None:
                assert isinstance(part, BodyPartReader)
                read = bytes(await part.read())
                if part.name == "video_file_chunk":
                    chunk = read
                else:
                    fields[str(part.name)] = read.decode()
        except (ValueError, AssertionError, ConnectionError):
            raise Refusal(400, 100) from None
        session = self.sessions.get(fields.get("upload_session_id", ""))
        if fields.get("upload_phase") != "transfer" or chunk is None or "start_offset" not in fields:
            raise Refusal(400, 100)
        if session is None or session.finished:
            raise Refusal(400, 6000, 1363019)
        if fields["start_offset"] != str(len(session.content)):
            raise Refusal(400, 6000, 1363037, self._wanted(session))
        if not chunk or len(session.content) + len(chunk) > session.size:
            raise Refusal(400, 100)
        session.content += chunk
        return web.json_response(self._wanted(session))

    def _finish(self, form: MultiDictProxy[Any]) -> web.Response:
        session = self.sessions.get(str(form.get("upload_session_id", "")))
        if session is None or session.finished:
            raise Refusal(400, 6000, 1363019)
        if len(session.content) != session.size:
            raise Refusal(400, 6000, 1363033)
        session.finished = True
        self.videos[session.video] = {
            "id": session.video,
            "title": form.get("title", ""),
            "description": form.get("description", ""),
            "custom_labels": json.loads(str(form.get("custom_labels", "[]"))),
            "published": form.get("published") == "true",
            "status": {"video_status": "ready", "uploading_phase": {"status": "complete"}},
            "length": 1.0,
        }
        return web.json_response({"success": True})

    def _wanted(self, session: Session) -> dict[str, str]:
        start = len(session.content)
        return {"start_offset": str(start), "end_offset": str(min(session.size, start + self.chunk))}

    async def _videos(self, request: web.Request) -> web.Response:
        return _listed(request, list(reversed(self.videos.values())), _VIDEO_FIELDS)

    # --- live

    async def _live_videos(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return _listed(request, list(reversed(self.live.values())), _LIVE_FIELDS)
        form = await request.post()
        if form.get("status") not in ("UNPUBLISHED", "LIVE_NOW"):
            raise Refusal(400, 100)
        key = str(next(self.numbers))
        url = f"rtmps://live.example:443/rtmp/FB-{key}?s_bl=1&a=marked-stream-{key}"
        given = {name: form.get(name, "") for name in ("title", "description", "status")}
        self.live[key] = {"id": key, **given, "secure_stream_url": url}
        return web.json_response({"id": key, "secure_stream_url": url})

    async def _node(self, request: web.Request) -> web.Response:
        key = request.match_info["node"]
        if key in ("me", PAGE):
            return web.json_response({"id": PAGE})
        node = self.videos.get(key) or self.live.get(key)
        if node is None:
            raise Refusal(400, 100, 33)
        match request.method:
            case "GET":
                fields = _fields(request, _VIDEO_FIELDS if key in self.videos else _LIVE_FIELDS)
                return web.json_response({name: node[name] for name in {*fields, "id"} if name in node})
            case "DELETE":
                if node.get("status") == "LIVE":
                    raise Refusal(400, 100, 2)
                self.videos.pop(key, None)
                self.live.pop(key, None)
            case "POST":
                (self._change_video if key in self.videos else self._change_live)(node, dict(await request.post()))
        return web.json_response({"success": True})

    def _change_video(self, video: dict[str, Any], form: dict[str, Any]) -> None:
        if not form.keys() <= {"name", "description", "published"}:
            raise Refusal(400, 100)
        if "published" in form:
            video["published"] = form.pop("published") == "true"
        video |= {"title" if name == "name" else name: value for name, value in form.items()}

    def _change_live(self, live: dict[str, Any], form: dict[str, Any]) -> None:
        if form.get("end_live_video") == "true":
            if live["status"] != "LIVE":
                raise Refusal(400, 100, 3)
            live["status"] = "VOD"
            return
        if not form.keys() <= {"status", "title", "description"}:
            raise Refusal(400, 100)
        if (turn := form.pop("status", None)) is not None:
            if live["status"] not in _TURNS.get(turn, ()):
                raise Refusal(400, 100)
            live["status"] = "LIVE"
        live |= form


def _fields(request: web.Request, known_fields: set[str]) -> set[str]:
    fields = set(request.query.get("fields", "id").split(","))
    if not fields <= known_fields:
        raise Refusal(400, 100)
    return fields


def _listed(request: web.Request, nodes: list[dict[str, Any]], known_fields: set[str]) -> web.Response:
    fields, limit, start = _fields(request, known_fields), 25, 0
    with suppress(ValueError):
        limit, start = int(request.query.get("limit", limit)), int(request.query.get("after", 0))
    page = [{name: node[name] for name in {*fields, "id"} if name in node} for node in nodes[start : start + limit]]
    paging: dict[str, Any] = {"cursors": {"before": str(start), "after": str(start + limit)}}
    if len(nodes) > start + limit:
        paging["next"] = f"https://graph.example/next?access_token={TOKEN}"
    return web.json_response({"data": page, "paging": paging})
