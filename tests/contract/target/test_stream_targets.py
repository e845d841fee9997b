"""Stream targets of a streaming server with Digest and Basic, and of a server that fails."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from aiohttp import web

from tests.support.targets.stages import guarded, serving
from workers.adapters.targets.wowza import WowzaServer, WowzaStreamTargets
from workers.ports.live import LiveIngest, StreamTarget, StreamTargetsUnavailable
from workers.ports.targets import TargetFailed

USER, PASSWORD, KEY = "operator", "marked-password-3c9d", "marked-stream-key"
PATH = "/v2/servers/_defaultServer_/vhosts/_defaultVHost_/applications/live/pushpublish/mapentries"
REQUIRED = {"serverName", "sourceStreamName", "entryName", "profile", "host", "application", "streamName"}


class Wowza:
    """The stream targets of one application. `scheme` is the login that it demands; a nonce is valid for `uses` requests."""

    def __init__(self, *, scheme: str = "Digest", algorithm: str = "MD5", uses: int = 100) -> None:
        self.scheme = scheme
        self.algorithm = algorithm
        self.uses = uses
        self.numbers = count(1)
        self.nonces: dict[str, int] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self.challenges = 0
        self.status = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.Response:
        if self.status:
            return web.Response(status=self.status)
        if not self._may(request):
            self.challenges += 1
            return web.Response(status=401, headers={"WWW-Authenticate": self._challenge()})
        if not request.path.startswith(f"{PATH}/") or request.headers.get("accept") != "application/json; charset=utf-8":
            return web.Response(status=404)
        name, _, action = request.path.removeprefix(f"{PATH}/").partition("/actions/")
        if action:
            return self._act(name, action, request.method)
        return await self._change(name, request)

    async def _change(self, name: str, request: web.Request) -> web.Response:
        if request.method in ("POST", "PUT"):
            body = await request.json()
            if not body.keys() >= REQUIRED or body["entryName"] != name:
                return web.Response(status=400)
            if request.method == "POST" and name in self.entries:
                return web.Response(status=409)
            self.entries[name] = {**body, "sessionStatus": "Waiting"}
            return web.json_response({"success": True}, status=201)
        if name not in self.entries:
            return web.Response(status=404)
        if request.method == "DELETE":
            del self.entries[name]
            return web.json_response({"success": True})
        return web.json_response(self.entries[name])

    def _act(self, name: str, action: str, method: str) -> web.Response:
        if name not in self.entries:
            return web.Response(status=404)
        if method != "PUT" or action not in ("enable", "disable"):
            return web.Response(status=405)
        self.entries[name] |= {"enabled": action == "enable", "sessionStatus": "Active" if action == "enable" else "Disabled"}
        return web.json_response({"success": True})

    def _challenge(self) -> str:
        if self.scheme == "Basic":
            return 'Basic realm="Wowza"'
        nonce = f"nonce{next(self.numbers)}"
        self.nonces[nonce] = 0
        return f'Basic realm="Wowza", Digest realm="Wowza", nonce="{nonce}", qop="auth", algorithm={self.algorithm}, opaque="o,1"'

    def _may(self, request: web.Request) -> bool:
        given = request.headers.get("authorization", "")
        if self.scheme == "Basic":
            return given == "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        members = {name: quoted or plain for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', given)}
        nonce, used = members.get("nonce", ""), int(members.get("nc", "0"), 16)
        if self.nonces.get(nonce, used) >= used or used > self.uses or members.get("opaque") != "o,1":
            return False
        self.nonces[nonce] = used

        def hashed(*texts: str) -> str:
            return hashlib.new(self.algorithm.replace("-", ""), ":".join(texts).encode()).hexdigest()

        own = hashed(USER, "Wowza", PASSWORD), hashed(request.method, request.path_qs)
        return bool(members["response"] == hashed(own[0], nonce, members["nc"], members["cnonce"], "auth", own[1]))


@asynccontextmanager
async def reaching(server: Wowza, *, password: str = PASSWORD) -> AsyncIterator[WowzaStreamTargets]:
    async with serving(server.app()) as port:
        made = WowzaStreamTargets(WowzaServer(f"http://127.0.0.1:{port}", "live", USER, password), client=guarded())
        yield made
        await made.close()


def target(name: UUID, url: str = "rtmps://live.example:443/rtmp") -> StreamTarget:
    return StreamTarget(name, "event-1", LiveIngest(url, KEY, {}))


@pytest.mark.parametrize(("scheme", "algorithm"), [("Digest", "MD5"), ("Digest", "SHA-256"), ("Basic", "")])
async def test_a_stream_target_is_added_enabled_and_removed(scheme: str, algorithm: str) -> None:
    server, name = Wowza(scheme=scheme, algorithm=algorithm), uuid4()
    async with reaching(server) as targets:
        for _ in range(2):
            await targets.start(target(name))
        [entry] = server.entries.values()
        assert (entry["host"], entry["port"], entry["application"], entry["streamName"]) == ("live.example", 443, "rtmp", KEY)
        assert (entry["enabled"], entry["sendSSL"], entry["sourceStreamName"]) == (True, True, "event-1")
        statistics = await targets.statistics(name)
        assert statistics["sessionStatus"] == "Active"
        assert "marked" not in repr((statistics, targets._server, target(name)))
        for _ in range(2):
            await targets.stop(name)
        assert (server.entries, dict(await targets.statistics(name))) == ({}, {})
    assert server.challenges == 1


async def test_a_nonce_that_is_over_is_asked_for_again() -> None:
    server, name = Wowza(uses=1), uuid4()
    async with reaching(server) as targets:
        await targets.start(target(name))
    assert (list(server.entries), server.challenges) == ([str(name)], 2)


async def test_a_server_that_refuses_or_fails_is_unavailable() -> None:
    server, name = Wowza(), uuid4()
    async with reaching(server, password="wrong") as targets:
        with pytest.raises(StreamTargetsUnavailable, match="user and password"):
            await targets.start(target(name))
    for status in (404, 429, 500, 503):
        server.status = status
        async with reaching(server) as targets:
            with pytest.raises(StreamTargetsUnavailable):
                await targets.start(target(name))
    with pytest.raises(StreamTargetsUnavailable, match="does not answer"):
        await targets.stop(name)


async def test_what_the_server_cannot_push_is_the_publications_fault() -> None:
    server = Wowza()
    async with reaching(server) as targets:
        with pytest.raises(TargetFailed, match="RTMP"):
            await targets.start(target(uuid4(), "srt://live.example:9000"))
        server.status = 400
        with pytest.raises(TargetFailed, match="status 400"):
            await targets.start(target(uuid4()))
    assert server.entries == {}
