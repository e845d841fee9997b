"""The fan-out of callbacks on a real log: its deliveries, their order, and no repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from pydantic_core import from_json

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.destination.targets import Target
from domain.job.aggregate import Job
from domain.kernel.command import Command
from domain.kernel.encryption import SecretRef
from domain.kernel.mapper import EventMapper
from domain.kernel.named_callback import NamedCallback
from domain.publication.aggregate import Publication
from domain.publication.values import PublicationKind, PublicationText
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.destination import Destination
from domain.record.record import RegisterRecord
from domain.webhook.callback import Callback
from projections.kernel.sizes import MIB
from projections.log.reader import head, read
from projections.record.queries import RecordQueries
from projections.webhook.keys import CHANNEL, shard_of
from projections.webhook.store import DISABLED
from tests.api.asking import logged
from tests.support.clock import NOON
from tests.support.feeding import do
from tests.workers.webhook.callbacks.jobs_given import accept, callback, complete, start, start_task
from tests.workers.webhook.feeding import Fed, rows
from workers.webhook.callbacks.fanout import CallbackFanout

A, B, DESTINATION = UUID(int=201), UUID(int=202), UUID(int=203)


def scheduled(key: UUID, text: PublicationText) -> Command[Publication]:
    return Publication.schedule.on(
        key,
        kind=PublicationKind.VOD,
        content_id="film",
        destination_id=DESTINATION,
        target=Target.S3,
        transaction_id=UUID(int=1),
        client="studio",
        text=text,
        job=17,
    )


WHOLE = ["started", "task_started", "task_completed", "task_started", "task_completed", "completed"]


def fed(inner: Core, *, most: int = MIB) -> Fed:
    woken: list[int] = []
    records, mapper = RecordQueries(inner.database, RECORDS), EventMapper(inner.catalogue)
    handler = CallbackFanout(inner.streams, records, mapper=mapper, wake=lambda _: woken.append(1), most=most)
    return Fed(inner, handler, woken=woken)


@pytest.fixture
async def fan(inner: Core) -> Fed:
    for key in (A, B):
        values = {"webhook_url": "https://hooks.test/job", "client": "studio", "named_on": NOON.date()}
        await do(inner, RegisterRecord(key, Callback, values))
    made = fed(inner)
    await made.begin(await head(inner.database))
    return made


async def notices(inner: Core, webhook: UUID = A) -> list[dict[str, Any]]:
    return [from_json(row[4]) for row in await rows(inner.database) if row[0] == webhook]


async def statuses(inner: Core, webhook: UUID = A) -> list[str]:
    return [entry["status"] for entry in await notices(inner, webhook)]


async def test_a_job_has_notices_from_start_to_end_with_its_own_ordering_key(inner: Core, fan: Fed) -> None:
    await complete(inner, 17, A, B, custom_data="mine")
    await fan.feed()
    assert await statuses(inner, A) == await statuses(inner, B) == WHOLE
    assert await notices(inner, A) == await notices(inner, B)
    matches = [row for row in await rows(inner.database) if row[0] == A]
    events = [event for event in await logged(inner, "job:17") if event.topic not in ("job.accepted", "job.outputs_committed")]
    assert [row[1] for row in matches] == [event.position for event in events]
    assert {(row[2], row[3], row[5], row[6]) for row in matches} == {("job:17", shard_of(A), 0, None)}
    assert (await notices(inner))[-1]["files"] == ["film/a.mp4", "film/b.mp4"]
    assert {(entry["job_id"], entry["custom_data"]) for entry in await notices(inner)} == {(17, "mine")}
    assert fan.woken == [1]


@pytest.mark.parametrize("most", [MIB, 0])
@pytest.mark.parametrize("at_once", [1, 2, 3, 1000])
async def test_any_batches_of_the_log_give_the_same_notices(inner: Core, fan: Fed, at_once: int, most: int) -> None:
    await complete(inner, 17, A, slot=1)
    await complete(inner, 18, slot=2)
    await complete(inner, 19, B, slot=3)
    small = fed(inner, most=most)
    await small.begin(fan.at)
    await small.feed(writes_at_once=at_once)
    assert await statuses(inner, A) == await statuses(inner, B) == WHOLE
    before = await rows(inner.database)
    await fan.feed()
    assert await rows(inner.database) == before, "a repeat leaves no second row"


async def test_a_fan_out_that_begins_in_the_middle_of_the_log_has_the_same_state(inner: Core, fan: Fed) -> None:
    await complete(inner, 17, A, custom_data=7)
    middle = (await logged(inner, "job:17"))[-1].position - 1
    await fan.begin(middle)
    await fan.feed()
    [last] = await notices(inner)
    assert (last["status"], last["custom_data"], len(last["files"])) == ("completed", 7, 2)


async def test_a_delivery_has_the_address_of_its_job(inner: Core, fan: Fed) -> None:
    await accept(inner, 17, callback(A, UUID(int=7)))
    await accept(inner, 18, A)
    for number in (17, 18):
        await start(inner, number, slot=number)
    await fan.feed()
    rows = await inner.database.rows("SELECT ordering_key, sealed_url FROM deliveries ORDER BY position")
    assert rows == [("job:17", UUID(int=7)), ("job:18", None)]


async def test_a_job_without_callbacks_has_no_notices_and_wakes_no_sender(inner: Core, fan: Fed) -> None:
    await complete(inner, 17)
    await fan.feed(writes_at_once=2)
    assert await rows(inner.database) == []
    assert fan.woken == []


async def test_a_deleted_callback_gets_nothing_and_a_disabled_one_failed_deliveries(inner: Core, fan: Fed) -> None:
    await do(inner, Callback.amend.on(A, {"disabled_at": NOON}))
    await do(inner, Callback.delete.on(B))
    await accept(inner, 17, A, B, UUID(int=999))
    await start(inner, 17)
    await fan.feed()
    assert [(row[0], row[5], row[6]) for row in await rows(inner.database)] == [(A, 2, DISABLED)]
    await do(inner, Callback.amend.on(A, {"disabled_at": None}))
    await start_task(inner, 17, 1)
    await fan.feed()
    assert [row[5] for row in await rows(inner.database)] == [2, 0]


async def test_a_notice_after_the_end_shows_the_whole_job(inner: Core, fan: Fed) -> None:
    """A completed job may still become broken when it is run again."""
    await complete(inner, 17, A)
    await fan.feed()
    await do(inner, Job.break_off.on(17, rerun_as=18))
    await fan.feed()
    assert await statuses(inner) == [*WHOLE, "broken"]
    assert (await notices(inner))[-1]["message"] == "it is repeated as job 18"


async def test_a_replayed_record_gives_the_same_notification(inner: Core, fan: Fed) -> None:
    await complete(inner, 17, A)
    await fan.feed()
    everything = await rows(inner.database)
    late = next(record for record in await read(inner.database, 0) if record.topic == "job.task_started")
    await inner.database.execute("DELETE FROM pending_deliveries WHERE position = %s", (late.position,))
    async with inner.database.connection() as listener:
        await listener.execute(f"LISTEN {CHANNEL}".encode())
        await fan.take([late])
        assert [notify.payload async for notify in listener.notifies(timeout=60, stop_after=1)] == [str(A)]
        await listener.execute("UNLISTEN *")
    assert await rows(inner.database) == everything


async def test_an_unreadable_record_is_an_error_and_writes_nothing(inner: Core, fan: Fed) -> None:
    await accept(inner, 17, A)
    await start(inner, 17)
    records = await read(inner.database, fan.at)
    spoilt = [records[0], *(_spoilt(record) for record in records[1:])]
    with pytest.raises(ValueError, match="validation error"):
        await fan.take(spoilt)
    await fan.begin(fan.at)
    await fan.feed()
    assert await statuses(inner) == ["started"]


def _spoilt(record: Any) -> Any:
    return replace(record, state=b'{"timestamp":"2031-01-02T12:00:00Z"}')


async def test_a_publication_has_notices_of_every_change_in_the_order_of_the_log(inner: Core, fan: Fed) -> None:
    key, secret = UUID(int=301), SecretRef(reference=UUID(int=9), fingerprint="f")
    named = (
        NamedCallback(id=A, url="https://hooks.test/a", sealed_url=secret),
        NamedCallback(id=B, url="https://b.test/"),
    )
    text = PublicationText(title="Final", callbacks=named)
    configuration = SentConfiguration("{}", {}, {})
    destination = {"name": "Archive", "target": Target.S3, "configuration_json": configuration}
    await do(inner, RegisterRecord(DESTINATION, Destination, destination))
    await do(inner, scheduled(key, text))
    await do(inner, Publication.complete.on(key, 17, job_version=9, details={"etag": "x"}))
    await do(inner, Publication.show.on(key, True))
    await do(inner, Publication.withdraw.on(key, hard=False, running_job=None))
    await fan.feed(writes_at_once=2)
    states = [(entry["publicationStateString"], entry["published"]) for entry in await notices(inner)]
    assert states == [("Processing", False), ("Completed", False), ("Completed", True)]
    assert await notices(inner, A) == await notices(inner, B)
    matches = [row for row in await rows(inner.database) if row[0] == A]
    assert {(row[2], row[3]) for row in matches} == {(f"publication:{key}", shard_of(A))}
    sealed = await inner.database.rows("SELECT DISTINCT sealed_url FROM pending_deliveries WHERE webhook = %s", (A,))
    assert sealed == [(secret.reference,)]
    assert [row[1] for row in matches] == sorted(row[1] for row in matches)
