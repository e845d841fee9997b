"""The routes that simple resources have alike, each declared once: a resource file asks for those that its document gives it."""

from __future__ import annotations

from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Literal, Self
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery, PageQuery, ReferenceQuery
from api.kernel.routes import Routes, reading, told
from api.kernel.wire import Wire
from api.media.event.documented import EventCollectionWire
from api.media.event.show import EventAnswers
from api.media.resource import Resource
from projections.media_event.filters import EventFilter
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries


@dataclass(frozen=True)
class StandardRoutes:
    """Each method declares one route. `answers` is the documented model of a record; `absent` the status of a single GET that finds
    nothing; `key` the type of its ids; `taken` the field that a 400 names when its value belongs to another record."""

    routes: Routes
    resource: Resource
    answers: type[Wire]
    absent: Literal[204, 404] = 404
    key: Any = UUID
    taken: str | None = None

    @property
    def _kind(self) -> str:
        return self.resource.kind.KIND

    @property
    def _noun(self) -> str:
        return self._kind.replace("_", " ")

    def add(self, body: type[Wire], *, status: Literal[200, 201] = 200) -> Self:
        """201 comes with a Location."""
        shown = self.resource.created if status == 201 else self.resource.written

        @self.routes.post("/", WRITE, answers=self.answers, status=status, name=f"add_{self._kind}")
        @told(f"Add a {self._noun}.")
        @reading(body=body)
        async def add_record(call: Call, body: Wire, bus: CommandBus) -> Answer:
            return await bus.send(call, self.resource.add(body), shown, taken=self.taken)

        return self

    def amend(self, body: type[Wire]) -> Self:
        @self.routes.put("/{id}", WRITE, answers=self.answers, name=f"amend_{self._kind}")
        @told(f"Change a {self._noun}. What is absent stays as it is.")
        @reading(body=body, id=self.key)
        async def amend_record(call: Call, id: Any, body: Wire, bus: CommandBus) -> Answer:
            return await bus.send(call, self.resource.amend(id, body), self.resource.written, taken=self.taken)

        return self

    def withdraw(self) -> Self:
        @self.routes.delete("/{id}", WRITE, answers=self.answers, name=f"withdraw_{self._kind}")
        @told(f"Delete a {self._noun} that nobody uses; the answer is the {self._noun} as it last was.")
        @reading(id=self.key)
        async def withdraw_record(call: Call, id: Any, bus: CommandBus) -> Answer:
            return await bus.send(call, self.resource.withdraw(id), self.resource.written)

        return self

    def list(self) -> Self:
        @self.routes.get("/", READ, answers=GenericAlias(list, (self.answers,)), name=f"list_{self._kind}s")
        @told(f"Every {self._noun}, by name.")
        async def list_records(call: Call, query: FreshQuery, records: RecordQueries) -> Answer:
            return self.resource.listed(await records.all(self._kind))

        return self

    def by_id(self) -> Self:
        @self.routes.get("/{id}", READ, answers=self.answers, absent=self.absent, name=f"{self._kind}_by_id")
        @told(f"One {self._noun}.")
        @reading(id=self.key)
        async def record_by_id(call: Call, id: Any, query: FreshQuery, records: RecordQueries) -> Answer:
            return self.resource.found(await records.find(self._kind, id), id)

        return self

    def by_reference(self) -> Self:
        @self.routes.get("/reference", READ, answers=self.answers, absent=self.absent, name=f"{self._kind}_by_reference")
        @told(f"The most recently created {self._noun} with this reference id.")
        async def record_by_reference(call: Call, query: ReferenceQuery, records: RecordQueries) -> Answer:
            return self.resource.found(await records.by_reference(self._kind, query.id), query.id)

        return self

    def events(self) -> Self:
        """The kind is one that `EventFilter` has an id for."""

        @self.routes.get("/{id}/events/", READ, answers=EventCollectionWire, name=f"events_of_{self._kind}")
        @told(f"The Events of a {self._noun}, by scheduled start.")
        async def events_of_record(call: Call, id: UUID, query: PageQuery, events: EventQueries, answers: EventAnswers) -> Answer:
            link: dict[str, Any] = {f"{self._kind}_id": id}
            wanted = EventFilter(**link, descending=query.order, window=query.window)
            return await answers.listed(call, await events.page(wanted))

        return self
