from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres import new_database
from tests.support.product import Products, products


@pytest.fixture
def started() -> Iterator[Products]:
    """Start the product as a process; processes that remain at the end of the test are ended."""
    with products() as made:
        yield made


@pytest.fixture
def own_database(postgres: str, migrated_template: str) -> Iterator[str]:
    """Yield the URL of a migrated database on a server that outlives the processes of the product."""
    with new_database(postgres, "own", template=migrated_template) as url:
        yield url
