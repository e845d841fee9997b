"""A kind of record in the API: the conversion of bodies to values and of records to responses. Modules of resources add models
and routes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from api.audit.past_states import Moment
from api.http.response import Response, array
from api.kernel.request import Request
from api.kernel.wire import Wire
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from domain.record.ports import RecordRow
from domain.record.record import D, Record


@dataclass(frozen=True)
class Resource(Generic[D]):
    """A kind of record in the API. `path` is the address of the collection; `shape` returns the response model of a record, as a
    GET shows it."""

    kind: type[Record[D]]
    path: str
    shape: Callable[[RecordRow[D]], Any]

    def values(self, body: Wire) -> dict[str, Any]:
        """Return the fields of the body that the kind has under the same names. null means the field's default, or no change if
        it has none. The empty text is null if the field may be null."""
        fields = self.kind.DETAILS.model_fields
        values: dict[str, Any] = {}
        for name in body.model_fields_set & fields.keys():
            value, field = getattr(body, name), fields[name]
            if value is None or (value == "" and field.default is None):
                if field.is_required():
                    continue
                value = field.get_default(call_default_factory=True)
            values[name] = value
        return values

    async def past_state(self, root: Record[D], moment: Moment) -> Any:
        """Return the record at an earlier moment as a GET shows it."""
        return self.shape(RecordRow.of(root))

    async def respond(self, request: Request, outcome: Outcome[Record[D]]) -> Response:
        record = outcome.aggregate
        return Response(self.shape(RecordRow.of(record)), etag=record.version)

    async def respond_created(self, request: Request, outcome: Outcome[Record[D]]) -> Response:
        """Return 201 with a Location."""
        record = outcome.aggregate
        return Response(self.shape(RecordRow.of(record)), 201, etag=record.version, location=f"{self.path}/{record.key}")

    def single(self, row: RecordRow[D] | None, key: object) -> Response:
        """Return the response to a GET of one record. `NotFound` becomes 204 if the route says so."""
        if row is None:
            raise NotFound(self.kind.KIND, str(key))
        return Response(self.shape(row), etag=row.version, settled=True)

    async def array(self, parts: AsyncIterator[Sequence[RecordRow[D]]]) -> Response:
        """Return a list of any length."""
        return await array([self.shape(row) for row in part] async for part in parts)

    def listed(self, rows: Iterable[RecordRow[D]]) -> Response:
        return Response([self.shape(row) for row in rows])
