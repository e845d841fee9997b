"""The ports of live publications: targets that take a stream, and servers of others that push it instead of this product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from workers.target_ports import Details, PublicationOrder, PublishingTarget, TargetFailed

LIVE = "live"
"""The capability of a target that takes live streams."""


@dataclass(frozen=True, slots=True)
class LiveIngest:
    """Where a stream is pushed to. `url` is an address of RTMP, RTMPS or SRT without the stream's key, such as
    `rtmps://host:443/app`; one of SRT may have a passphrase. `stream_name` is the key: what RTMP publishes as, SRT's stream id."""

    url: str = field(repr=False)
    stream_name: str = field(repr=False)
    details: Details
    """What the publication shows from now on, without a secret."""


@runtime_checkable
class LiveTarget(PublishingTarget, Protocol):
    """The second face of a target whose capabilities have `live`. Every method raises `TargetFailed`, and none waits for ever.

    Publishing, unpublishing, queries and deletion are those of `PublishingTarget`, with the details of the stream."""

    async def open_live(self, order: PublicationOrder, details: Details | None) -> LiveIngest:
        """Makes at the target what takes the stream. `details` are those of an earlier call, if they are known: repeated, also
        without them, it gives the same again and makes nothing twice. A stream that has ended there is `publication`."""
        ...

    async def go_live(self, order: PublicationOrder, details: Details) -> Details:
        """Shows the stream, after its first bytes were sent; what is known of it then. `retry`, with seconds in `after`: the target
        has not seen enough of the stream yet, and is to be asked again. Repeating is harmless."""
        ...

    async def close_live(self, order: PublicationOrder, details: Details) -> None:
        """Ends the stream at the target; the recording stays. A stream that has ended, or is not there, is no failure."""
        ...


def live_face(target: PublishingTarget) -> LiveTarget:
    """Raises `TargetFailed`: the target takes no live streams."""
    if LIVE in target.capabilities and isinstance(target, LiveTarget):
        return target
    raise TargetFailed("publication", "The destination takes no live streams: choose another destination.")


class StreamTargetsUnavailable(Exception):
    """The streaming server cannot be reached, or cannot do it now. Its text is one sentence without a secret."""


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """What a streaming server pushes. `name` is the id of the publication; `source` is the name of the stream at that server."""

    name: UUID
    source: str
    ingest: LiveIngest


class StreamTargets(Protocol):
    """A streaming server that pushes its streams itself. Every method raises `StreamTargetsUnavailable`, or `TargetFailed` where
    the server refuses what it is asked; none waits for ever."""

    async def start(self, entry: StreamTarget) -> None:
        """Adds the entry and enables it. An entry of this name is replaced, so repeating is harmless."""
        ...

    async def stop(self, name: UUID) -> None:
        """Disables and removes the entry. None there is no failure."""
        ...

    async def statistics(self, name: UUID) -> Mapping[str, Any]:
        """What the server says of the entry; empty where there is none."""
        ...

    async def close(self) -> None: ...
