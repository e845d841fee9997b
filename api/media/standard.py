"""Routes that most kinds of records have, each declared once. The module of a resource selects the routes of the resource."""

from __future__ import annotations

from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, Generic, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.http.response import Response
from api.http.routing import Service, declared, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery, ReferenceQuery
from api.kernel.request import Request
from api.kernel.wire import Wire
from api.media.resource import Resource
from domain.kernel.ports import Outcome
from domain.record.handlers import RecordHandlers
from domain.record.record import D, Record
from projections.log.executor import CommandExecutor
from projections.record.queries import RecordQueries


@dataclass(frozen=True)
class StandardRoutes(Generic[D]):
    """The standard routes of a resource; each method declares one.

    `model` is the response model of a record; `absent` the status of a GET of one record that does not exist; `key` the type of
    the ids; `unique_field` the field that a 400 names when its value belongs to another record.
    """

    router: APIRouter
    resource: Resource[D]
    model: type[Wire]
    absent: Literal[204, 404] = 404
    key: Any = UUID
    unique_field: str | None = None

    @property
    def _name(self) -> str:
        return self.resource.kind.KIND

    @property
    def _noun(self) -> str:
        return self._name.replace("_", " ")

    @property
    def _id(self) -> Any:
        """The type of the path parameter, with its description."""
        return Annotated[self.key, Path(description=f"The id of the {self._noun}.")]

    @property
    def _article(self) -> str:
        return "An" if self._noun[0] in "aeiou" else "A"

    def add(self, body: type[Wire], *, status: Literal[200, 201] = 200) -> Self:
        """Declare the route that adds a record. A status of 201 comes with a Location."""
        respond = self.resource.respond_created if status == 201 else self.resource.respond

        @self.router.post("/", dependencies=[WRITE], response_model=self.model, status_code=status, name=f"add_{self._name}")
        @rules(respond=respond)
        @declared(f"Add {self._article.lower()} {self._noun}.", body=body)
        async def add_record(request: Request, body: Wire, handlers: Service[RecordHandlers]) -> Outcome[Record[D]]:
            values = self.resource.values(body)
            return await handlers.register(
                self.resource.kind, values, unique_field=self.unique_field, invocation=request.invocation
            )

        return self

    def amend(self, body: type[Wire]) -> Self:
        respond = self.resource.respond

        @self.router.put("/{id}", dependencies=[WRITE], response_model=self.model, name=f"update_{self._name}")
        @rules(respond=respond)
        @declared(f"Change {self._article.lower()} {self._noun}. Absent fields keep their values.", body=body, id=self._id)
        async def amend_record(request: Request, id: Any, body: Wire, handlers: Service[RecordHandlers]) -> Outcome[Record[D]]:
            values = self.resource.values(body)
            return await handlers.amend(
                self.resource.kind, id, values=values, unique_field=self.unique_field, invocation=request.invocation
            )

        return self

    def delete(self) -> Self:
        respond = self.resource.respond

        @self.router.delete("/{id}", dependencies=[WRITE], response_model=self.model, name=f"delete_{self._name}")
        @rules(respond=respond)
        @declared(
            f"Delete {self._article.lower()} {self._noun} that is not in use. The response shows its last state.", id=self._id
        )
        async def delete_record(request: Request, id: Any, executor: Service[CommandExecutor]) -> Outcome[Record[D]]:
            return await executor.execute(self.resource.kind.delete.on(id), invocation=request.invocation)

        return self

    def list(self) -> Self:
        @self.router.get("/", dependencies=[READ], response_model=GenericAlias(list, (self.model,)), name=f"list_{self._name}s")
        @declared(f"All {self._noun}s, by name.")
        async def list_records(
            request: Request, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
        ) -> Response:
            return await self.resource.array(records.parts(self.resource.kind))

        return self

    def by_id(self) -> Self:
        @self.router.get("/{id}", dependencies=[READ], response_model=self.model, name=f"get_{self._name}")
        @rules(absent=self.absent)
        @declared(f"The {self._noun} with this id.", id=self._id)
        async def record_by_id(
            request: Request, id: Any, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
        ) -> Response:
            return self.resource.single(await records.find(self.resource.kind, id), id)

        return self

    def by_reference(self) -> Self:
        @self.router.get("/reference", dependencies=[READ], response_model=self.model, name=f"get_{self._name}_by_reference")
        @rules(absent=self.absent)
        @declared(f"The most recently created {self._noun} with this reference id.")
        async def record_by_reference(
            request: Request, query: Annotated[ReferenceQuery, Query()], records: Service[RecordQueries]
        ) -> Response:
            return self.resource.single(await records.by_reference(self.resource.kind, query.id), query.id)

        return self
