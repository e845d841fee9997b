"""A target that takes files by PUT or POST: one request with the whole file, which starts over when it is interrupted."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit, urlunsplit
from uuid import uuid4

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import published_names
from workers.adapters.targets.answers import SECONDS, refusal, translate_client_faults
from workers.adapters.targets.files import FileTarget
from workers.adapters.targets.parts import pieces
from workers.ports.outbound import Reply
from workers.ports.targets import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

_METHODS: Final = ("PUT", "POST")
_FILM: Final = ".mp4"
_CONTENT: Final = "{contentId}"
_PUBLICATION: Final = "{publicationId}"
_WITHOUT: Final = frozenset({400, 404, 405, 501})
"""Answers of servers that do not support OPTIONS."""
_GONE: Final = (404, 410)


class HttpUploadTarget(FileTarget):
    """The target. Its configuration is `url`, in which `{contentId}` and `{publicationId}` are replaced by those ids, `method` and
    `headers`."""

    capabilities: frozenset[str] = frozenset({"upload", "query", "delete", "texts"})

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, seconds: float = SECONDS) -> None:
        self._config = config
        self._client = client
        self._seconds = seconds

    async def check(self) -> None:
        """Send OPTIONS, or HEAD if it is not supported, with the headers of an upload. An empty file is sent only if the server
        announces that it supports DELETE, too."""
        probe = PublicationOrder(uuid4(), f"medialedger-probe-{uuid4().hex}")
        answer = await self._ask("OPTIONS", self._url(probe))
        if answer.status in _WITHOUT:
            answer = await self._ask("HEAD", self._url(probe))
            if answer.status in (*_WITHOUT, 410):
                return
        if answer.status >= 300:
            raise self._refusal(answer)
        allowed = {method.strip().upper() for method in answer.headers.get("allow", "").split(",")} - {""}
        if allowed and self._method not in allowed:
            raise TargetFailed(
                "destination", f"The URL accepts {', '.join(sorted(allowed))}, but not {self._method}: change method."
            )
        if self._method == "PUT" and {"PUT", "DELETE"} <= allowed:
            await self._try_upload(probe)

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
        with translate_client_faults():
            reply = await self._client.send(
                self._method, url, pieces=body, size=source.size, headers=given, seconds_without_progress=self._seconds
            )
        if not 200 <= reply.status < 300:
            raise self._refusal(reply)
        details = {"link": _without_query(self._place(url, reply)), "size": source.size, "sha256": source.sha256}
        await self._verify(order, details, digest)
        return details

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        reply = await self._ask("HEAD", self._file(order, details))
        if reply.status in _GONE:
            return None
        if not 200 <= reply.status < 300:
            raise self._refusal(reply)
        reported = {"link": details.get("link", ""), "lastModified": reply.headers.get("last-modified")}
        size = reply.headers.get("content-length", "")
        return {**reported, "size": int(size) if size.isascii() and size.isdigit() else None}

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        if self._method == "POST" and not details:
            return  # it is unknown whether and where a file was created
        reply = await self._ask("DELETE", self._file(order, details or {}))
        if reply.status not in _GONE and not 200 <= reply.status < 300:
            raise self._refusal(reply)

    async def close(self) -> None:
        await self._client.close()

    async def _try_upload(self, probe: PublicationOrder) -> None:
        for method in ("PUT", "DELETE"):
            reply = await self._ask(method, self._url(probe))
            if not 200 <= reply.status < 300:
                raise self._refusal(reply)

    async def _verify(self, order: PublicationOrder, details: Details, digest: str) -> None:
        """Compare the file with the size and the hash that the server reports, if it reports them."""
        reply = await self._ask("HEAD", self._file(order, details), {"Want-Repr-Digest": "sha-256=10"})
        if reply.status != 200:
            return
        size = reply.headers.get("content-length", "")
        reported = reply.headers.get("repr-digest", "")
        other = reported.startswith("sha-256=:") and not reported.startswith(f"sha-256=:{digest}:")
        if other or (size.isascii() and size.isdigit() and int(size) not in (0, details["size"])):
            raise TargetFailed("retry", "The file at the destination differs from the one that was sent, in its size or its hash.")

    async def _ask(self, method: str, url: str, more: Mapping[str, str] | None = None) -> Reply:
        with translate_client_faults():
            return await self._client.request(
                method, url, headers={**self._headers, **(more or {})}, seconds=self._seconds, most=1_024
            )

    def _url(self, order: PublicationOrder) -> str:
        name = quote(published_names.content_id(order), safe="")
        url = published_names.text(self._config, "url")
        if self._method == "PUT" and _CONTENT not in url and _PUBLICATION not in url:
            raise TargetFailed(
                "destination", f"The URL contains no name: put {_CONTENT} into it, or all uploads have the same address."
            )
        return _with_ending(url.replace(_CONTENT, name).replace(_PUBLICATION, str(order.id)), order.ending)

    def _file(self, order: PublicationOrder, details: Details) -> str:
        """Return the address of the file. After a POST it is the server's, if it has the same origin as the URL."""
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
            str(header["name"]): str(header["value"])
            for header in headers
            if isinstance(header, Mapping) and {"name", "value"} <= header.keys()
        }

    def _refusal(self, reply: Reply) -> TargetFailed:
        return refusal(reply, what="The server of the destination", credentials="headers")


def _with_ending(url: str, ending: str) -> str:
    """Return the address of a text: the address of the film with the ending of the text."""
    if ending == _FILM:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.removesuffix(_FILM) + ending))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def _without_query(url: str) -> str:
    """Return the URL without its query, which may be a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
