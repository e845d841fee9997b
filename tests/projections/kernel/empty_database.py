"""A database without a table."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from projections.kernel.database.database import Database
from tests.support.postgres import new_database

NAME = "migrated_by_a_test"


@pytest.fixture
async def empty_database(postgres: str) -> AsyncIterator[Database]:
    with new_database(postgres, NAME) as url:
        async with Database(url, size=1) as database:
            yield database
