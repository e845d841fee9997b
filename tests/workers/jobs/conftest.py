"""The fork server that pools of step hosts share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from workers.jobs.step_processes import step_fork_server
from workers.kernel.forked import ForkServer


@pytest.fixture(scope="session")
async def step_server() -> AsyncIterator[ForkServer]:
    """It imports once what a step host needs. A module with workflows of its own has a `step_server` of its own."""
    async with step_fork_server() as server:
        yield server
