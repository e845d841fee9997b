from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.product import Products, products


@pytest.fixture
def started() -> Iterator[Products]:
    """Starts the product as a process; whatever is still there at the end of the test is ended."""
    with products() as made:
        yield made
