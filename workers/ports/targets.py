"""The port of publishing targets. Adapters implement it; only the composition roots choose the adapters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable
from uuid import UUID

TargetFault = Literal["retry", "destination", "media", "publication"]
"""The party at fault: none permanently, so a retry may succeed; the destination or its configuration; the file; the options of the
publication."""


class TargetFailed(Exception):
    """Raised when a target did not do what was asked. Its text is one sentence that says what is wrong and, if known, what to do;
    never with a secret. `after` is the number of seconds for which the target asks not to be called."""

    def __init__(self, kind: TargetFault, sentence: str, *, after: float | None = None) -> None:
        super().__init__(sentence)
        self.kind: TargetFault = kind
        self.after = after


@dataclass(frozen=True, slots=True)
class UploadSource:
    """The file to publish, on this machine. It does not change during the upload."""

    path: Path
    size: int
    sha256: str
    media_type: str = "video/mp4"


@dataclass(frozen=True, slots=True)
class PublicationOrder:
    """A film to publish. `options` are the other members of the publication, and may hold secrets. `ending` is the extension of the
    file."""

    id: UUID
    content_id: str
    title: str = ""
    description: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ending: str = ".mp4"


@dataclass(frozen=True, slots=True)
class PublishedText:
    """A text track of the published film, in WebVTT. `ending` distinguishes its file from those of other texts: `.de.vtt`."""

    source: UploadSource
    name: str
    language: str
    ending: str


@dataclass(frozen=True, slots=True)
class UploadProgress:
    """The progress of an upload in bytes. `sent` includes what an interrupted upload had sent, and never grows for a part that is
    sent again."""

    sent: int
    total: int


UploadState = Mapping[str, Any]
"""The state that an interrupted upload needs to continue, as a JSON object without secrets. Only the target that made it reads it.
"""
Details = Mapping[str, Any]
"""The public details of a published file, as a JSON object without secrets."""


class PublishingTarget(Protocol):
    """A destination with its decrypted configuration. Every method raises `TargetFailed`, and none waits forever."""

    capabilities: frozenset[str]
    """A subset of upload, resume, query, publish, unpublish, update, delete, and live: see `workers/ports/live.py`."""

    async def check(self) -> None:
        """Test the destination with real requests, and leave nothing there."""
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
        """Upload the file; when this returns, the whole file is there. `state` is what the last `save` of the same publication
        received; it is saved after each part, so at most one part is sent twice. An exception of `save` ends the upload."""
        ...

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        """Return what the destination reports about the file now; None if it is not there."""
        ...

    async def publish(self, order: PublicationOrder, details: Details) -> None: ...

    async def unpublish(self, order: PublicationOrder, details: Details) -> None: ...

    async def update(self, order: PublicationOrder, details: Details) -> None: ...

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        """Delete the file, and remains of unfinished uploads of this publication. A missing file is no failure."""
        ...

    async def close(self) -> None: ...


TEXTS: Final = "texts"
"""The capability of a `TextTarget`, and the member of the details of a film that lists its texts."""


@runtime_checkable
class TextTarget(PublishingTarget, Protocol):
    """The interface of a target whose capabilities include `texts`."""

    async def add_text(self, text: PublishedText, order: PublicationOrder, *, details: Details) -> Details:
        """Upload the text next to the film of these details; when this returns, the whole text is there. An existing text is
        replaced."""
        ...

    async def remove_text(self, order: PublicationOrder, details: Details) -> None:
        """Remove the text with the details that `add_text` returned. A missing text is no failure."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceAddresses:
    """The addresses of the services. Only the operator changes them."""

    youtube: str = "https://www.googleapis.com"
    youtube_token: str = "https://oauth2.googleapis.com/token"  # noqa: S105 (an address)
    facebook: str = "https://graph.facebook.com/v23.0"
    facebook_video: str = "https://graph-video.facebook.com/v23.0"


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """Settings of the operator for targets."""

    filesystem_root: Path | None = None
    """The directory below which files may be published on this machine; None if they may not."""
    services: ServiceAddresses = ServiceAddresses()


class Targets(Protocol):
    """Makes the target of a destination. `target` is the number of its kind, `config` has its secrets."""

    def __call__(self, target: int, config: Mapping[str, Any]) -> PublishingTarget:
        """Return the target. Nothing is raised: the target reports faults of the configuration when it is used."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedDestination:
    """A destination with its secrets. `target` is the number of its kind."""

    target: int
    config: Mapping[str, Any] = field(repr=False)
    order: PublicationOrder


class OpenDestination(Protocol):
    """Opens the destination of a publication for its job."""

    async def __call__(self, publication: UUID, *, job: int) -> OpenedDestination:
        """Return the destination of a publication. Raise `TargetFailed` if the destination is not active, or the publication is
        gone or has another job now."""
        ...
