"""What all simple resources do alike: from a body to values, from a record to an answer. A resource file adds its routes and its
spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from api.kernel.answer import Answer
from api.kernel.wire import Wire
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.records.record import AmendRecord, Record, RegisterRecord, WithdrawRecord
from projections.records.queries import RecordRow

Shape = Callable[[RecordRow], dict[str, Any]]


@dataclass(frozen=True)
class Resource:
    """One kind of record as the API shows it. Its records lie at `<path>/<id>`; `shape` words one as a GET gives it."""

    kind: type[Record]
    path: str
    shape: Shape

    def add(self, body: Wire, **more: Any) -> RegisterRecord:
        """A new record, with an id of its own."""
        return RegisterRecord(new_id(), self.kind, {**self.values(body), **more}, new=True)

    def put(self, key: object, body: Wire, **more: Any) -> RegisterRecord:
        """The record with this id, new or changed."""
        return RegisterRecord(key, self.kind, {**self.values(body), **more})

    def amend(self, key: object, body: Wire, **more: Any) -> AmendRecord:
        return AmendRecord(key, self.kind, {**self.values(body), **more})

    def withdraw(self, key: object) -> WithdrawRecord:
        return WithdrawRecord(key, self.kind)

    def values(self, body: Wire) -> dict[str, Any]:
        """What the body sets, of the fields that the kind knows under the same names. null means the field's default; a field
        without one keeps what it has. The empty text is null where a field may be null."""
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

    async def written(self, record: Record) -> Answer:
        return Answer(200, self.shape(RecordRow.of(record)), etag=record.version)

    async def created(self, record: Record) -> Answer:
        return Answer(201, self.shape(RecordRow.of(record)), etag=record.version, location=f"{self.path}/{record.key}")

    def found(self, row: RecordRow | None, key: object) -> Answer:
        """A single read: `NotFound` becomes 204 where the route says so."""
        if row is None:
            raise NotFound(self.kind.KIND, str(key))
        return Answer(200, self.shape(row), etag=row.version)

    def listed(self, rows: Iterable[RecordRow]) -> Answer:
        return Answer(200, [self.shape(row) for row in rows])
