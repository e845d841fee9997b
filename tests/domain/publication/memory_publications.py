"""In-memory twins of what the handlers of publications need: look-ups, and what is at the targets."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from domain.publication.aggregate import Publication
from domain.publication.ports import TargetAnswer, TargetCall
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationKind, PublicationState
from tests.domain.memory import MemoryLog


class MemoryPublications:
    """The twin of the look-ups over the view of publications."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def _all(self) -> list[PublicationRow]:
        found = [root for root in self._log.all(Publication.KIND) if isinstance(root, Publication) and not root.withdrawn]
        return sorted(map(PublicationRow.of, found), key=lambda row: (row.date_created, row.id), reverse=True)

    async def find(self, key: UUID, *, destination_id: UUID | None = None) -> PublicationRow | None:
        return next((row for row in self._all() if row.id == key and destination_id in (None, row.destination_id)), None)

    async def of_content(
        self, content_id: str, *, kind: PublicationKind, limit: int, state: PublicationState | None = None
    ) -> Sequence[PublicationRow]:
        found = [row for row in self._all() if (row.content_id, row.kind) == (content_id, kind)]
        return [row for row in found if state in (None, row.state)][: limit + 1]

    async def of_destination(self, destination_id: UUID, *, limit: int) -> Sequence[PublicationRow]:
        return [row for row in self._all() if row.destination_id == destination_id][:limit]


class MemoryContents:
    """The twin of the targets: `answer` is what every call gets."""

    def __init__(self) -> None:
        self.answer = TargetAnswer()
        self.asked: list[tuple[TargetCall, UUID]] = []

    async def ask(self, call: TargetCall, publication: PublicationRow) -> TargetAnswer:
        self.asked.append((call, publication.id))
        return self.answer
