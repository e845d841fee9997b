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
"""The types that are found where no type is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetFilter:
    """A part that is None or empty does not filter; without `types` captions are left out. Parts combine with AND, the values of
    one part with OR."""

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
        """Unless it is removed."""
        ...

    async def matching(self, wanted: AssetFilter, *, limit: int) -> Sequence[AssetRow]:
        """Those that are not removed, the oldest first; at most `limit` + 1, so that the caller knows whether there are more."""
        ...

    async def of_event(self, event_id: UUID) -> Sequence[AssetRow]:
        """All that hold a path: removed ones too, as long as their file is not deleted."""
        ...

    async def caption(self, event_id: UUID, *, language: str, kind: CaptionKind, name: str) -> AssetRow | None:
        """The caption that clients have added to an Event with this language, kind and name, unless it is removed."""
        ...

    async def is_taken(self, path: str) -> bool:
        """Whether an asset holds the path."""
        ...


class CaptionTexts(Protocol):
    """Texts that clients have sent, until their jobs have read them."""

    async def store(self, key: UUID, content: bytes) -> None:
        """Store a text, unless there is a text with this key."""
        ...
