"""A bucket of an S3 server, behind the port `ObjectStore`.

The client blocks; its calls run in separate threads. It retries failed requests, so a remaining error means that the server is away
or refuses.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from errno import EACCES
from functools import cache, partial
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import boto3
from botocore import exceptions as errors
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from domain.kernel.errors import Unavailable
from workers.ports.buckets import BucketAddress, Completion, StoredObject

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_s3.type_defs import CompletedPartTypeDef

P = ParamSpec("P")
T = TypeVar("T")

_THREADS: Final = 16
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 30
_ATTEMPTS: Final = 4
_ABSENT: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_NO_UPLOAD: Final = frozenset({"NoSuchUpload"})
_CHANGED: Final = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict"})
PIECE: Final = 256 * 1024
"""The bytes of an object that are in memory at a time, for each reader."""


class S3Bucket:
    """The objects below the prefix of one bucket. Keys are relative to it."""

    def __init__(self, address: BucketAddress) -> None:
        self._bucket = address.bucket
        self._prefix = f"{address.prefix}/" if address.prefix else ""
        self._client = _client(address)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bucket")

    async def head(self, key: str) -> StoredObject | None:
        try:
            answer = await self._call(self._client.head_object, Bucket=self._bucket, Key=self._key(key))
        except _Absent:
            return None
        return _stored_object(
            key, answer["ContentLength"], answer["LastModified"], answer["ETag"], answer["Metadata"].get("sha256", "")
        )

    async def list(self, prefix: str, *, limit: int, after: str = "") -> Sequence[StoredObject]:
        """Return objects in the order of their keys; `prefix` and `after` are texts, not folders."""
        page = await self._call(
            self._client.list_objects_v2,
            Bucket=self._bucket,
            Prefix=self._key(prefix),
            StartAfter=self._key(after) if after else "",
            MaxKeys=min(limit, 1000),
        )
        return [
            _stored_object(each["Key"].removeprefix(self._prefix), each["Size"], each["LastModified"], each["ETag"], "")
            for each in page.get("Contents", ())
        ]

    async def folders(self, prefix: str) -> Sequence[str]:
        """Return the names that follow the prefix, up to the next slash."""
        names: list[str] = []
        after: dict[str, Any] = {}
        while True:
            page = await self._call(
                self._client.list_objects_v2, Bucket=self._bucket, Prefix=self._key(prefix), Delimiter="/", **after
            )
            names += [each["Prefix"].removeprefix(self._key(prefix)).rstrip("/") for each in page.get("CommonPrefixes", ())]
            if not page["IsTruncated"]:
                return names
            after = {"ContinuationToken": page["NextContinuationToken"]}

    async def get(self, key: str, *, limit: int) -> tuple[bytes, str] | None:
        """Return content and entity tag; None if there is no such object. Raises `ValueError` if it has more than `limit` bytes."""
        try:
            return await self._call(self._get, key, limit)
        except _Absent:
            return None

    def _get(self, key: str, limit: int) -> tuple[bytes, str]:
        answer = self._client.get_object(Bucket=self._bucket, Key=self._key(key))
        with answer["Body"] as body:
            if answer["ContentLength"] > limit:
                raise ValueError(f"{key} has more than {limit} bytes")
            return body.read(), answer["ETag"]

    async def pieces(self, key: str, *, etag: str, start: int, size: int) -> AsyncGenerator[bytes, None]:
        """Yield a part of this version. Raises `Unavailable` if it is no longer the current one."""
        if not size:
            return
        wanted = f"bytes={start}-{start + size - 1}"
        get = partial(self._client.get_object, Bucket=self._bucket, Key=self._key(key), Range=wanted, IfMatch=etag)
        try:
            body = (await self._call(get))["Body"]
        except (_Absent, _Changed):
            raise Unavailable("The file was replaced while it was read.") from None
        try:
            while size:
                piece = await self._call(body.read, min(PIECE, size))
                if not piece:
                    raise Unavailable(_AWAY)
                size -= len(piece)
                yield piece
        finally:
            body.close()

    async def put(self, key: str, content: bytes, *, instead_of: str | None = None) -> bool:
        """Store an object. `instead_of` is the entity tag of the object to replace, empty if none may exist. Return False if this
        condition was not met."""
        try:
            await self._call(
                self._client.put_object, Bucket=self._bucket, Key=self._key(key), Body=content, **_condition(instead_of)
            )
        except (_Changed, _Absent):
            return False
        return True

    async def put_locked(self, key: str, content: bytes, *, until: datetime) -> None:
        """Store an object whose version cannot be deleted or replaced before `until`. Raises `OSError` for a bucket without object
        lock."""
        digest = b64encode(md5(content, usedforsecurity=False).digest()).decode()  # the servers demand it
        lock: dict[str, Any] = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until, "ContentMD5": digest}
        await self._call(self._client.put_object, Bucket=self._bucket, Key=self._key(key), Body=content, **lock)

    async def delete(self, keys: Collection[str]) -> None:
        """Delete objects. Keys that do not exist are ignored."""
        for key in keys:
            await self._call(self._client.delete_object, Bucket=self._bucket, Key=self._key(key))

    # --- multipart uploads, which are invisible until they are completed

    async def begin_upload(self, key: str, *, sha256: str) -> str:
        begun = await self._call(
            self._client.create_multipart_upload, Bucket=self._bucket, Key=self._key(key), Metadata={"sha256": sha256}
        )
        return begun["UploadId"]

    async def upload_part(self, key: str, upload: str, *, number: int, content: bytes) -> str:
        """Upload a part and return its entity tag. Raises `OSError` if the upload was ended."""
        put = self._client.upload_part
        try:
            part = await self._call(put, Bucket=self._bucket, Key=self._key(key), UploadId=upload, PartNumber=number, Body=content)
        except _Absent:
            raise OSError(EACCES, "the upload was ended by another worker") from None
        return part["ETag"]

    async def complete_upload(self, key: str, upload: str, *, parts: Sequence[str], instead_of: str | None = None) -> Completion:
        """Complete an upload. `NO_UPLOAD` means that it was completed or ended before. `instead_of` is a condition as for `put`."""
        numbered: list[CompletedPartTypeDef] = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(parts, 1)]
        try:
            await self._call(
                self._client.complete_multipart_upload,
                Bucket=self._bucket,
                Key=self._key(key),
                UploadId=upload,
                MultipartUpload={"Parts": numbered},
                **_condition(instead_of),
            )
        except _Absent:
            return Completion.NO_UPLOAD
        except _Changed:
            return Completion.CHANGED
        return Completion.DONE

    async def end_upload(self, key: str, upload: str) -> None:
        """End an upload and delete its parts. A completed upload is not affected."""
        with suppress(_Absent):
            await self._call(self._client.abort_multipart_upload, Bucket=self._bucket, Key=self._key(key), UploadId=upload)

    async def uploads(self) -> Sequence[tuple[str, str, datetime]]:
        """Return key, id and beginning of up to a thousand uploads that are neither completed nor ended."""
        page = await self._call(self._client.list_multipart_uploads, Bucket=self._bucket, Prefix=self._prefix)
        return [(each["Key"].removeprefix(self._prefix), each["UploadId"], each["Initiated"]) for each in page.get("Uploads", ())]

    def _key(self, key: str) -> str:
        return self._prefix + key

    async def _call(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with _translate_errors():
            return await asyncio.get_running_loop().run_in_executor(self._threads, partial(act, *args, **kwargs))


def _condition(instead_of: str | None) -> dict[str, Any]:
    return {} if instead_of is None else {"IfMatch": instead_of} if instead_of else {"IfNoneMatch": "*"}


class _Absent(Exception):
    """Raised when there is no such object or upload."""


class _Changed(Exception):
    """Raised when a condition was not met."""


_BROKEN: Final = (
    errors.ConnectionError,
    errors.HTTPClientError,
    errors.IncompleteReadError,
    errors.ResponseStreamingError,
    HTTPError,  # of a body that is read at once
)
_AWAY: Final = "The media store does not answer."


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors, because the messages of the client may quote the request."""
    try:
        yield
    except ClientError as error:
        raise _server_error(error) from None
    except _BROKEN:
        raise Unavailable(_AWAY) from None
    except BotoCoreError as error:
        raise OSError(EACCES, f"the media store cannot be used: {type(error).__name__}") from None


def _server_error(error: ClientError) -> Exception:
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _ABSENT or code in _NO_UPLOAD:
        return _Absent()
    if code in _CHANGED:
        return _Changed()
    if status >= 500 or status in (0, 408, 429) or code in ("SlowDown", "RequestTimeout", "Throttling", "InternalError"):
        return Unavailable(_AWAY)
    return OSError(EACCES, f"the media store refuses: {code or status}")


def _stored_object(key: str, size: int, modified: datetime, etag: str, sha256: str) -> StoredObject:
    return StoredObject(key, size, modified.astimezone(UTC), etag, sha256)


def _client(address: BucketAddress) -> S3Client:
    """Return a client. Without a key it takes the credentials that the machine provides, like the programs of AWS."""
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=2 * _THREADS,
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        s3={"addressing_style": "path" if address.path_style else "virtual"},
        request_checksum_calculation="when_required",  # servers other than Amazon's support no other
        response_checksum_validation="when_required",
    )
    return _session().client(
        "s3",
        endpoint_url=address.endpoint,
        region_name=address.region,
        aws_access_key_id=address.access_key,
        aws_secret_access_key=address.secret_key,
        config=config,
    )


@cache
def _session() -> boto3.session.Session:
    """Return the session of the process, which caches the description of the service: reading it takes a third of a second."""
    return boto3.session.Session()
