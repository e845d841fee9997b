"""The fork server that pools of step hosts share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from workers.job.step_processes import step_fork_server
from workers.kernel.fork_client import ForkServer


@pytest.fixture(scope="session")
async def step_server() -> AsyncIterator[ForkServer]:
    """Start a fork server that imports the modules of a step host once. A test module with its own workflows has its own
    `step_server`."""
    async with step_fork_server() as server:
        yield server
