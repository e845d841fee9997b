from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.api.kernel.toy import Toy


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
async def http(toy: Toy) -> AsyncIterator[httpx.AsyncClient]:
    async with toy.client() as client:
        yield client
