"""The result of a look-up of a publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from domain.destination.targets import Target
from domain.publication.aggregate import Publication
from domain.publication.values import PublicationKind, PublicationState, PublicationText


@dataclass(frozen=True, slots=True)
class PublicationRow:
    """A publication as a look-up returns it. `version` is the version of the last event. `destination_name` is empty if it was
    not looked up."""

    id: UUID
    version: int
    kind: PublicationKind
    content_id: str
    destination_id: UUID
    target: Target
    transaction_id: UUID
    client: str
    state: PublicationState
    reason: str
    job: int | None
    details: Mapping[str, Any] | None
    published: bool
    withdrawn: bool
    text: PublicationText
    date_created: datetime
    date_started: datetime | None
    date_completed: datetime | None
    destination_name: str = ""
    audio_input_id: str | None = None
    run: int = 0
    arrived: bool = False
    open: bool = False
    creations: int = 0
    served_by: UUID | None = None
    start_awaited: bool = False

    @classmethod
    def of(cls, root: Publication, *, destination_name: str = "") -> PublicationRow:
        return cls(
            UUID(root.key),
            root.version,
            root.kind,
            root.content_id,
            root.destination_id,
            root.target,
            root.transaction_id,
            root.client,
            root.state,
            root.reason,
            root.job,
            root.details,
            root.published,
            root.withdrawn,
            root.text,
            root.created_on,
            root.started,
            root.completed,
            destination_name,
            root.audio_input_id,
            root.run,
            root.arrived,
            root.open,
            root.creations,
            root.served_by,
            root.start_awaited,
        )

    @property
    def name_at_target(self) -> UUID:
        """The id by which the target knows the publication. It changes when the publication is recreated."""
        return self.id if not self.creations else uuid5(self.id, str(self.creations))

    @property
    def running_job(self) -> int | None:
        """The job that must be cancelled when the publication is withdrawn."""
        return self.job if self.state is PublicationState.Processing else None
