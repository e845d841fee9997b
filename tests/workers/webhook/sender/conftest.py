"""Fixtures of the tests of the sender."""

from __future__ import annotations

import pytest

from api.wiring.core import Core
from tests.support.clock import HandClock
from tests.workers.webhook.sender.sending import Sending


@pytest.fixture
def sending(inner: Core, database_url: str, clock: HandClock) -> Sending:
    return Sending(inner, database_url, clock)
