"""Commands of publications."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.kernel.command import Command
from domain.publication.aggregate import Publication


@dataclass(frozen=True)
class _PublicationCommand(Command[Publication]):
    key: UUID

    def kind(self) -> type[Publication]:
        return Publication


@dataclass(frozen=True)
class ReadPublication(_PublicationCommand):
    """Change nothing, so that the outcome has the publication as it is."""

    def act(self, root: Publication, *, at: datetime) -> None:
        return None
