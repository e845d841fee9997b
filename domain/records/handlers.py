"""Use cases of all simple resources: register, amend and delete records of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import ClaimTaken, Malformed
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.records.kinds.custom_property import CustomProperty
from domain.records.ports import RecordReader
from domain.records.record import AmendRecord, DeleteRecord, Record, RegisterRecord


class RecordHandlers:
    """Registers, amends and deletes records. `unique_field` names the field of a 400 if its value belongs to another record.
    Without it, that is a conflict."""

    def __init__(self, executor: Executor, records: RecordReader) -> None:
        self._executor = executor
        self._records = records

    async def register(
        self,
        kind: type[Record],
        values: Mapping[str, Any],
        *,
        invocation: Invocation,
        key: object = None,
        sealed: Sequence[EncryptedSecret] = (),
        unique_field: str | None = None,
    ) -> Outcome[Record]:
        """Add a record or, with a `key`, add or change the record with this key."""
        command = RegisterRecord(key or new_id(), kind, values, new=key is None, sealed=sealed)
        return await self._execute(command, invocation, unique_field=unique_field)

    async def amend(
        self,
        kind: type[Record],
        key: object,
        *,
        values: Mapping[str, Any],
        invocation: Invocation,
        sealed: Sequence[EncryptedSecret] = (),
        unique_field: str | None = None,
    ) -> Outcome[Record]:
        """Change the fields that `values` names."""
        return await self._execute(AmendRecord(key, kind, values, sealed=sealed), invocation, unique_field=unique_field)

    async def delete(self, kind: type[Record], key: object, *, invocation: Invocation) -> Outcome[Record]:
        """Delete a record. Raises `InUse` if something links to it."""
        return await self._executor.execute(DeleteRecord(key, kind), invocation=invocation)

    async def delete_with_properties(
        self, kind: type[Record], key: object, *, properties: type[CustomProperty], invocation: Invocation
    ) -> Outcome[Record]:
        """Delete the record and its custom properties, which come first in the outcome."""

        async def plan() -> Plan:
            owned = (await self._records.of_owners(properties.KIND, [key])).get(str(key), ())
            return Plan((*(DeleteRecord(row.id, properties, still={}) for row in owned), DeleteRecord(key, kind)))

        return await self._executor.execute(plan, invocation=invocation)

    async def _execute(
        self, command: RegisterRecord | AmendRecord, invocation: Invocation, *, unique_field: str | None
    ) -> Outcome[Record]:
        try:
            return await self._executor.execute(command, invocation=invocation)
        except ClaimTaken:
            if unique_field is None:
                raise
            raise Malformed.at(unique_field, f"is already used by another {command.of.KIND.replace('_', ' ')}") from None
