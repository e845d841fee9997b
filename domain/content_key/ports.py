"""Ports of the use cases on content keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from domain.kernel.encryption import EncryptedSecret


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A content key as it is stored, its key encrypted."""

    content_id: str
    kid: UUID
    iv: bytes
    secret: EncryptedSecret


class KeyLookup(Protocol):
    """Finds stored content keys. Adapter: `ContentKeyQueries`."""

    async def stored(self, ids: Sequence[UUID]) -> Mapping[UUID, StoredKey]:
        """Return the keys by the ids of their aggregates. Unknown ids are absent."""
        ...


class KeyCeiling(Protocol):
    """The limit of keys per client. Adapter: `ContentKeyCeiling`."""

    async def admit(self, client: str, new: int) -> None:
        """Raise `TooManyKeys` if the client may not have this number of new keys."""
        ...


class RandomBytes(Protocol):
    """A cryptographic source of random bytes. Adapter: `os.urandom`."""

    def __call__(self, size: int, /) -> bytes: ...
