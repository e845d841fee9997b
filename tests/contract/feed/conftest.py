from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from api.wiring.core import Core
from projections.log.log_watcher import LogWatcher
from tests.contract.feed.transports import Fallback, Kafka, Log, Memory, Transport, relaying
from workers.adapters.kafka.topics import Topics


@pytest.fixture
async def log_watcher(inner: Core) -> AsyncIterator[LogWatcher]:
    growing = LogWatcher(inner.database)
    await growing.start()
    yield growing
    await growing.stop()


@pytest.fixture(params=["memory", "log", "kafka", "fallback"])
async def transport(request: pytest.FixtureRequest, inner: Core, log_watcher: LogWatcher) -> AsyncIterator[Transport]:
    log = Log(inner.database, log_watcher)
    if request.param == "memory":
        yield Memory(inner.database)
    elif request.param == "log":
        yield log
    elif request.param == "fallback":
        yield Fallback(inner.database, log_watcher)
    else:
        bootstrap, topics = request.getfixturevalue("kafka"), Topics(request.getfixturevalue("topics_prefix"))
        async with relaying(inner, log_watcher, bootstrap=bootstrap, topics=topics):
            broker = Kafka(inner.database, log, bootstrap=bootstrap, topics=topics)
            await broker.ready()
            yield broker


@pytest.fixture
def effects(database_url: str) -> str:
    """A table for what a consumer does with a record."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS test_effects")
        connection.execute("CREATE TABLE test_effects (number bigserial, position bigint, stream text, through bigint)")
        connection.execute("GRANT ALL ON test_effects, test_effects_number_seq TO PUBLIC")
    return "test_effects"
