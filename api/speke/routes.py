"""The key provider (SPEKE): content keys and DRM signalling for packagers: docs/reference/api/key-provider.md.

The API key is checked before the body is read. Neither the document nor the response is ever logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Final
from urllib.parse import urlsplit

from cachetools import LRUCache
from fastapi import APIRouter, Body

from api.http.body import XML
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import CONTENT_KEYS
from api.kernel.request import Request
from api.kernel.version import product_version
from api.speke.cpix.answer import Template, template
from api.speke.cpix.errors import SpekeError
from api.speke.cpix.request import CpixRequest, read, version_headers
from api.speke.cpix.signalling import Audience
from api.speke.rate import RateLimit
from api.speke.surface import NEVER_STORED, KeyProviderRoute, refusal
from api.speke.usage_recorder import UsageRecorder
from domain.content_key.aggregate import KidTaken, TooManyKeys
from domain.content_key.handlers import ContentKeyHandlers, KeyRequest
from domain.content_key.usage import KeyUse
from projections.client.directory import ClientDirectory
from projections.content_key.queries import ContentKeyQueries
from projections.job.settings import EngineSettingsQueries

# The cache of responses without their keys. Packagers send the same document for each endpoint and at each start. A cached
# response holds no key: keys are read for each request. Responses with encrypted keys are not cached.

CacheKey = tuple[bytes, str | None, Audience]
_LARGEST: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """The keys that a document requests, and the response to it without them."""

    requests: Sequence[KeyRequest]
    version: str
    template: Template


class ResponseCache:
    """The most recently used responses, up to `most` bytes. The audience is part of the key, because other settings result in
    another response."""

    def __init__(self, *, most: int = 32 * 1024 * 1024) -> None:
        self._responses = LRUCache[CacheKey, CachedResponse](most, getsizeof=lambda response: response.template.size)

    def key(self, body: bytes, version: str | None, *, audience: Audience) -> CacheKey:
        return blake2b(body, digest_size=32).digest(), version, audience

    def get(self, key: CacheKey) -> CachedResponse | None:
        return self._responses.get(key)

    def put(self, key: CacheKey, response: CachedResponse) -> None:
        if response.template.size <= _LARGEST and not response.template.complete:
            self._responses[key] = response


# The limit on the content keys of a client: docs/reference/api/job-engine.md#settings. Keys are never deleted, so a count is
# cached and increased. Other processes issue keys too, so the limit may be exceeded slightly.

_HOLDS: Final = 3600.0
_REFUSES: Final = 10.0
"""Seconds after which a count that refuses is read again, because admitted keys may have failed. Other counts are valid for
`_HOLDS` seconds."""


@dataclass(slots=True)
class _Counted:
    keys: int
    at: float


class ContentKeyCeiling:
    """An implementation of the port `KeyCeiling`."""

    def __init__(
        self, keys: ContentKeyQueries, settings: EngineSettingsQueries, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys = keys
        self._settings = settings
        self._now = now
        self._counted: dict[str, _Counted] = {}

    async def admit(self, client: str, new: int) -> None:
        most = (await self._settings.of([client]))[client].max_content_keys
        counted = self._counted.get(client)
        age = 0.0 if counted is None else self._now() - counted.at
        if counted is None or age > _HOLDS or (age > _REFUSES and counted.keys + new > most):
            counted = _Counted(await self._keys.count_of(client, most=most), self._now())
            self._counted[client] = counted
        if counted.keys + new > most:
            raise TooManyKeys(most)
        counted.keys += new


routes = APIRouter(tags=["Key provider"], route_class=KeyProviderRoute)

_AGENT: Final = f"medialedger/{product_version()}"
_KID_TAKEN: Final = "SPEKE-4221"
_TOO_MANY_KEYS: Final = "SPEKE-4222"
_EXAMPLE: Final = """\
<cpix:CPIX id="match-17" xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc"
    xmlns:speke="urn:aws:amazon:com:speke">
  <cpix:ContentKeyList><cpix:ContentKey kid="" explicitIV=""/></cpix:ContentKeyList>
  <cpix:DRMSystemList><cpix:DRMSystem kid="" systemId="edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"/></cpix:DRMSystemList>
</cpix:CPIX>
"""


@routes.post("/{client_name}/speke", dependencies=[CONTENT_KEYS])
@rules(
    absent="never",
    if_match=False,
    body_types=(XML,),
    media_type="application/xml",
    example=_EXAMPLE,
    errors={
        422: "The document is valid, but the requested keys cannot be issued; the line begins with a code",
        429: "The client has requested keys too often; see Retry-After",
    },
)
async def issue_content_keys(
    request: Request,
    client_name: str,
    rate: Service[RateLimit],
    handlers: Service[ContentKeyHandlers],
    usage: Service[UsageRecorder],
    directory: Service[ClientDirectory],
    cache: Service[ResponseCache],
    body: Annotated[bytes, Body()] = b"",
) -> Response:
    """Content keys and DRM signalling for a CPIX document (SPEKE 1, 2.0 and 2.1).

    The answer is the document, filled in. A refusal is one line of text that begins with a code, which the header X-Error-Code
    repeats.
    """
    rate.take(client_name)
    audience = Audience(client_name, urlsplit(request.root_url).netloc, directory.drm_of(client_name))
    speke_version = request.header("x-speke-version")
    cache_key = cache.key(body, speke_version, audience=audience)
    try:
        response = cache.get(cache_key)
        if response is not None:
            keys = await handlers.issue(response.requests, invocation=request.invocation)
        else:
            document = read(body, speke_version=speke_version)
            requests = key_requests(document, client=client_name)
            keys = await handlers.issue(requests, invocation=request.invocation)
            response = CachedResponse(requests, document.version, template(document, keys, audience=audience))
            cache.put(cache_key, response)
    except SpekeError as error:
        return refusal(error.code, error.status, error.text)
    except KidTaken as error:
        return refusal(_KID_TAKEN, 422, error.reason)
    except TooManyKeys as error:
        return refusal(_TOO_MANY_KEYS, 422, error.rule)
    for asked, key in zip(response.requests, keys, strict=True):
        if not key.is_new:  # the event of a new key records its first use
            usage.add(KeyUse(key.id, request.caller.name, asked.systems, response.version, request.transaction_id))
    headers = (NEVER_STORED, *version_headers(response.version, _AGENT))
    return Response(response.template.filled(keys), headers=headers, media_type="application/xml")


def key_requests(document: CpixRequest, *, client: str) -> list[KeyRequest]:
    """Return the keys that the document requests, in its order."""
    return [
        KeyRequest(
            client,
            document.content_id,
            key.period,
            key.kid,
            slot=key.slot,
            iv=key.iv,
            systems=tuple(system.name.lower() for system in document.systems_of(place)),
            speke_version=document.version,
        )
        for place, key in enumerate(document.keys)
    ]


@routes.get("/{client_name}/speke/heartbeat", dependencies=[CONTENT_KEYS])
@rules(absent="never", media_type="text/plain")
async def check_key_provider(request: Request, client_name: str) -> Response:
    """Confirm that the key provider answers and that the API key belongs to the client."""
    return Response(b"OK\n", headers=(NEVER_STORED, ("speke-user-agent", _AGENT)), media_type="text/plain; charset=utf-8")
