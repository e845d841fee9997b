"""Commands of publications."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.kernel.command import Command
from domain.publication.aggregate import Publication


@dataclass(frozen=True)
class ReadPublication(Command[Publication]):
    """Change nothing, so that the outcome has the publication as it is."""

    key: UUID

    def kind(self) -> type[Publication]:
        return Publication

    def act(self, root: Publication, *, at: datetime) -> None:
        return None
