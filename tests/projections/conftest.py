"""What tests of the projections share beyond the product itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api.wiring.core import Core, core
from tests.conftest import HandClock


@pytest.fixture
async def other(database_url: str, migrated: tuple[str, str | None], clock: HandClock) -> AsyncIterator[Core]:
    """A second process on the same database."""
    wired = core(database_url, role=migrated[1], clock=clock)
    await wired.start()
    yield wired
    await wired.stop()
