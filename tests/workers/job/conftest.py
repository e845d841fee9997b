"""The fork server that pools of step hosts share, and an engine whose processes the test starts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api.wiring.core import Core, core
from domain.kernel.clock import system_clock
from projections.job.queue import JobNumberSequence
from tests.support.engine import Engine, plugins
from workers.job.step_processes import step_fork_server
from workers.kernel.fork_client import ForkServer


@pytest.fixture(scope="session")
async def step_server() -> AsyncIterator[ForkServer]:
    """Start a fork server that imports the modules of a step host once. A test module with its own workflows has its own
    `step_server`."""
    async with step_fork_server() as server:
        yield server


@pytest.fixture
async def engine(database_url: str, migrated: tuple[str, str | None]) -> AsyncIterator[Engine]:
    """Run an engine without workers. A test module may have its own `engine`."""
    inner: Core = core(database_url, role=migrated[1], clock=system_clock)
    with plugins():
        await inner.start()
        try:
            yield Engine(inner, JobNumberSequence(inner.database))
        finally:
            await inner.stop()
