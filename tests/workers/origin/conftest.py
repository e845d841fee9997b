"""Fixtures with an origin in the process of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import HandClock
from tests.workers.origin.studio import Studio


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def studio(tmp_path: Path, clock: HandClock) -> Studio:
    return Studio(tmp_path / "origin", clock)
