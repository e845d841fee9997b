"""What use cases of VOD and of live publications have in common: their ports, several created at once, and what is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.media_event.ports import EventLookup
from domain.publication.aggregate import Publication
from domain.publication.commands import ShowPublication
from domain.publication.ports import PublicationLookup, PublishedContents, TargetCall
from domain.publication.row import PublicationRow
from domain.publication.stored_texts import PublicationTexts
from domain.publication.texts import SentText
from domain.publication.values import MOST_AT_ONCE
from domain.records.kinds.destination import Destination
from domain.records.ports import RecordLookup
from domain.records.row import RecordRow

FIELD: Final = "publications"
INACTIVE: Final = "the destination is not active"


class Wanted(Protocol):
    """One of a request. `text` is the publicationJson."""

    @property
    def text(self) -> str: ...


W = TypeVar("W", bound=Wanted)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicationPorts:
    """What both kinds need of the world outside."""

    executor: Executor
    publications: PublicationLookup
    records: RecordLookup
    events: EventLookup
    texts: PublicationTexts
    contents: PublishedContents


class SeveralPublications:
    """What both kinds do alike."""

    def __init__(self, ports: PublicationPorts) -> None:
        self._executor = ports.executor
        self._publications = ports.publications
        self._records = ports.records
        self._events = ports.events
        self._texts = ports.texts
        self._contents = ports.contents

    def _parsed(self, wanted: Sequence[Wanted]) -> list[SentText]:
        """Their texts. Raises `Malformed`, also for none and for too many."""
        if not 0 < len(wanted) <= MOST_AT_ONCE:
            raise Malformed.at(FIELD, f"must have 1 to {MOST_AT_ONCE} entries")
        return [self._texts.parsed(one.text, field=f"{FIELD}[{index}].publicationJson") for index, one in enumerate(wanted)]

    async def _created(
        self,
        wanted: Sequence[W],
        sent: Sequence[SentText],
        *,
        scheduling: Callable[[UUID, W, SentText], Awaitable[list[Command[Any]]]],
        invocation: Invocation,
        told: Mapping[str, Any] | None = None,
    ) -> Outcome[Publication]:
        """All or none. `scheduling` gives the commands for one; its own is the last. `places` in the result are those of the
        publications among the aggregates."""
        keys = [new_id() for _ in wanted]

        async def plan() -> Plan:
            commands: list[Command[Any]] = []
            places: list[int] = []
            for key, one, text in zip(keys, wanted, sent, strict=True):
                commands += await scheduling(key, one, text)
                places.append(len(commands) - 1)
            return Plan(_each_once(commands, places), {"places": places, **(told or {})})

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def _shown(
        self, row: PublicationRow, *, fault: str | None, published: bool, invocation: Invocation
    ) -> Outcome[Publication]:
        """Have the target make it public, or private, unless there is a fault already. What the target has done is recorded at any
        version."""
        invocation.check_version(row.version)
        if fault is None:
            call = TargetCall.PUBLISH if published else TargetCall.UNPUBLISH
            answer = await self._contents.ask(call, row)
            fault = answer.fault if answer.able else f"A destination of the target {row.target.name} cannot {call.value}."

        async def plan() -> Plan:
            return Plan(() if fault is not None else (ShowPublication(row.id, published),), {"fault": fault})

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def _destination(self, key: UUID) -> RecordRow:
        found = await self._records.find(Destination.KIND, key)
        if found is None:
            raise NotFound(Destination.KIND, str(key))
        return found


def _each_once(commands: Sequence[Command[Any]], places: list[int]) -> list[Command[Any]]:
    """Callbacks that several publications name are named once. `places` are moved along."""
    kept: list[Command[Any]] = []
    seen: set[tuple[type[Any], object]] = set()
    moved: dict[int, int] = {}
    for index, command in enumerate(commands):
        name = (command.kind(), command.key)
        if name not in seen:
            moved[index] = len(kept)
            kept.append(command)
            seen.add(name)
    places[:] = [moved[place] for place in places]
    return kept
