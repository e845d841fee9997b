"""A database without a table."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from projections.kernel.database import Database

NAME = "migrated_by_a_test"


@pytest.fixture
async def empty_database(postgres: str) -> AsyncIterator[Database]:
    name = sql.Identifier(NAME)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    async with Database(make_conninfo(postgres, dbname=NAME), size=1) as database:
        yield database
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
