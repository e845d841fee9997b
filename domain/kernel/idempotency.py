"""Idempotency keys: a request that is sent twice under one key is carried out once and answered twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.kernel.errors import DomainError


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's `Idempotency-Key`, and what identifies the request that it came with.

    `fingerprint` is a keyed hash of the request. `status` is the status of a successful response. `base_url` is the address under
    which the client reached us: some responses hold absolute URLs."""

    client: str
    key: str
    fingerprint: bytes
    status: int = 200
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """What is stored of the first request under a key: enough to make its response again.

    `position` is the log position as of which the response is worded, `streams` the aggregates that it shows. `result` is what the
    log does not hold: a count, the outcome of a call to the outside. It never holds a secret."""

    of: IdempotencyKey
    streams: Sequence[str]
    result: Mapping[str, Any] = field(default_factory=dict)
    position: int | None = None
    """None until it is written."""


class IdempotencyKeyUsed(DomainError):
    """Another process wrote a record under this key first. Nothing was written; the first response counts."""

    def __init__(self, client: str, key: str) -> None:
        super().__init__(f"{client} has used this key already")
        self.client = client
        self.key = key
