"""The common parts of use cases of VOD and live publications: their ports, the creation of several at once, and showing."""

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


class RequestedPublication(Protocol):
    """A publication in a request. `text` is the publicationJson."""

    @property
    def text(self) -> str: ...


W = TypeVar("W", bound=RequestedPublication)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicationPorts:
    """The ports that both kinds of publications need."""

    executor: Executor
    publications: PublicationLookup
    records: RecordLookup
    events: EventLookup
    texts: PublicationTexts
    contents: PublishedContents


class SeveralPublications:
    """Base of the handlers of both kinds of publications."""

    def __init__(self, ports: PublicationPorts) -> None:
        self._executor = ports.executor
        self._publications = ports.publications
        self._records = ports.records
        self._events = ports.events
        self._texts = ports.texts
        self._contents = ports.contents

    def _parsed(self, wanted: Sequence[RequestedPublication]) -> list[SentText]:
        """Return the parsed texts. Raises `Malformed`, also for an empty list and for too many entries."""
        if not 0 < len(wanted) <= MOST_AT_ONCE:
            raise Malformed.at(FIELD, f"must have 1 to {MOST_AT_ONCE} entries")
        return [
            self._texts.parsed(publication.text, field=f"{FIELD}[{index}].publicationJson")
            for index, publication in enumerate(wanted)
        ]

    async def _created(
        self,
        wanted: Sequence[W],
        sent: Sequence[SentText],
        *,
        scheduling: Callable[[UUID, W, SentText], Awaitable[list[Command[Any]]]],
        invocation: Invocation,
        result: Mapping[str, Any] | None = None,
    ) -> Outcome[Publication]:
        """Create all publications or none. `scheduling` returns the commands for one, its own last. `places` in the result are
        the indexes of the publications among the aggregates."""
        keys = [new_id() for _ in wanted]

        async def plan() -> Plan:
            commands: list[Command[Any]] = []
            places: list[int] = []
            for key, publication, text in zip(keys, wanted, sent, strict=True):
                commands += await scheduling(key, publication, text)
                places.append(len(commands) - 1)
            return Plan(_each_once(commands, places), {"places": places, **(result or {})})

        return await self._executor.execute(plan, invocation=invocation.at_any_version())

    async def _shown(
        self, row: PublicationRow, *, fault: str | None, published: bool, invocation: Invocation
    ) -> Outcome[Publication]:
        """Make the target show or hide the content, unless there is a fault already. The action of the target is recorded at any
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
        row = await self._records.find(Destination.KIND, key)
        if row is None:
            raise NotFound(Destination.KIND, str(key))
        return row


def _each_once(commands: Sequence[Command[Any]], places: list[int]) -> list[Command[Any]]:
    """Remove repeated commands for callbacks that several publications name, and move `places` accordingly."""
    unique: list[Command[Any]] = []
    seen: set[tuple[type[Any], object]] = set()
    moved: dict[int, int] = {}
    for index, command in enumerate(commands):
        name = (command.kind(), command.key)
        if name not in seen:
            moved[index] = len(unique)
            unique.append(command)
            seen.add(name)
    places[:] = [moved[place] for place in places]
    return unique
