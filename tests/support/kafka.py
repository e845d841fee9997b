"""A real Kafka broker for the run, started by the first test that needs it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from uuid import uuid4

import pytest

from deploy.kafka.broker import Broker
from deploy.kafka.jars import KafkaUnavailable

NAMED = "MEDIALEDGER_TEST_KAFKA"


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of the broker."""
    if named := os.environ.get(NAMED):
        yield answering(named)
        return
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        yield broker.start()
    finally:
        broker.stop()


@pytest.fixture
def topics_prefix() -> str:
    """Return the prefix of a test's topics and groups, so that tests do not see each other's."""
    return f"test-{uuid4().hex[:12]}."


def answering(bootstrap: str) -> str:
    """Return the address when something accepts connections there."""
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise KafkaUnavailable(f"no broker answers at {NAMED}={bootstrap}: {error}") from None
    return bootstrap
