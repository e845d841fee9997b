"""An appender on an empty log, and everything that it did."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest

from api.wiring.core import Core, core
from projections.log.append import Appender
from projections.log.limits import LogLimits
from tests.projections.log.helpers import Remembering, Wire
from tests.support.feeding import as_superuser
from tests.support.postgres import new_database

SIZE = 7
"""Positions of a partition of the log `small`."""

Figures = Callable[[str, float], None]


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Figures:
    """Says a measured figure aloud, also when the test passes: to the terminal with -s or -rP, and to the JUnit report."""

    def say(what: str, figure: float) -> None:
        record_property(what, figure)
        print(f"{what}: {figure}")  # noqa: T201

    return say


@dataclass
class Writing:
    """An appender; how many events each of its statements held, and where each commit ended."""

    url: str
    database: Remembering
    batches: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def appender(self, **options: object) -> Appender:
        return Appender(self.database, observe=lambda size, _: self.batches.append(size), announce=self.ends.append, **options)  # type: ignore[arg-type]


@pytest.fixture
def writing(database_url: str, migrated: tuple[str, str | None]) -> Writing:
    return Writing(database_url, Remembering(database_url, role=migrated[1]))


@pytest.fixture
async def appender(writing: Writing) -> AsyncIterator[Appender]:
    made = writing.appender()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[Wire]:
    async with Wire(database_url) as between:
        yield between


@contextmanager
def small_partitions(postgres: str, *, template: str) -> Iterator[str]:
    """The address of a new database, whose log has one partition of 7 positions."""
    with new_database(postgres, "partitions", template=template) as url:
        as_superuser(url, f"SELECT log_make_partitions({SIZE}, {SIZE})")
        yield url


@asynccontextmanager
async def process_on(small: str) -> AsyncIterator[Core]:
    wired = core(small, role="medialedger_app", limits=LogLimits(partition=SIZE))
    await wired.start()
    try:
        yield wired
    finally:
        await wired.stop()


@pytest.fixture
def small(postgres: str, migrated_template: str) -> Iterator[str]:
    """The address of a database of its own, whose log has one partition of 7 positions."""
    with small_partitions(postgres, template=migrated_template) as url:
        yield url


@pytest.fixture
async def wired(small: str) -> AsyncIterator[Core]:
    """A process on it."""
    async with process_on(small) as made:
        yield made
