"""Use cases of tags."""

from __future__ import annotations

from uuid import UUID

from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.records.kinds.tag import Tag
from domain.records.ports import RecordLookup
from domain.records.record import AmendRecord, Record, RegisterRecord


class TagHandlers:
    """Adds and renames tags. A name belongs to one tag only."""

    def __init__(self, executor: Executor, records: RecordLookup) -> None:
        self._executor = executor
        self._records = records

    async def add_or_rename(self, key: UUID | None, name: str, *, invocation: Invocation) -> Outcome[Record]:
        """Add or rename the tag with this key. Without a key, return the tag that has the name, or add one."""
        if key is not None:
            return await self._executor.execute(RegisterRecord(key, Tag, {"name": name}), invocation=invocation)
        new_key = new_id()

        async def plan() -> Plan:
            tag = (await self._records.named(Tag.KIND, [name])).get(name)
            if tag is None:
                return Plan((RegisterRecord(new_key, Tag, {"name": name}, new=True),))
            return Plan((AmendRecord(tag.id, Tag, {}, still={"name": name}),))

        return await self._executor.execute(plan, invocation=invocation)
