"""`medialedger restored`, as a person calls it."""

from __future__ import annotations

import asyncio

import pytest

from api.cli.main import main
from api.wiring.core import Core
from projections.consumers.timeline import Origin, timeline
from tests.projections.consuming import consumer
from tests.projections.log.helpers import rows
from tests.support.feeding import event


@pytest.fixture(autouse=True)
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)


async def test_an_epoch_begins_at_the_end_of_the_log_and_no_checkpoint_is_beyond_it(
    inner: Core, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await event(inner, 1)
    await event(inner, 2)
    await consumer(inner, "webhooks", 1000)
    await consumer(inner, "callback", 1)
    assert await asyncio.to_thread(main, ["restored", "--reason", "a test"]) == 0
    assert "epoch 2 of the log has begun after position 2" in capsys.readouterr().out
    assert rows(database_url, "SELECT epoch, since_position, reason FROM log_epochs") == [(2, 2, "a test")]
    positions = rows(database_url, "SELECT consumer, position, owner FROM consumer_shards ORDER BY consumer")
    assert positions == [("callback", 1, None), ("webhooks", 2, None)]
    assert await asyncio.to_thread(main, ["restored", "--since", "1"]) == 0
    assert rows(database_url, "SELECT epoch, since_position FROM log_epochs ORDER BY epoch") == [(2, 2), (3, 1)]


async def test_an_epoch_does_not_begin_beyond_the_log(inner: Core, capsys: pytest.CaptureFixture[str]) -> None:
    await event(inner, 1)
    assert await asyncio.to_thread(main, ["restored", "--since", "2"]) == 1
    assert "an epoch cannot begin after position 2: the log ends at 1" in capsys.readouterr().err


async def test_records_count_up_to_the_place_where_a_later_epoch_begins(inner: Core) -> None:
    for number in range(5):
        await event(inner, 1, title=f"title {number}")
    log = (await timeline(inner.database)).log_id
    for since in ("4", "2"):
        assert await asyncio.to_thread(main, ["restored", "--since", since]) == 0
    now = await timeline(inner.database)
    assert now.origin == Origin(log, 3)
    positions = {epoch: [position for position in range(1, 6) if now.holds(position, Origin(log, epoch))] for epoch in (1, 2, 3, 4)}
    assert positions == {1: [1, 2], 2: [1, 2], 3: [1, 2, 3, 4, 5], 4: []}


async def test_the_running_product_may_not_begin_an_epoch(inner: Core) -> None:
    with pytest.raises(Exception, match="permission denied"):
        await inner.database.execute("INSERT INTO log_epochs (epoch, since_position, reason) VALUES (2, 0, 'forged')")
