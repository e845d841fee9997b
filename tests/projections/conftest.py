"""Fixtures that the tests of the projections share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api.wiring.core import Core
from tests.support.clock import HandClock
from tests.support.databases import KeptDatabases


@pytest.fixture
async def other(database_url: str, kept_databases: KeptDatabases, clock: HandClock) -> AsyncIterator[Core]:
    """A second process on the same database."""
    async with kept_databases.core(clock) as wired:
        yield wired
