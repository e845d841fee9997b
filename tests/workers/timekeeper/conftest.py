"""What the tests of the scheduler share."""

from __future__ import annotations

import pytest

from api.core import Core
from tests.conftest import HandClock
from tests.projections.job.jobs_made import present
from tests.workers.timekeeper.timekeeping import Timekeeping


@pytest.fixture
def keeping(inner: Core, database_url: str, clock: HandClock) -> Timekeeping:
    clock.now = present()
    return Timekeeping(inner, database_url, clock)
