"""A job waits until its semaphore answers 2xx or 3xx, and its log says why. ADR 0021."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID

import pytest
from aiohttp import web

from domain.job.aggregate import Job
from domain.job.values import JobState, Semaphore
from domain.kernel.encryption import EncryptedSecret, SecretRef
from tests.projections.job.jobs_made import update
from tests.projections.log.helpers import rows
from tests.workers.job.scheduler.scheduling import Scheduling
from tests.workers.webhook.sender.sending import Got, Receiver, until
from workers.job.semaphores import NO_TASK, PLACES, PLACES_EACH


class Porter:
    """Answers with the status that was set last, by path."""

    def __init__(self, status: int = 503) -> None:
        self.status = status
        self.by_path: dict[str, int] = {}
        self.asked: Counter[str] = Counter()
        self.let_go = asyncio.Event()

    async def answer(self, got: Got) -> web.Response:
        self.asked[got.path] += 1
        if got.path.startswith("/hang"):
            await self.let_go.wait()
        return web.Response(status=self.by_path.get(got.path, self.status), headers={"location": "/elsewhere"})


def semaphore(receiver: Receiver, path: str = "/semaphore") -> Semaphore:
    return Semaphore(url=f"{receiver.url}{path}")


@pytest.mark.parametrize("status", [200, 204, 301, 302, 304, 399])
async def test_an_open_semaphore_queues_the_job(keeping: Scheduling, status: int) -> None:
    porter = Porter(status)
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        await keeping.accept(1, semaphore=semaphore(receiver))
        await keeping.queued(1)
        assert receiver.got[0].path == "/semaphore"
    assert porter.asked == {"/semaphore": 1}, "a redirect says that it is open, and is not followed"
    assert keeping.lines(1) == []
    assert keeping.times_queued() == {1: 1}


async def test_a_closed_semaphore_is_requested_again_and_logged_once(keeping: Scheduling) -> None:
    porter = Porter(503)
    await keeping.every(1)
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        where = semaphore(receiver)
        await keeping.accept(1, semaphore=where)
        await until(lambda: porter.asked["/semaphore"] >= 3)
        assert keeping.in_state(JobState.PENDING) == [1]
        porter.status = 404
        await until(lambda: len(keeping.lines(1)) == 2)
        porter.status = 200
        await keeping.queued(1)
    message = f"Waiting for the semaphore {where.url}: The answer was"
    assert keeping.lines(1) == [(NO_TASK, f"{message} 503."), (NO_TASK, f"{message} 404.")]
    assert keeping.times_queued() == {1: 1}


async def test_a_changed_interval_counts_at_once(keeping: Scheduling) -> None:
    porter = Porter()
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        await keeping.accept(1, semaphore=semaphore(receiver))
        await until(lambda: keeping.lines(1))
        await keeping.accept(2, semaphore=semaphore(receiver, "/other"), client="other")
        await until(lambda: keeping.lines(2))
        await keeping.every(1, client="other")
        await until(lambda: porter.asked["/other"] >= 3)
        assert porter.asked["/semaphore"] == 1
        await keeping.every(1)
        await until(lambda: porter.asked["/semaphore"] >= 2)


async def test_a_semaphore_is_not_requested_before_the_jobs_time(keeping: Scheduling) -> None:
    porter = Porter(200)
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        await keeping.accept(1, semaphore=semaphore(receiver, "/later"), within=2.0)
        await keeping.accept(2, semaphore=semaphore(receiver, "/much-later"), within=3600)
        await keeping.queued(1)
    assert porter.asked == {"/later": 1}
    assert keeping.early() == []
    assert keeping.in_state(JobState.SCHEDULED) == [2]


async def test_a_scheduled_job_with_a_closed_semaphore_stays_scheduled(keeping: Scheduling) -> None:
    porter = Porter()
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        await keeping.accept(1, semaphore=semaphore(receiver), within=0.001)
        await until(lambda: keeping.lines(1))
        assert keeping.in_state(JobState.SCHEDULED) == [1]


class TestChanges:
    async def test_a_new_semaphore_is_requested_at_once(self, keeping: Scheduling) -> None:
        porter = Porter()
        porter.by_path["/open"] = 200
        async with Receiver(porter.answer) as receiver, keeping.scheduler():
            await keeping.accept(1, semaphore=semaphore(receiver))
            await until(lambda: keeping.lines(1))
            await update(keeping.core, 1, semaphore=semaphore(receiver, "/open"))
            await keeping.queued(1)

    async def test_a_job_whose_semaphore_is_removed_is_queued(self, keeping: Scheduling) -> None:
        porter = Porter()
        async with Receiver(porter.answer) as receiver, keeping.scheduler():
            await keeping.accept(1, semaphore=semaphore(receiver), within=0.001)
            await until(lambda: keeping.lines(1))
            await update(keeping.core, 1, semaphore=None)
            await keeping.queued(1)

    async def test_a_job_changed_during_a_request_is_checked_again(self, keeping: Scheduling) -> None:
        porter = Porter(200)
        async with Receiver(porter.answer) as receiver, keeping.scheduler():
            await keeping.accept(1, semaphore=semaphore(receiver, "/hang"))
            await until(lambda: porter.asked["/hang"] == 1)
            porter.by_path["/shut"] = 503
            await update(keeping.core, 1, semaphore=semaphore(receiver, "/shut"))
            porter.let_go.set()
            await until(lambda: keeping.lines(1))
        assert keeping.times_queued() == {}
        assert keeping.in_state(JobState.PENDING) == [1]

    async def test_the_semaphore_of_a_job_that_does_not_wait_is_not_requested(self, keeping: Scheduling) -> None:
        porter = Porter()
        await keeping.every(1)
        async with Receiver(porter.answer) as receiver, keeping.scheduler():
            await keeping.accept(1, semaphore=semaphore(receiver))
            await keeping.accept(2, semaphore=semaphore(receiver, "/other"))
            await until(lambda: keeping.lines(1) and keeping.lines(2))
            await update(keeping.core, 1, queue_state=JobState.BROKEN)
            asked = porter.asked["/semaphore"]
            await until(lambda: porter.asked["/other"] >= 4)
            assert porter.asked["/semaphore"] <= asked + 1


class TestSchedules:
    async def test_with_an_inactive_schedule_no_semaphore_is_requested(self, keeping: Scheduling) -> None:
        porter = Porter(200)
        await keeping.switch(active=False)
        async with Receiver(porter.answer) as receiver, keeping.scheduler():
            await keeping.accept(1, semaphore=semaphore(receiver))
            await keeping.accept(2, semaphore=semaphore(receiver, "/other"), client="other")
            await keeping.queued(2)
            assert porter.asked == {"/other": 1}
            await keeping.switch(active=True)
            await keeping.queued(1, 2)

    async def test_a_schedule_switched_off_during_a_request_keeps_the_job(self, keeping: Scheduling) -> None:
        porter = Porter(200)
        async with Receiver(porter.answer) as receiver, keeping.scheduler():
            await keeping.accept(1, semaphore=semaphore(receiver, "/hang"))
            await until(lambda: porter.asked["/hang"] == 1)
            await keeping.switch(active=False)
            porter.let_go.set()
            await keeping.accept(2, semaphore=semaphore(receiver, "/other"), client="other")
            await keeping.queued(2)
            assert keeping.in_state(JobState.PENDING) == [1]
            await keeping.switch(active=True)
            await keeping.queued(1, 2)


async def test_hanging_semaphores_of_some_clients_do_not_delay_others(keeping: Scheduling) -> None:
    """Each of them has one place, so five clients with four jobs each are far from all places."""
    porter = Porter(200)
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        for number in range(1, 21):
            await keeping.accept(number, semaphore=semaphore(receiver, f"/hang/{number}"), client=f"slow {number % 5}")
        await until(lambda: len(porter.asked) == 5)
        await keeping.accept(90, semaphore=semaphore(receiver, "/quick"), client="quick")
        await keeping.accept(91, within=0.001, client="slow 1")
        await keeping.queued(90, 91)
        assert len(porter.asked) == 5 + 1
        porter.let_go.set()
        await keeping.queued(90, 91, *range(1, 21))


async def test_a_client_whose_semaphores_answer_quickly_has_several_places(keeping: Scheduling) -> None:
    porter = Porter(200)
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        await keeping.accept(1, semaphore=semaphore(receiver))
        await keeping.queued(1)
        for number in range(2, PLACES + 2):
            await keeping.accept(number, semaphore=semaphore(receiver, f"/hang/{number}"))
        await until(lambda: len(porter.asked) == 1 + PLACES_EACH)
        await keeping.accept(90, semaphore=semaphore(receiver, "/quick"), client="quick")
        await keeping.queued(1, 90)
        assert len(porter.asked) == 1 + PLACES_EACH + 1
        porter.let_go.set()
        await keeping.queued(1, 90, *range(2, PLACES + 2))
    assert receiver.most <= PLACES


async def test_the_scheduler_stops_during_a_request_and_the_next_one_repeats_it(keeping: Scheduling) -> None:
    porter = Porter(200)
    async with Receiver(porter.answer) as receiver:
        await keeping.accept(1, semaphore=semaphore(receiver, "/hang"))
        async with keeping.scheduler():
            await until(lambda: porter.asked["/hang"] == 1)
        assert keeping.times_queued() == {}
        porter.let_go.set()
        async with keeping.scheduler():
            await keeping.queued(1)
    assert porter.asked == {"/hang": 2}


class TestOutbound:
    async def test_a_private_address_is_refused_and_says_so(self, keeping: Scheduling) -> None:
        porter = Porter(200)
        async with Receiver(porter.answer) as receiver, keeping.scheduler(allow=()):
            await keeping.accept(1, semaphore=semaphore(receiver))
            await until(lambda: keeping.lines(1))
            assert keeping.in_state(JobState.PENDING) == [1]
            assert receiver.got == []
        [(_, message)] = keeping.lines(1)
        assert message.startswith("Waiting for the semaphore http://127.0.0.1:")

    async def test_a_semaphore_that_refuses_connections_is_closed(self, keeping: Scheduling) -> None:
        await keeping.every(1)
        porter = Porter(200)
        async with Receiver(porter.answer) as receiver:
            where = semaphore(receiver)
        async with keeping.scheduler():
            await keeping.accept(1, semaphore=where)
            await until(lambda: keeping.lines(1))
            assert keeping.in_state(JobState.PENDING) == [1]
            await update(keeping.core, 1, semaphore=None)
            await keeping.queued(1)


class TestSecrets:
    def sealed(self, keeping: Scheduling, url: str) -> EncryptedSecret:
        return keeping.vault.encrypt(url, owner=Job.stream(1))

    async def test_the_whole_url_is_requested_and_its_shown_part_is_logged(self, keeping: Scheduling) -> None:
        porter = Porter()
        await keeping.every(1)
        async with Receiver(porter.answer) as receiver, keeping.scheduler():
            box = self.sealed(keeping, f"{receiver.url}/semaphore?token=hush-hush")
            await keeping.accept(1, semaphore=Semaphore(url=f"{receiver.url}/semaphore", sealed_url=box.ref), sealed=(box,))
            await until(lambda: keeping.lines(1))
            assert receiver.got[0].query == "token=hush-hush"
            porter.status = 200
            await keeping.queued(1)
        assert "hush" not in str(keeping.lines(1))

    async def test_a_url_that_cannot_be_decrypted_keeps_the_semaphore_closed(self, keeping: Scheduling) -> None:
        async with keeping.scheduler():
            lost = SecretRef(reference=UUID(int=5), fingerprint="00")
            await keeping.accept(1, semaphore=Semaphore(url="https://semaphore.test/", sealed_url=lost))
            await until(lambda: keeping.lines(1))
        message = "The address cannot be opened with the present master key."
        assert keeping.lines(1) == [(NO_TASK, f"Waiting for the semaphore https://semaphore.test/: {message}")]


async def test_a_fault_of_one_semaphore_stops_no_other(keeping: Scheduling) -> None:
    """A row that no release of ours wrote."""
    porter = Porter(200)
    async with Receiver(porter.answer) as receiver, keeping.scheduler():
        await keeping.accept(1, semaphore=Semaphore(url="not an address at all"))
        await keeping.accept(2, semaphore=semaphore(receiver))
        await keeping.queued(2)
        assert rows(keeping.url, "SELECT count(*) FROM job_view WHERE state = 3") == [(1,)]
