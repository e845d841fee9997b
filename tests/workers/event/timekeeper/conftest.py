"""Fixtures of the timekeeper's tests."""

from __future__ import annotations

import pytest

from api.wiring.core import Core
from tests.projections.job.jobs_made import present
from tests.support.clock import HandClock
from tests.workers.event.timekeeper.keeping import Keeping


@pytest.fixture
def keeping(inner: Core, database_url: str, clock: HandClock) -> Keeping:
    clock.now = present()
    return Keeping(inner, database_url, clock)
