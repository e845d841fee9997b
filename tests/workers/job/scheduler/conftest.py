"""Fixtures of the scheduler's tests."""

from __future__ import annotations

import pytest

from api.wiring.core import Core
from tests.projections.job.jobs_made import present
from tests.support.clock import HandClock
from tests.workers.job.scheduler.scheduling import Scheduling


@pytest.fixture
def keeping(inner: Core, database_url: str, clock: HandClock) -> Scheduling:
    clock.now = present()
    return Scheduling(inner, database_url, clock)
