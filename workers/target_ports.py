"""The port of publishing targets. Adapters do it; only the composition roots know which."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable
from uuid import UUID

TargetFault = Literal["retry", "destination", "media", "publication"]
"""What is at fault: nothing for long, so that another try may succeed; the destination or its configuration; the file; what is
asked for in the publication."""


class TargetFailed(Exception):
    """A target did not do it. One sentence that says what is wrong and, where it is known, what to do; never with a secret.
    `after`: seconds that the target asks to be left alone."""

    def __init__(self, kind: TargetFault, sentence: str, *, after: float | None = None) -> None:
        super().__init__(sentence)
        self.kind: TargetFault = kind
        self.after = after


@dataclass(frozen=True, slots=True)
class UploadSource:
    """The file to publish, on this machine. It does not change while it is uploaded."""

    path: Path
    size: int
    sha256: str
    media_type: str = "video/mp4"


@dataclass(frozen=True, slots=True)
class PublicationOrder:
    """A film that is to be published. `options` are the other members of the publication, and may hold secrets. `ending` is that
    of the name of the file."""

    id: UUID
    content_id: str
    title: str = ""
    description: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ending: str = ".mp4"


@dataclass(frozen=True, slots=True)
class PublishedText:
    """A text of the film that is published, in WebVTT. `ending` tells its file from those of other texts: `.de.vtt`."""

    source: UploadSource
    name: str
    language: str
    ending: str


@dataclass(frozen=True, slots=True)
class UploadProgress:
    """In bytes. `sent` has what an interrupted upload had sent, and never grows by a part that is sent again."""

    sent: int
    total: int


UploadState = Mapping[str, Any]
"""What an upload needs to go on where it was cut off, as a JSON object without secrets. Only the target that made it reads it."""
Details = Mapping[str, Any]
"""What is known of a published file, as a JSON object without secrets. It is shown."""


class PublishingTarget(Protocol):
    """One destination, with its configuration opened. Every method raises `TargetFailed`, and none waits for ever."""

    capabilities: frozenset[str]
    """Of upload, resume, query, publish, unpublish, update, delete, and live: `workers/live_ports.py`."""

    async def check(self) -> None:
        """Really tries the destination, and leaves nothing there."""
        ...

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        """The file is there, whole, when this returns. `state` is what the last `save` of the same publication got; it is saved
        after each part, so that at most one part is sent twice. What `save` raises ends the upload."""
        ...

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        """What the destination says of it now; None: it is not there."""
        ...

    async def publish(self, order: PublicationOrder, details: Details) -> None: ...

    async def unpublish(self, order: PublicationOrder, details: Details) -> None: ...

    async def update(self, order: PublicationOrder, details: Details) -> None: ...

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        """The file, and what unfinished uploads of this publication left. Nothing there is no failure."""
        ...

    async def close(self) -> None: ...


TEXTS: Final = "texts"
"""The capability of a `TextTarget`, and the member of the details of a film that lists its texts."""


@runtime_checkable
class TextTarget(PublishingTarget, Protocol):
    """The face of a target whose capabilities have `texts`."""

    async def add_text(self, text: PublishedText, order: PublicationOrder, *, details: Details) -> Details:
        """The text is there, whole, beside the film of these details when this returns. One that was there is replaced."""
        ...

    async def remove_text(self, order: PublicationOrder, details: Details) -> None:
        """The text with the details that `add_text` gave; nothing there is no failure."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceAddresses:
    """Where the services are. Only the operator changes them."""

    youtube: str = "https://www.googleapis.com"
    youtube_token: str = "https://oauth2.googleapis.com/token"  # noqa: S105 (an address)
    facebook: str = "https://graph.facebook.com/v23.0"
    facebook_video: str = "https://graph-video.facebook.com/v23.0"


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """What the operator sets for targets."""

    filesystem_root: Path | None = None
    """Below which files may be published to this machine; None: nowhere."""
    services: ServiceAddresses = ServiceAddresses()


class Targets(Protocol):
    """Makes the target of a destination. `target` is the number of its kind, `config` has its secrets."""

    def __call__(self, target: int, config: Mapping[str, Any]) -> PublishingTarget:
        """Raises nothing: what is wrong with the configuration, the target says when it is used."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedDestination:
    """`target` is the number of its kind, `config` has its secrets."""

    target: int
    config: Mapping[str, Any] = field(repr=False)
    order: PublicationOrder


class OpenDestination(Protocol):
    """Opens the destination of a publication for its job."""

    async def __call__(self, publication: UUID, *, job: int) -> OpenedDestination:
        """Raises `TargetFailed`: the destination is not active, or the publication is gone or has another job now."""
        ...
