"""A client of the job engine: its requests name their client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest


@pytest.fixture
async def engine(http: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    headers = {**http.headers, "client": "admin"}
    async with httpx.AsyncClient(transport=http._transport, base_url=http.base_url, headers=headers) as client:
        yield client
