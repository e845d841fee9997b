"""Ports of the publication handlers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from domain.publication.row import PublicationRow
from domain.publication.values import PublicationKind, PublicationState


class PublicationLookup(Protocol):
    """Finds publications that are not withdrawn. Those of a deleted destination are not found."""

    async def find(self, key: UUID, *, destination_id: UUID | None = None) -> PublicationRow | None:
        """With a destination only if it is that of the publication."""
        ...

    async def of_content(
        self, content_id: str, *, kind: PublicationKind, limit: int, state: PublicationState | None = None, awaited: bool = False
    ) -> Sequence[PublicationRow]:
        """The newest first; at most `limit` + 1, so that the caller knows whether there are more. `awaited`: only those that start
        when their Event goes live."""
        ...

    async def of_destination(self, destination_id: UUID, *, limit: int) -> Sequence[PublicationRow]:
        """Also of a deleted destination."""
        ...


class TargetCall(StrEnum):
    QUERY = "query"
    PUBLISH = "publish"
    UNPUBLISH = "unpublish"
    UPDATE = "update"
    DELETE = "delete"
    OPEN = "open"
    """Of a live stream: have the target make what takes it."""
    CLOSE = "close"
    """Tell the target that the live stream has ended."""


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """What came of a call. `fault` is one sentence without secrets, None when all is well; `passing`: another try may succeed.
    `able`: the target knows this call."""

    details: Mapping[str, Any] | None = None
    fault: str | None = None
    passing: bool = False
    able: bool = True


class PublishedContents(Protocol):
    """What is at the targets of publications."""

    async def ask(self, call: TargetCall, publication: PublicationRow) -> TargetAnswer:
        """Opens the destination with its secrets and makes one call. Ends within a bound; raises nothing of the target's."""
        ...


class StreamingServers(Protocol):
    """Streaming servers of channels, which push live publications themselves. Each call ends within a bound."""

    async def channel_of(self, publication: PublicationRow) -> UUID | None:
        """The channel of its Event, if that has such a server."""
        ...

    async def start(self, publication: PublicationRow, channel_id: UUID) -> TargetAnswer:
        """Have the server of the channel push to what the target makes."""
        ...

    async def stop(self, publication: PublicationRow) -> TargetAnswer:
        """One that does not push it is stopped."""
        ...

    async def statistics(self, publication: PublicationRow) -> TargetAnswer:
        """What the server says, as the details of the answer."""
        ...
