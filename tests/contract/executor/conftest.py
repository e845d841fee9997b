"""The executor in memory and the one over PostgreSQL, each on an empty log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import pytest

from api.wiring.core import Core, core
from domain.kernel.idempotency import IdempotencyRecord
from domain.kernel.ports import Executor, Outcome
from projections.log.idempotency import IdempotencyRecords
from tests.domain.memory import Memory
from tests.projections.log.helpers import interrupted, rows


class Stage(Protocol):
    """An executor, and the state that the tests inspect."""

    executor: Executor
    other: Executor
    """An executor of another process."""

    def interrupted(self, before: Callable[[], Awaitable[None]]) -> Executor:
        """Return an executor that calls `before` between each decision and its append."""
        ...

    async def topics(self) -> list[str]: ...

    async def claims(self) -> set[tuple[str, str, str]]: ...

    async def links(self) -> set[tuple[str, str]]: ...

    async def repeated(self, client: str, key: str) -> tuple[IdempotencyRecord, Outcome[Any]]: ...


class InMemory:
    def __init__(self) -> None:
        self._memory = Memory()
        self.executor: Executor = self._memory.executor
        self.other: Executor = self._memory.another()

    def interrupted(self, before: Callable[[], Awaitable[None]]) -> Executor:
        return self._memory.another(before)

    async def topics(self) -> list[str]:
        return self._memory.topics

    async def claims(self) -> set[tuple[str, str, str]]:
        return {(scope, value, owner) for (scope, value), owner in self._memory.log.claims.items()}

    async def links(self) -> set[tuple[str, str]]:
        return self._memory.log.links

    async def repeated(self, client: str, key: str) -> tuple[IdempotencyRecord, Outcome[Any]]:
        return self._memory.log.keys[client, key], self._memory.outcome(client, key)


class InPostgres:
    def __init__(self, inner: Core, other: Core, *, url: str) -> None:
        self._inner = inner
        self._url = url
        self.executor: Executor = inner.executor
        self.other: Executor = other.executor

    def interrupted(self, before: Callable[[], Awaitable[None]]) -> Executor:
        return interrupted(self._inner, before)

    async def topics(self) -> list[str]:
        return [topic for (topic,) in rows(self._url, "SELECT topic FROM events ORDER BY position")]

    async def claims(self) -> set[tuple[str, str, str]]:
        return {(scope, value, owner) for scope, value, owner in rows(self._url, "SELECT scope, value, owner FROM unique_claims")}

    async def links(self) -> set[tuple[str, str]]:
        return {(owner, target) for owner, target in rows(self._url, "SELECT owner, target FROM links")}

    async def repeated(self, client: str, key: str) -> tuple[IdempotencyRecord, Outcome[Any]]:
        store = IdempotencyRecords(self._inner.database, self._inner.streams)
        record = await store.find(client, key)
        assert record is not None
        return record, await store.outcome(record)


@pytest.fixture
async def in_postgres(inner: Core, migrated: tuple[str, str | None]) -> AsyncIterator[Stage]:
    url, role = migrated
    other = core(url, role=role, clock=inner.clock)
    await other.start()
    yield InPostgres(inner, other, url=url)
    await other.stop()


@pytest.fixture(params=["memory", "postgres"])
def stage(request: pytest.FixtureRequest) -> Stage:
    if request.param == "memory":
        return InMemory()
    chosen_stage: Stage = request.getfixturevalue("in_postgres")
    return chosen_stage
