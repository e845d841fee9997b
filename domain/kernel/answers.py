"""An answer kept under a client's Idempotency-Key, so that the same request sent twice is carried out once."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.kernel.errors import DomainError


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What a repeat is told. `fingerprint` is a hash of the request; `body` holds no secret: they were nulled before."""

    client: str
    key: str
    fingerprint: bytes
    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)


class AnswerAlreadyRecorded(DomainError):
    """Another process wrote an answer under this key first: nothing was written, and its answer is the one that counts."""

    def __init__(self, client: str, key: str) -> None:
        super().__init__(f"{client} already has an answer under this key")
        self.client = client
        self.key = key
