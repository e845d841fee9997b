"""Signed requests to an S3 server over the guarded client: AWS Signature Version 4, by the signer of botocore."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from domain.kernel.untrusted_xml import HasDoctype, NotXml, parsed_xml
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import published_names
from workers.adapters.targets.answers import SECONDS, translate_client_faults
from workers.ports.outbound import Reply
from workers.ports.targets import TargetFailed

_MOST: Final = 4 * 1024 * 1024
"""The limit for an answer in bytes: a list of a thousand parts or uploads is shorter."""
_SAFE: Final = "/-_.~"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The place of the objects. The bucket is part of the path, which every server supports."""

    endpoint: str
    bucket: str
    prefix: str
    region: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Bucket:
        prefix = published_names.text(config, "prefix", "").strip("/")
        if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
            raise TargetFailed("destination", "The destination's prefix may not have empty parts, '.' or '..'.")
        endpoint = published_names.text(config, "endpoint").rstrip("/")
        bucket, region = published_names.text(config, "bucket"), published_names.text(config, "region", "us-east-1")
        if "/" in bucket or not bucket.isprintable():
            raise TargetFailed("destination", "The destination's bucket is not a valid name of a bucket.")
        return cls(endpoint, bucket, prefix, region)

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    def url(self, key: str = "", query: Mapping[str, str] | None = None) -> str:
        query_text = f"?{urlencode(query, quote_via=quote)}" if query else ""
        place = f"/{quote(key, safe=_SAFE)}" if key else ""
        return f"{self.endpoint}/{quote(self.bucket, safe=_SAFE)}{place}{query_text}"


class _Signer(S3SigV4Auth):
    """Signs a body by its hash, which is known before the body is read."""

    def payload(self, request: AWSRequest) -> str:
        return str(request.context["sha256"])


class SignedClient:
    """Requests to one bucket."""

    def __init__(self, bucket: Bucket, *, credentials: Credentials, client: GuardedClient, seconds: float = SECONDS) -> None:
        self.bucket = bucket
        self._seconds = seconds
        self._signer = _Signer(credentials, "s3", bucket.region)
        self._client = client

    async def request(
        self,
        method: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Reply:
        url = self.bucket.url(key, query)
        signed = self._signed(method, url, headers or {}, hashlib.sha256(body).hexdigest())
        with translate_client_faults():
            return await self._client.request(method, url, headers=signed, body=body, seconds=self._seconds, most=_MOST)

    async def send(
        self,
        key: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: AsyncIterable[bytes],
        size: int,
        sha256: str,
    ) -> Reply:
        """Put an object whose body is read while it is sent."""
        url = self.bucket.url(key, query)
        signed = self._signed("PUT", url, headers, sha256)
        with translate_client_faults():
            return await self._client.send(
                "PUT", url, pieces=body, size=size, headers=signed, seconds_without_progress=self._seconds, most=_MOST
            )

    def _signed(self, method: str, url: str, headers: Mapping[str, str], sha256: str) -> dict[str, str]:
        if not urlsplit(url).netloc:
            raise TargetFailed("destination", "The destination's endpoint is not a URL: it must begin with https://.")
        request = AWSRequest(method=method, url=url, headers=dict(headers))
        request.context["sha256"] = sha256
        self._signer.add_auth(request)
        return dict(request.headers.items())


def texts(reply: Reply, name: str) -> list[str]:
    """Return the texts of all elements with this name in an answer."""
    return [element.text or "" for element in _elements(reply) if _local(element) == name]


def entries(reply: Reply, name: str) -> list[dict[str, str]]:
    """Return the members of all elements with this name."""
    return [{_local(child): child.text or "" for child in element} for element in _elements(reply) if _local(element) == name]


def error_code(reply: Reply) -> str:
    """Return the code of an error; empty if the answer is not an error."""
    codes = texts(reply, "Code") if b"<Error" in reply.body else []
    return codes[0][:100] if codes and codes[0].isascii() and codes[0].isalnum() else ""


def _elements(reply: Reply) -> list[Any]:
    if len(reply.body) >= _MOST:
        raise TargetFailed("retry", "The answer of the S3 server is too large.")
    try:
        return list(parsed_xml(reply.body).iter())
    except (NotXml, HasDoctype):
        return []


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
