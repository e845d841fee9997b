"""The start of the fan-out of notifications: its reads do not grow with the callbacks and the events of webhooks."""

from __future__ import annotations

from uuid import UUID

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from projections.log.reader import head
from projections.webhook.fanout import webhooks_as_of
from tests.support.clock import NOON
from tests.support.feeding import as_superuser, do, event
from tests.workers.webhook.feeding import ALL, ONE, amend, delete, fed, rows, webhook

FIRST, OTHER = UUID(int=1), UUID(int=103)
CALLBACKS = 4_000
"""The number of callbacks. The test counts the data that leave the database; `test_many_callbacks` has many more."""


async def test_thousands_of_callbacks_cost_a_start_nothing(inner: Core, database_url: str) -> None:
    await webhook(inner, ALL)
    await webhook(inner, ONE, event=FIRST)
    await event(inner, 1)
    as_superuser(
        database_url,
        "INSERT INTO record_view (kind, id, version, deleted, parent, date_created, date_modified, document)"
        " SELECT 'callback', gen_random_uuid()::text, 1, false, 'studio', now(), now(),"
        ' \'{"client":"studio","named_on":"2031-01-02","webhook_url":"https://hooks.test/job/\' || n || \'"}\''
        f" FROM generate_series(1, {CALLBACKS}) AS n",
    )
    first, second = fed(inner), fed(inner)
    position = await head(inner.database)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    then = await webhooks_as_of(inner.database, position)
    assert (len(then.unchanged), len(then.events)) == (2, 0), "all that leaves the database"
    for worker in (first, second):  # the second one takes over, and does the same again
        await worker.begin(position)
        await worker.feed()
    assert [row[0] for row in await rows(inner.database)] == [ALL, ONE]


async def test_a_start_sees_webhooks_as_they_were_at_its_position(inner: Core) -> None:
    await event(inner, 1)
    for key in (ALL, ONE, OTHER):
        await webhook(inner, key)
    await amend(inner, ONE, disabled_at=NOON)
    await do(inner, MediaEvent.force_notification.on(FIRST))
    position = await head(inner.database) - 1
    await amend(inner, ONE, disabled_at=None)
    await amend(inner, ALL, disabled_at=NOON)
    await delete(inner, OTHER)
    then = await webhooks_as_of(inner.database, position)
    assert (len(then.unchanged), len(then.events)) == (0, 4), "only what has changed since is read from the log"
    fan = fed(inner)
    await fan.begin(position)
    await fan.feed()
    assert [(row[0], row[5]) for row in await rows(inner.database)] == [(ALL, 0), (ONE, 2), (OTHER, 0)]
