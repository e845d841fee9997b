"""Stream targets of a Wowza Streaming Engine, over its REST interface: the server pushes one of its streams to another server.

The name of an entry is the id of the publication, so a repeated start changes the existing entry.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from re import compile as regex
from secrets import token_hex
from typing import Any, Final
from urllib.parse import quote, urlsplit
from uuid import UUID

from workers.adapters.targets.documents import MOST, document
from workers.ports.live import StreamTarget, StreamTargetsUnavailable
from workers.ports.outbound import Outbound, OutboundFailed, OutboundRefused, Reply
from workers.ports.targets import TargetFailed

_SCHEME: Final = regex(r"(?:^|,)\s*(Digest|Basic)\b", flags=2)
_PAIR: Final = regex(r'(\w+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')
_HASHES: Final[Mapping[str, Callable[[bytes], str]]] = {
    "SHA-256": lambda text: hashlib.sha256(text).hexdigest(),
    "MD5": lambda text: hashlib.md5(text, usedforsecurity=False).hexdigest(),  # required by streaming servers
}


class Login:
    """Answers the challenges of one server. A nonce is used again with the next count until the server demands another."""

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password
        self._challenge: Mapping[str, str] | None = None
        self._basic = False
        self._count = 0

    def accept_challenge(self, header: str) -> bool:
        """Store the challenge of a refusal. Return True if it can be answered. Digest is preferred, because it does not send the
        password."""
        matches = list(_SCHEME.finditer(header))
        ends = [match.start() for match in matches[1:]] + [len(header)]
        schemes = {match[1].lower(): header[match.end() : end] for match, end in zip(matches, ends, strict=True)}
        self._count = 0
        self._challenge = {name.lower(): quoted or plain for name, quoted, plain in _PAIR.findall(schemes.get("digest", ""))}
        self._basic = not self._can_digest and "basic" in schemes
        return self._can_digest or self._basic

    def header(self, method: str, url: str) -> Mapping[str, str]:
        """Return the headers for a request; empty before the first challenge."""
        if self._basic:
            return {"Authorization": "Basic " + b64encode(f"{self._user}:{self._password}".encode()).decode()}
        return {"Authorization": self._digest(method, url)} if self._can_digest else {}

    @property
    def _can_digest(self) -> bool:
        challenge = self._challenge or {}
        plain = "qop" not in challenge or "auth" in [option.strip() for option in challenge["qop"].split(",")]
        return (
            plain and challenge.get("algorithm", "MD5").upper() in _HASHES and bool(challenge.get("nonce")) and "realm" in challenge
        )

    def _digest(self, method: str, url: str) -> str:
        challenge = self._challenge or {}
        algorithm, nonce, realm = challenge.get("algorithm", "MD5"), challenge["nonce"], challenge["realm"]
        parts = urlsplit(url)
        uri = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._count += 1
        count, own = f"{self._count:08x}", token_hex(16)

        def hashed(*texts: str) -> str:
            return _HASHES[algorithm.upper()](":".join(texts).encode())

        user, request = hashed(self._user, realm, self._password), hashed(method, uri)
        members = {"username": self._user, "realm": realm, "nonce": nonce, "uri": uri}
        bare = {"algorithm": algorithm}
        if "qop" in challenge:
            members |= {"cnonce": own, "response": hashed(user, nonce, count, own, "auth", request)}
            bare |= {"qop": "auth", "nc": count}
        else:
            members["response"] = hashed(user, nonce, request)
        if "opaque" in challenge:
            members["opaque"] = challenge["opaque"]
        quoted = [f'{name}="{value}"' for name, value in members.items()]
        return "Digest " + ", ".join(quoted + [f"{name}={value}" for name, value in bare.items()])


SECONDS: Final = 10.0
_SERVER: Final = "_defaultServer_"
_VHOST: Final = "_defaultVHost_"
_JSON: Final = "application/json; charset=utf-8"
_HEADERS: Final = {"Accept": _JSON, "Content-Type": _JSON}
_PORTS: Final = {"rtmp": 1935, "rtmps": 443}
_SHOWN: Final = ("enabled", "sessionStatus", "profile", "host", "port", "application", "sourceStreamName")
_REFUSED: Final = (400, 405, 409, 415, 422)


@dataclass(frozen=True, slots=True)
class WowzaServer:
    """A streaming server. `url` is the address of its REST interface, such as `http://host:8087`."""

    url: str
    application: str
    user: str = ""
    password: str = field(default="", repr=False)


class WowzaStreamTargets:
    """The port `StreamTargets`."""

    def __init__(self, server: WowzaServer, *, client: Outbound, seconds: float = SECONDS) -> None:
        self._server = server
        self._client = client
        self._seconds = seconds
        self._login = Login(server.user, server.password)

    async def start(self, entry: StreamTarget) -> None:
        body, path = _entry(entry), str(entry.name)
        reply = await self._request("POST", path, body=body)
        if reply.status == 409:
            reply = await self._request("PUT", path, body=body)
        _require_success(reply)
        _require_success(await self._request("PUT", f"{path}/actions/enable"))

    async def stop(self, name: UUID) -> None:
        for method, path in (("PUT", f"{name}/actions/disable"), ("DELETE", str(name))):
            reply = await self._request(method, path)
            if reply.status != 404:
                _require_success(reply)

    async def statistics(self, name: UUID) -> Mapping[str, Any]:
        reply = await self._request("GET", str(name))
        if reply.status == 404:
            return {}
        _require_success(reply)
        try:
            answer = document(reply)
        except TargetFailed as failed:
            raise StreamTargetsUnavailable(str(failed)) from None
        return {name: answer[name] for name in _SHOWN if isinstance(answer.get(name), str | int | bool)}

    async def close(self) -> None:
        await self._client.close()

    async def _request(self, method: str, path: str, *, body: Mapping[str, Any] | None = None) -> Reply:
        """Send a request, and repeat it if the server demands another login."""
        application = quote(self._server.application, safe="")
        url = f"{self._server.url}/v2/servers/{_SERVER}/vhosts/{_VHOST}/applications/{application}/pushpublish/mapentries/{path}"
        text = b"" if body is None else json.dumps(body).encode()
        for attempt in range(2):
            headers = {**_HEADERS, **self._login.header(method, url)}
            try:
                reply = await self._client.request(method, url, headers=headers, body=text, seconds=self._seconds, most=MOST)
            except (OutboundFailed, OutboundRefused) as failed:
                raise StreamTargetsUnavailable(f"The streaming server does not answer: {failed}") from None
            if reply.status != 401 or attempt or not self._login.accept_challenge(reply.headers.get("www-authenticate", "")):
                break
        return reply


def _entry(entry: StreamTarget) -> Mapping[str, Any]:
    parts = urlsplit(entry.ingest.url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise TargetFailed("publication", "The streaming server pushes RTMP and RTMPS only: choose another destination.")
    secure = {"sendSSL": True} if parts.scheme == "rtmps" else {}
    return {
        "serverName": _SERVER,
        "sourceStreamName": entry.source,
        "entryName": str(entry.name),
        "profile": "rtmp",
        "host": parts.hostname,
        "port": parts.port or _PORTS[parts.scheme],
        "application": parts.path.strip("/"),
        "streamName": entry.ingest.stream_name,
        "userName": "",
        "password": "",
        "enabled": True,
        **secure,
    }


def _require_success(reply: Reply) -> None:
    if 200 <= reply.status < 300:
        return
    match reply.status:
        case 401 | 403:
            sentence = "The streaming server refuses the login: check its user and password."
        case 404:
            sentence = "The streaming server has no such application, or its module for stream targets is not enabled."
        case status if status in _REFUSED:
            raise TargetFailed("publication", f"The streaming server refuses the stream target with status {status}.")
        case status:
            sentence = f"The streaming server answers with status {status}."
    raise StreamTargetsUnavailable(sentence)
