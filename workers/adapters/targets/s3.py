"""A target in a bucket of an S3 server: uploads in parts, which become visible when all of them have arrived.

The server lists the finished parts of an upload, so only the upload is remembered here, and at most one part is sent twice. Each
part is sent with its SHA-256 in the signature and with its MD5, which the server checks; what the server then reports is compared
again.
"""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cached_property
from re import compile as regex
from typing import Any, Final
from uuid import uuid4
from xml.sax.saxutils import escape

from botocore.credentials import Credentials

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import published_names
from workers.adapters.targets.answers import SECONDS, refusal, retry_after
from workers.adapters.targets.files import FileTarget
from workers.adapters.targets.parts import UploadPart, count, pieces, sum_part
from workers.adapters.targets.s3_signing import Bucket, SignedClient, entries, error_code, texts
from workers.ports.outbound import Reply
from workers.ports.targets import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

PART: Final = 16 * 1024 * 1024
_MOST_PARTS: Final = 10_000
_LARGEST: Final = 5 * 1024**4
_MD5: Final = regex(r"[0-9a-f]{32}")
_KEYS: Final = frozenset({"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "AccountProblem"})
_BUSY: Final = frozenset({"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted"})
_FULL: Final = frozenset({"QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity"})
_PLACE: Final = frozenset(
    {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
)


class S3Target(FileTarget):
    """The target. Its configuration is `endpoint`, `bucket`, `prefix`, `accessKeyId`, `secretAccessKey`, and `region`, by default
    us-east-1."""

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, part: int = PART, seconds: float = SECONDS) -> None:
        self._config = config
        self._client = client
        self._part = part
        self._seconds = seconds

    async def check(self) -> None:
        """Put, read and delete a small object."""
        key, content = self._bucket.key(f"{published_names.PROBE}{uuid4().hex}"), uuid4().bytes
        _require_success(await self._s3.request("PUT", key, body=content))
        try:
            reply = await self._s3.request("GET", key)
            _require_success(reply)
            if reply.body != content:
                raise TargetFailed("destination", "The S3 server does not return what was stored: check the endpoint.")
        finally:
            deleted = await self._s3.request("DELETE", key)
        _require_success(deleted)

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        if not 0 < source.size <= _LARGEST:
            raise TargetFailed("media", "The file is empty, or larger than the 5 TiB of an object in S3.")
        key = self._key(order)
        if state is not None and await self._exists(key, source):
            return self._details(key, source)
        upload, done = await self._resume(key, source, state)
        if upload is None:
            await self._abort_all(key)
            upload = _Upload(key, await self._begin(key, source), self._part_size(source))
            await save(upload.state(source))
        try:
            sums = await self._send_parts(source, upload, done, save=save, progress=progress)
            await self._complete(upload, sums)
        except TargetFailed as failed:
            if failed.kind != "retry":
                await self._abort(upload)
            raise
        if not await self._exists(key, source):
            raise TargetFailed("retry", "The object on the S3 server differs from the file that was sent, in its size or its hash.")
        return self._details(key, source)

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        reply = await self._s3.request("HEAD", self._key(order))
        if reply.status == 404:
            return None
        _require_success(reply)
        size = reply.headers.get("content-length", "")
        return {
            **details,
            "size": int(size) if size.isdigit() else None,
            "etag": reply.headers.get("etag", "").strip('"'),
            "lastModified": reply.headers.get("last-modified"),
        }

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        key = self._key(order)
        await self._abort_all(key)
        reply = await self._s3.request("DELETE", key)
        if reply.status != 404 or error_code(reply) == "NoSuchBucket":
            _require_success(reply)

    async def close(self) -> None:
        await self._client.close()

    # --- an upload in parts

    async def _begin(self, key: str, source: UploadSource) -> str:
        headers = {"Content-Type": source.media_type, "x-amz-meta-sha256": source.sha256}
        reply = await self._s3.request("POST", key, query={"uploads": ""}, headers=headers)
        _require_success(reply)
        [upload] = texts(reply, "UploadId") or [""]
        if not upload or len(upload) > 2_000:
            raise TargetFailed("retry", "The S3 server began an upload without an id.")
        return upload

    async def _resume(
        self, key: str, source: UploadSource, state: UploadState | None
    ) -> tuple[_Upload | None, Mapping[int, Mapping[str, str]]]:
        """Return the upload of an earlier attempt with its finished parts; None if it must begin again."""
        upload = _Upload.of(key, source, state)
        if upload is None:
            return None, {}
        done: dict[int, Mapping[str, str]] = {}
        asked, last = {"uploadId": upload.id}, count(source, upload.part)
        while True:
            reply = await self._s3.request("GET", key, query=asked)
            if reply.status == 404 and error_code(reply) != "NoSuchBucket":
                return None, {}
            _require_success(reply)
            numbered = {_number(entry.get("PartNumber", "")): entry for entry in entries(reply, "Part")}
            done |= {number: entry for number, entry in numbered.items() if 0 < number <= last}
            following = _number((texts(reply, "NextPartNumberMarker") or [""])[0])
            if texts(reply, "IsTruncated") != ["true"] or not _number(asked.get("part-number-marker", "0")) < following < last:
                break
            asked["part-number-marker"] = str(following)
        return upload, done

    async def _send_parts(
        self,
        source: UploadSource,
        upload: _Upload,
        done: Mapping[int, Mapping[str, str]],
        *,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> list[tuple[str, str]]:
        """Return MD5 and entity tag of each part. The next part is read while one is sent."""
        sums: list[tuple[str, str]] = []
        last = count(source, upload.part)
        following = asyncio.ensure_future(sum_part(source, 1, size=upload.part))
        try:
            for number in range(1, last + 1):
                part = await following
                if number < last:
                    following = asyncio.ensure_future(sum_part(source, number + 1, size=upload.part))
                there = done.get(number, {})
                tag = there.get("ETag", "").strip('"')
                if there.get("Size") != str(part.size) or (_MD5.fullmatch(tag) and tag != part.md5):
                    tag = await self._send(source, upload, part, progress=progress)
                    await save(upload.state(source, done=number))
                progress(UploadProgress(part.start + part.size, source.size))
                sums.append((part.md5, tag))
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError, TargetFailed, OSError):
                await following
        return sums

    async def _send(
        self, source: UploadSource, upload: _Upload, part: UploadPart, *, progress: Callable[[UploadProgress], None]
    ) -> str:
        """Send a part and return its entity tag."""
        body = pieces(
            source.path,
            start=part.start,
            size=part.size,
            sent=lambda sent: progress(UploadProgress(part.start + sent, source.size)),
        )
        reply = await self._s3.send(
            upload.key,
            query={"partNumber": str(part.number), "uploadId": upload.id},
            headers={"Content-MD5": b64encode(bytes.fromhex(part.md5)).decode()},
            body=body,
            size=part.size,
            sha256=part.sha256,
        )
        _require_success(reply, upload=True)
        tag = reply.headers.get("etag", "").strip('"')
        encrypted = "kms" in reply.headers.get("x-amz-server-side-encryption", "")
        if not tag or (_MD5.fullmatch(tag) and tag != part.md5 and not encrypted):
            raise TargetFailed("retry", "The part on the S3 server differs from the one that was sent: its hash is different.")
        return tag

    async def _complete(self, upload: _Upload, sums: list[tuple[str, str]]) -> None:
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{escape(tag)}&quot;</ETag></Part>"
            for number, (_, tag) in enumerate(sums, 1)
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        reply = await self._s3.request(
            "POST", upload.key, query={"uploadId": upload.id}, headers={"Content-Type": "application/xml"}, body=body
        )
        _require_success(reply, upload=True)  # an error may come with status 200
        [tag] = texts(reply, "ETag") or [""]
        plain = all(md5 == part for md5, part in sums)
        joined = hashlib.md5(b"".join(bytes.fromhex(md5) for md5, _ in sums), usedforsecurity=False).hexdigest()
        reported_md5 = tag.strip('"').partition("-")[0]
        if plain and _MD5.fullmatch(reported_md5) and reported_md5 != joined:
            raise TargetFailed("retry", "The S3 server has assembled the parts wrongly: the hash of the object differs.")

    async def _abort(self, upload: _Upload) -> None:
        with suppress(TargetFailed):  # the next attempt aborts it, or the deletion of the publication
            await self._s3.request("DELETE", upload.key, query={"uploadId": upload.id})

    async def _abort_all(self, key: str) -> None:
        """Abort the uploads of this publication that were forgotten or are no longer needed."""
        reply = await self._s3.request("GET", query={"uploads": "", "prefix": key})
        _require_success(reply)
        for upload in entries(reply, "Upload"):
            if upload.get("Key") == key and upload.get("UploadId"):
                aborted = await self._s3.request("DELETE", key, query={"uploadId": upload["UploadId"]})
                if aborted.status != 404:
                    _require_success(aborted)

    async def _exists(self, key: str, source: UploadSource) -> bool:
        reply = await self._s3.request("HEAD", key)
        if reply.status == 404:
            return False
        _require_success(reply)
        headers = reply.headers
        return headers.get("content-length") == str(source.size) and headers.get("x-amz-meta-sha256") == source.sha256

    # --- the place of objects

    @cached_property
    def _bucket(self) -> Bucket:
        return Bucket.of(self._config)

    @cached_property
    def _s3(self) -> SignedClient:
        keys = Credentials(published_names.text(self._config, "accessKeyId"), published_names.text(self._config, "secretAccessKey"))
        return SignedClient(self._bucket, credentials=keys, client=self._client, seconds=self._seconds)

    def _key(self, order: PublicationOrder) -> str:
        return self._bucket.key(published_names.file_name(order))

    def _part_size(self, source: UploadSource) -> int:
        return max(self._part, -(-source.size // _MOST_PARTS))

    def _details(self, key: str, source: UploadSource) -> Details:
        return {"link": self._bucket.url(key), "key": key, "size": source.size, "sha256": source.sha256}


class _Upload:
    """An upload that was begun on the server."""

    def __init__(self, key: str, upload: str, part: int) -> None:
        self.key = key
        self.id = upload
        self.part = part

    def state(self, source: UploadSource, *, done: int = 0) -> UploadState:
        return {"upload": self.id, "key": self.key, "part": self.part, "sha256": source.sha256, "done": done}

    @classmethod
    def of(cls, key: str, source: UploadSource, state: UploadState | None) -> _Upload | None:
        """Return the upload in the state; None if it is of another file or to another place."""
        match state:
            case {"upload": str(upload), "key": str(stored_key), "part": int(part), "sha256": str(sha256)}:
                return cls(key, upload, part) if (stored_key, sha256) == (key, source.sha256) and part > 0 else None
        return None


def _number(text: str) -> int:
    """Return the number of a part; 0 if the text is not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _require_success(reply: Reply, *, upload: bool = False) -> None:
    """Raise `TargetFailed` for a refusal. `upload` is True for requests that can be repeated after the upload disappeared."""
    code = error_code(reply)
    if 200 <= reply.status < 300 and not code:
        return
    suffix = f" ({code})" if code else ""
    if code in _KEYS:
        raise TargetFailed(
            "destination",
            f"The S3 server refuses the key{suffix}: check accessKeyId, secretAccessKey and their rights on the bucket.",
        )
    if code == "NoSuchBucket":
        raise TargetFailed("destination", "The bucket does not exist on the S3 server: create it, or correct bucket or endpoint.")
    if code in _BUSY or (upload and code in ("NoSuchUpload", "InvalidPart", "BadDigest")):
        raise TargetFailed("retry", f"The S3 server did not accept it{suffix}.", after=retry_after(reply))
    if code in _FULL:
        raise TargetFailed("destination", f"The S3 server has no space left{suffix}: make room there.")
    if code in _PLACE or 300 <= reply.status < 400:
        raise TargetFailed(
            "destination", f"The bucket is at another endpoint or in another region{suffix}: correct endpoint and region."
        )
    raise refusal(reply, what="The S3 server", credentials="accessKeyId, secretAccessKey")
