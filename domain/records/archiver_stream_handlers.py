"""Use cases of archiver streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.kernel.ports import Executor, Invocation, Outcome
from domain.records.kinds.archiver_stream import ArchiverStream, check_times
from domain.records.ports import Numbers
from domain.records.record import AmendRecord, Record, RegisterRecord


class ArchiverStreamHandlers:
    """Adds and changes archiver streams, whose keys are numbers."""

    def __init__(self, executor: Executor, numbers: Numbers) -> None:
        self._executor = executor
        self._numbers = numbers

    async def add(self, values: Mapping[str, Any], *, invocation: Invocation) -> Outcome[Record]:
        command = RegisterRecord(await self._numbers.draw(), ArchiverStream, values, new=True)
        return await self._executor.execute(command, invocation=invocation)

    async def change(self, key: int, values: Mapping[str, Any], *, invocation: Invocation) -> Outcome[Record]:
        """Change an archiver stream. Invalid times are reported before a missing stream."""
        check_times(values.get("start_time"), values.get("end_time"))
        return await self._executor.execute(AmendRecord(key, ArchiverStream, values), invocation=invocation)
