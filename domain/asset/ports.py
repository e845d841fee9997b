"""Ports of the asset handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from domain.asset.aggregate import Asset
from domain.asset.row import AssetRow
from domain.asset.values import AssetState, AssetType, CaptionKind

LoadAsset = Callable[[str], Awaitable[Asset | None]]


UNASKED: Final = tuple(kind for kind in AssetType if kind is not AssetType.CAPTION)
"""The types that a search returns if no type is requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetFilter:
    """A filter for assets. A part that is None or empty does not filter; without `types` captions are left out. Parts combine with
    AND, the values of one part with OR."""

    event_id: UUID | None = None
    content_id: str | None = None
    job: int | None = None
    name: str | None = None
    states: Sequence[AssetState] = ()
    types: Sequence[AssetType] = ()
    extensions: Sequence[str] = ()


class AssetLookup(Protocol):
    """Finds assets."""

    async def find(self, key: UUID) -> AssetRow | None:
        """Return the asset with this id; None if it does not exist or was removed."""
        ...

    async def matching(self, wanted: AssetFilter, *, limit: int) -> Sequence[AssetRow]:
        """Return the matching assets that are not removed, oldest first. Return at most `limit` + 1, so that the caller knows if
        there are more."""
        ...

    async def of_event(self, event_id: UUID) -> Sequence[AssetRow]:
        """Return the assets of an Event that have a path, including removed ones whose file is not deleted yet."""
        ...

    async def caption(self, event_id: UUID, *, language: str, kind: CaptionKind, name: str) -> AssetRow | None:
        """Return the caption that a client added to an Event with this language, kind and name; None if there is none or it was
        removed."""
        ...

    async def is_taken(self, path: str) -> bool:
        """Return True if an asset has the path."""
        ...


class CaptionTexts(Protocol):
    """Texts that clients have sent. Each is stored until its job has read it."""

    async def store(self, key: UUID, content: bytes) -> None:
        """Store a text, unless one with this key exists."""
        ...
