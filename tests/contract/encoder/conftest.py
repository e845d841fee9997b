"""Fixtures of the encoders, each with its world."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.encoder.ffmpeg_stage import LOCAL, OverFfmpeg
from tests.contract.encoder.http_stage import OverHttp
from tests.contract.encoder.stages import InMemory, Stage
from tests.support.receiver import Receiver, receiving
from tests.workers.encoders.foreign import foreign_encoder
from workers.adapters.outbound_http import GuardedClient


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as started:
        yield started


@pytest.fixture
async def client() -> AsyncIterator[GuardedClient]:
    client = GuardedClient(LOCAL)
    yield client
    await client.close()


@pytest.fixture
async def over_ffmpeg(receiver: Receiver, client: GuardedClient) -> Stage:
    return OverFfmpeg(receiver, client)


@pytest.fixture
async def over_http(client: GuardedClient) -> AsyncIterator[Stage]:
    async with foreign_encoder() as foreign:
        yield OverHttp(foreign, client)


@pytest.fixture(params=["memory", "ffmpeg", "http"])
def stage(request: pytest.FixtureRequest) -> Stage:
    if request.param == "memory":
        return InMemory()
    chosen_stage: Stage = request.getfixturevalue(f"over_{request.param}")
    return chosen_stage
