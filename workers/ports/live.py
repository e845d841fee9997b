"""The ports of live publications: targets that take a stream, and external streaming servers that push it in place of this
product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from workers.ports.targets import Details, PublicationOrder, PublishingTarget, TargetFailed

LIVE = "live"
"""The capability of a target that takes live streams."""


@dataclass(frozen=True, slots=True)
class LiveIngest:
    """The address that a stream is pushed to. `url` is an RTMP, RTMPS or SRT address without the stream key, such as
    `rtmps://host:443/app`; an SRT address may contain a passphrase. `stream_name` is the key: the name that RTMP publishes as, or
    the stream id of SRT."""

    url: str = field(repr=False)
    stream_name: str = field(repr=False)
    details: Details
    """The details of the publication from now on, without secrets."""


@runtime_checkable
class LiveTarget(PublishingTarget, Protocol):
    """The interface of a target whose capabilities include `live`. Every method raises `TargetFailed`, and none waits forever.

    Publishing, unpublishing, queries and deletion are those of `PublishingTarget`, with the details of the stream.
    """

    async def open_live(self, order: PublicationOrder, details: Details | None) -> LiveIngest:
        """Create the broadcast that takes the stream at the target. `details` are the result of an earlier call, if there is one. A
        repeated call, with or without them, returns the same ingest and creates nothing twice. Raise `TargetFailed` of kind
        `publication` if the stream has ended there."""
        ...

    async def go_live(self, order: PublicationOrder, details: Details) -> Details:
        """Show the stream once its first bytes were sent, and return the details that are then known. Raise `TargetFailed` of kind
        `retry`, with seconds in `after`, if the target has not received enough of the stream yet and is to be asked again.
        Repeating the call is harmless."""
        ...

    async def close_live(self, order: PublicationOrder, details: Details) -> None:
        """End the stream at the target; the recording stays. A stream that has ended or does not exist is no failure."""
        ...


def live_face(target: PublishingTarget) -> LiveTarget:
    """Return the target as a `LiveTarget`. Raise `TargetFailed` if it takes no live streams."""
    if LIVE in target.capabilities and isinstance(target, LiveTarget):
        return target
    raise TargetFailed("publication", "The destination takes no live streams: choose another destination.")


class StreamTargetsUnavailable(Exception):
    """Raised when the streaming server cannot be reached or cannot do what is asked now. Its text is one sentence without
    secrets."""


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """An entry that makes a streaming server push a stream. `name` is the id of the publication; `source` is the name of the stream
    on that server."""

    name: UUID
    source: str
    ingest: LiveIngest


class StreamTargets(Protocol):
    """An external streaming server that pushes its streams. Every method raises `StreamTargetsUnavailable`, or `TargetFailed` if
    the server refuses the request; none waits forever."""

    async def start(self, entry: StreamTarget) -> None:
        """Add the entry and enable it. An entry of this name is replaced, so repeating the call is harmless."""
        ...

    async def stop(self, name: UUID) -> None:
        """Disable and remove the entry. A missing entry is no failure."""
        ...

    async def statistics(self, name: UUID) -> Mapping[str, Any]:
        """Return what the server reports about the entry; an empty mapping if there is no such entry."""
        ...

    async def close(self) -> None: ...
