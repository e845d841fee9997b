"""The cache of responses without their keys. Packagers send the same document for each endpoint and at each start.

A cached response holds no key: keys are read for each request. Responses with encrypted keys are not cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from cachetools import LRUCache

from api.speke.cpix.answer import Template
from api.speke.cpix.signalling import Audience
from domain.content_key.handlers import KeyRequest

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
