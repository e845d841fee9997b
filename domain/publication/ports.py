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
    """Finds publications that are not withdrawn and whose destination is not deleted."""

    async def find(self, key: UUID, *, destination_id: UUID | None = None) -> PublicationRow | None:
        """Return the publication with this id; with a destination, only if the publication is at that destination."""
        ...

    async def of_content(
        self, content_id: str, *, kind: PublicationKind, limit: int, state: PublicationState | None = None, awaited: bool = False
    ) -> Sequence[PublicationRow]:
        """Return the publications of a content, newest first. Return at most `limit` + 1, so that the caller knows if there are
        more. `awaited` selects those that start when their Event goes live."""
        ...

    async def of_destination(self, destination_id: UUID, *, limit: int) -> Sequence[PublicationRow]:
        """Return the publications at a destination, which may be deleted."""
        ...


class TargetCall(StrEnum):
    QUERY = "query"
    PUBLISH = "publish"
    UNPUBLISH = "unpublish"
    UPDATE = "update"
    DELETE = "delete"
    OPEN = "open"
    """Make the target create the endpoint of a live stream."""
    CLOSE = "close"
    """Notify the target that the live stream has ended."""


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """The result of a call. `fault` is one sentence without secrets, None on success; `passing` says that another try may
    succeed. `able` says that the target supports this call."""

    details: Mapping[str, Any] | None = None
    fault: str | None = None
    passing: bool = False
    able: bool = True


class PublishedContents(Protocol):
    """The media at the targets of publications."""

    async def ask(self, call: TargetCall, publication: PublicationRow) -> TargetAnswer:
        """Open the destination with its secrets and make one call. The call ends within a time limit and raises none of the
        target's errors."""
        ...


class StreamingServers(Protocol):
    """Streaming servers of channels, which push live publications themselves. Each call ends within a time limit."""

    async def channel_of(self, publication: PublicationRow) -> UUID | None:
        """Return the channel of its Event, if that has such a server."""
        ...

    async def start(self, publication: PublicationRow, channel_id: UUID) -> TargetAnswer:
        """Let the server of the channel push to the endpoint that the target creates."""
        ...

    async def stop(self, publication: PublicationRow) -> TargetAnswer:
        """Stop the push. A server that does not push the publication counts as stopped."""
        ...

    async def statistics(self, publication: PublicationRow) -> TargetAnswer:
        """Return the statistics of the server, as the details of the answer."""
        ...
