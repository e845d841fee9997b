from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.product import Products, products
from tests.postgres import new_database


@pytest.fixture
def started() -> Iterator[Products]:
    """Starts the product as a process; whatever is still there at the end of the test is ended."""
    with products() as made:
        yield made


@pytest.fixture
def own_database(postgres: str, migrated_template: str) -> Iterator[str]:
    """A migrated database that no process of the product ends with."""
    with new_database(postgres, "own", template=migrated_template) as url:
        yield url
