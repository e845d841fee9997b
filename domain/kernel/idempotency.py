"""Idempotency keys: a request that is sent twice under one key is executed once and answered twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.kernel.errors import DomainError


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's `Idempotency-Key`, with the data that identifies its request.

    `fingerprint` is a keyed hash of the request. `status` is the status of a successful response. `base_url` is the address that
    the client used, because some responses contain absolute URLs.
    """

    client: str
    key: str
    fingerprint: bytes
    status: int = 200
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """The stored record of the first request under a key, from which its response can be made again.

    The response is written as of the log position `position` and shows the aggregates `streams`. `result` is what the log does not
    contain: a count, or the outcome of an external call. It never contains a secret.
    """

    of: IdempotencyKey
    streams: Sequence[str]
    result: Mapping[str, Any] = field(default_factory=dict)
    position: int | None = None
    """The log position; None until the record is written."""


class IdempotencyKeyUsed(DomainError):
    """Raised when another process wrote a record under this key first. Nothing was written; the first response is used."""

    def __init__(self, client: str, key: str) -> None:
        super().__init__(f"{client} has used this key already")
        self.client = client
        self.key = key
