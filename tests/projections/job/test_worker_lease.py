"""The lease of a worker, on the database's clock."""

from __future__ import annotations

from api.wiring.core import Core
from projections.job.worker_lease import WorkerLease
from tests.projections.log.helpers import rows

_SECONDS_LEFT = "SELECT worker, extract(epoch FROM until - clock_timestamp())::float8 FROM job_workers"


def a_worker(inner: Core, *, seconds: float = 30.0) -> WorkerLease:
    return WorkerLease(inner.database, host="here", seconds=seconds)


async def test_a_lease_is_begun_and_renewed(inner: Core) -> None:
    lease = a_worker(inner, seconds=20)
    assert not lease.is_valid
    assert not await lease.keep(), "it begins"
    name = lease.worker
    assert name.startswith("here ")
    lease.seconds = 60
    assert await lease.keep()
    assert (lease.worker, lease.is_valid) == (name, True)
    [(worker, remaining)] = await inner.database.rows(_SECONDS_LEFT)
    assert worker == name
    assert 50 < remaining <= 60
    assert 50 < lease.remaining <= 60


async def test_an_expired_lease_is_replaced_and_not_renewed(inner: Core, database_url: str) -> None:
    """A worker that was frozen: its runs may have been given to others, so none of them may become its own again."""
    lease = a_worker(inner)
    await lease.keep()
    before = lease.worker
    rows(database_url, "UPDATE job_workers SET until = clock_timestamp() - interval '1 second' RETURNING 1")
    assert not await lease.keep()
    assert lease.worker != before
    seconds: dict[str, float] = dict(await inner.database.rows(_SECONDS_LEFT))
    assert seconds[before] < 0 < seconds[lease.worker]


async def test_a_short_lease_runs_out_here_too(inner: Core) -> None:
    lease = a_worker(inner, seconds=0.0)
    await lease.keep()
    assert not lease.is_valid


async def test_an_ended_lease_is_gone(inner: Core) -> None:
    first, other = a_worker(inner), a_worker(inner)
    await first.keep()
    await other.keep()
    await first.end()
    assert not first.is_valid
    assert [worker for worker, _ in await inner.database.rows(_SECONDS_LEFT)] == [other.worker]


async def test_leases_of_workers_that_died_long_ago_are_deleted(inner: Core) -> None:
    for worker, past in (("a", "61 minutes"), ("b", "59 minutes")):
        await inner.database.execute("INSERT INTO job_workers VALUES (%s, clock_timestamp() - %s::interval)", (worker, past))
    await a_worker(inner).tidy()
    assert [worker for worker, _ in await inner.database.rows(_SECONDS_LEFT)] == ["b"]
