"""A target that takes files by PUT or POST: one request with the whole file, which starts over when it is cut off."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit, urlunsplit
from uuid import uuid4

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import named
from workers.adapters.targets.answers import SECONDS, reached, refusal
from workers.adapters.targets.files import FileTarget
from workers.adapters.targets.parts import pieces
from workers.ports import Reply
from workers.target_ports import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

_METHODS: Final = ("PUT", "POST")
_FILM: Final = ".mp4"
_CONTENT: Final = "{contentId}"
_PUBLICATION: Final = "{publicationId}"
_WITHOUT: Final = frozenset({400, 404, 405, 501})
"""Answers to OPTIONS of servers that do not know it."""
_GONE: Final = (404, 410)


class HttpUploadTarget(FileTarget):
    """Its configuration: `url`, in which `{contentId}` and `{publicationId}` stand for those ids, `method` and `headers`."""

    capabilities: frozenset[str] = frozenset({"upload", "query", "delete", "texts"})

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, seconds: float = SECONDS) -> None:
        self._config = config
        self._client = client
        self._seconds = seconds

    async def check(self) -> None:
        """OPTIONS, else HEAD, with the headers of an upload. An empty file is sent only where the server says that it takes DELETE
        too."""
        probe = PublicationOrder(uuid4(), f"medialedger-probe-{uuid4().hex}")
        answer = await self._ask("OPTIONS", self._url(probe))
        if answer.status in _WITHOUT:
            answer = await self._ask("HEAD", self._url(probe))
            if answer.status in (*_WITHOUT, 410):
                return
        if answer.status >= 300:
            raise self._refusal(answer)
        allowed = {one.strip().upper() for one in answer.headers.get("allow", "").split(",")} - {""}
        if allowed and self._method not in allowed:
            raise TargetFailed("destination", f"The URL takes {', '.join(sorted(allowed))}, but no {self._method}: change method.")
        if self._method == "PUT" and {"PUT", "DELETE"} <= allowed:
            await self._tried(probe)

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        url = self._url(order)
        digest = b64encode(bytes.fromhex(source.sha256)).decode()
        given = {
            **self._headers,
            "Content-Type": source.media_type,
            "Content-Digest": f"sha-256=:{digest}:",
            "Repr-Digest": f"sha-256=:{digest}:",
        }
        await save({"began": True})
        body = pieces(source.path, start=0, size=source.size, sent=lambda sent: progress(UploadProgress(sent, source.size)))
        with reached():
            reply = await self._client.send(
                self._method, url, pieces=body, size=source.size, headers=given, seconds_without_progress=self._seconds
            )
        if not 200 <= reply.status < 300:
            raise self._refusal(reply)
        details = {"link": _shown(self._place(url, reply)), "size": source.size, "sha256": source.sha256}
        await self._verify(order, details, digest)
        return details

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        reply = await self._ask("HEAD", self._file(order, details))
        if reply.status in _GONE:
            return None
        if not 200 <= reply.status < 300:
            raise self._refusal(reply)
        told = {"link": details.get("link", ""), "lastModified": reply.headers.get("last-modified")}
        size = reply.headers.get("content-length", "")
        return {**told, "size": int(size) if size.isascii() and size.isdigit() else None}

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        if self._method == "POST" and not details:
            return  # whether and where something was made is not known
        reply = await self._ask("DELETE", self._file(order, details or {}))
        if reply.status not in _GONE and not 200 <= reply.status < 300:
            raise self._refusal(reply)

    async def close(self) -> None:
        await self._client.close()

    async def _tried(self, probe: PublicationOrder) -> None:
        for method in ("PUT", "DELETE"):
            reply = await self._ask(method, self._url(probe))
            if not 200 <= reply.status < 300:
                raise self._refusal(reply)

    async def _verify(self, order: PublicationOrder, details: Details, digest: str) -> None:
        """Against what the server says of the file now, where it says something."""
        reply = await self._ask("HEAD", self._file(order, details), {"Want-Repr-Digest": "sha-256=10"})
        if reply.status != 200:
            return
        size = reply.headers.get("content-length", "")
        told = reply.headers.get("repr-digest", "")
        other = told.startswith("sha-256=:") and not told.startswith(f"sha-256=:{digest}:")
        if other or (size.isascii() and size.isdigit() and int(size) not in (0, details["size"])):
            raise TargetFailed("retry", "The destination has another file than was sent: its size or its hash differs.")

    async def _ask(self, method: str, url: str, more: Mapping[str, str] | None = None) -> Reply:
        with reached():
            return await self._client.request(
                method, url, headers={**self._headers, **(more or {})}, seconds=self._seconds, most=1_024
            )

    def _url(self, order: PublicationOrder) -> str:
        name = quote(named.content_id(order), safe="")
        url = named.text(self._config, "url")
        if self._method == "PUT" and _CONTENT not in url and _PUBLICATION not in url:
            raise TargetFailed("destination", f"The URL names no file: put {_CONTENT} into it, or every upload has the same place.")
        return _ended(url.replace(_CONTENT, name).replace(_PUBLICATION, str(order.id)), order.ending)

    def _file(self, order: PublicationOrder, details: Details) -> str:
        """Where the file is. Of a POST the server has said it; only its own address is believed."""
        url, link = self._url(order), details.get("link")
        if self._method == "POST" and isinstance(link, str) and link.startswith(_origin(url)):
            return link
        return url

    def _place(self, url: str, reply: Reply) -> str:
        location = urljoin(url, reply.headers.get("location", ""))
        return location if self._method == "POST" and location.startswith(_origin(url)) else url

    @property
    def _method(self) -> str:
        method = str(self._config.get("method") or "PUT").upper()
        if method not in _METHODS:
            raise TargetFailed("destination", "The method of the destination must be PUT or POST.")
        return method

    @property
    def _headers(self) -> dict[str, str]:
        headers = self._config.get("headers") or ()
        return {
            str(one["name"]): str(one["value"]) for one in headers if isinstance(one, Mapping) and {"name", "value"} <= one.keys()
        }

    def _refusal(self, reply: Reply) -> TargetFailed:
        return refusal(reply, what="The server of the destination", credentials="headers")


def _ended(url: str, ending: str) -> str:
    """The address of a text: that of the film, whose ending it has instead."""
    if ending == _FILM:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.removesuffix(_FILM) + ending))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def _shown(url: str) -> str:
    """Without a query, which may be a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
