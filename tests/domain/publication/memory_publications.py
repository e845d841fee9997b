"""Twins in memory of the ports of the publication handlers: look-ups, the media at the targets, and streaming servers."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from domain.publication.aggregate import Publication
from domain.publication.handlers import PublicationPorts
from domain.publication.ports import TargetAnswer, TargetCall
from domain.publication.row import PublicationRow
from domain.publication.stored_texts import PublicationTexts
from domain.publication.values import PublicationKind, PublicationState
from domain.webhook.callback_naming import CallbackNaming
from tests.domain.memory import Memory, MemoryLog


class MemoryPublications:
    """The twin of the look-ups over the view of publications."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def _all(self) -> list[PublicationRow]:
        matches = [root for root in self._log.all(Publication.KIND) if isinstance(root, Publication) and not root.withdrawn]
        return sorted(map(PublicationRow.of, matches), key=lambda row: (row.date_created, row.id), reverse=True)

    async def find(self, key: UUID, *, destination_id: UUID | None = None) -> PublicationRow | None:
        return next((row for row in self._all() if row.id == key and destination_id in (None, row.destination_id)), None)

    async def of_content(
        self, content_id: str, *, kind: PublicationKind, limit: int, state: PublicationState | None = None, awaited: bool = False
    ) -> Sequence[PublicationRow]:
        matches = [row for row in self._all() if (row.content_id, row.kind) == (content_id, kind)]
        return [row for row in matches if state in (None, row.state) and (row.start_awaited or not awaited)][: limit + 1]

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


class NoServers:
    """The twin of the streaming servers where no channel has one."""

    async def channel_of(self, publication: PublicationRow) -> UUID | None:
        return None

    async def start(self, publication: PublicationRow, channel_id: UUID) -> TargetAnswer:
        return TargetAnswer(able=False)

    async def stop(self, publication: PublicationRow) -> TargetAnswer:
        return TargetAnswer()

    async def statistics(self, publication: PublicationRow) -> TargetAnswer:
        return TargetAnswer()


def texts_of(memory: Memory) -> PublicationTexts:
    naming = CallbackNaming(memory.vault, memory.records, clock=lambda: memory.now, new_signing_secret=lambda: "whsec_1")
    return PublicationTexts(naming, memory.vault)


def ports_of(memory: Memory, contents: MemoryContents) -> PublicationPorts:
    return PublicationPorts(
        executor=memory.executor,
        publications=MemoryPublications(memory.log),
        records=memory.records,
        events=memory.events,
        texts=texts_of(memory),
        contents=contents,
    )
