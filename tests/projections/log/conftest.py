"""An appender on an empty log, and everything that it did."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from projections.log.append import Appender
from tests.projections.log.helpers import Remembering, Wire

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
