"""Use cases of jobs over in-memory twins."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.vod_jobs import VodJobOwners
from domain.job import events as facts
from domain.job.aggregate import Job
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobChanges, JobHandlers, NewJob
from domain.job.ports import CheckedJob
from domain.job.values import JobState, TaskPlan
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.errors import Malformed, NotFound, PreconditionFailed, Refused
from domain.kernel.idempotency import IdempotencyKey
from domain.kernel.ports import Invocation, Outcome
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.flow import Flow
from domain.record.record import RegisterRecord
from domain.webhook.callback import MOST_CALLBACKS, Callback, parse_callback_url
from tests.domain.channel.texts_given import FLOW
from tests.domain.memory import Memory
from tests.domain.scenario import NOW, fact

ME = Invocation.by("studio", correlation_id="transaction-1")
A, B = "https://hooks.test/a", "https://hooks.test/b"
EVENT, FLOW_ID = UUID(int=1), UUID(int=2)
SECRET = "s3cret-of-somebody"
URL = "https://origin.test/a.mp4"
LATER = NOW + timedelta(hours=1)
TASKS = (TaskPlan(id=1, name="fetch"), TaskPlan(id=2, name="store", after=(1,)))


@dataclass
class Fetching:
    """The twin of the workflows: one, whose parameters are an object with a content id."""

    withdrawn: bool = False

    def checked_job(self, name: str, parameters: object) -> CheckedJob:
        if name != "fetch" or self.withdrawn:
            raise Malformed.at("job.workflow", "must be one of fetch")
        if not isinstance(parameters, dict):
            raise Malformed.at("parameters", "must be an object")
        return CheckedJob(name, parameters.get("content_id", "film"), parameters, parameters.get("callback_urls", ()), TASKS)


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(17)

    async def draw(self) -> int:
        return next(self._numbers)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def workflows() -> Fetching:
    return Fetching()


@pytest.fixture
def callbacks(memory: Memory) -> JobCallbacks:
    secrets = (f"whsec_{number}" for number in count())
    return JobCallbacks(
        memory.vault, memory.events, memory.records, clock=lambda: memory.now, new_signing_secret=lambda: next(secrets)
    )


@pytest.fixture
def handlers(memory: Memory, workflows: Fetching, callbacks: JobCallbacks) -> JobHandlers:
    async def load(stream: str) -> AggregateRoot | None:
        return memory.log.load(stream)

    owners = VodJobOwners(memory.events, memory.records, clock=lambda: memory.now)
    return JobHandlers(
        memory.executor,
        load,
        numbers=Numbers(),
        workflows=workflows,
        vault=memory.vault,
        callbacks=callbacks,
        owners=owners,
        clock=lambda: memory.now,
    )


def new_job(*urls: str, content_id: object = "film", **fields: Any) -> NewJob:
    parameters = {"content_id": str(content_id), "url": URL, **({"callback_urls": list(urls)} if urls else {})}
    return NewJob(**{"client": "studio", "workflow": "fetch", "parameters": parameters, **fields})


async def webhooks(handlers: JobHandlers, *urls: str, client: str = "studio", content_id: object = "film") -> Sequence[UUID]:
    outcome = await handlers.submit_job(new_job(*urls, client=client, content_id=content_id), invocation=ME)
    return [callback.id for callback in outcome.aggregate.submission.callbacks]


def flow(*urls: str, second: tuple[str, ...] = ()) -> RegisterRecord:
    document = copy.deepcopy(FLOW)
    document["flows"].append(copy.deepcopy(document["flows"][0]))
    for configuration, listed in zip(document["flows"], (urls, second), strict=False):
        configuration["taskEngineSpecific"]["callbackUrls"] = list(listed)
    sent = SentConfiguration(json.dumps(document), {}, {})
    return RegisterRecord(FLOW_ID, Flow, {"name": "main", "configuration_json": sent})


class TestSubmit:
    async def test_a_job_is_accepted_with_what_the_client_sent(self, memory: Memory, handlers: JobHandlers) -> None:
        headers = {"user-agent": "curl", "authorization": f"Bearer {SECRET}"}
        outcome = await handlers.submit_job(new_job(priority=3, run_at=LATER, headers=headers), invocation=ME)
        job = outcome.aggregate
        assert (job.number, job.state, job.priority, job.run_at) == (17, JobState.SCHEDULED, 3, LATER)
        [(topic, event)] = [(entry.event.TOPIC, entry.event) for entry in memory.log.entries]
        assert topic == "job.accepted"
        assert isinstance(event, facts.Accepted)
        assert (event.headers, event.transaction_id) == ({"user-agent": "curl", "authorization": "****"}, "transaction-1")
        assert (event.submission.client, event.submission.tasks) == ("studio", TASKS)

    async def test_secrets_are_masked_in_events_and_encrypted_in_the_vault(self, memory: Memory, handlers: JobHandlers) -> None:
        parameters = {"content_id": "film", "url": f"{URL}?token={SECRET}", "custom_data": {"password": SECRET}}
        semaphore = f"https://u:{SECRET}@semaphore.test/open?key={SECRET}"
        job = (await handlers.submit_job(new_job(parameters=parameters, semaphore_url=semaphore), invocation=ME)).aggregate
        assert job.state is JobState.PENDING
        assert job.submission.parameters == {"content_id": "film", "url": URL, "custom_data": {"password": "****"}}
        assert job.semaphore is not None
        assert job.semaphore.url == "https://semaphore.test/open"
        assert SECRET not in repr(memory.log.entries)
        decrypted = [await memory.vault.read(reference, owner=job.id) for reference in job.secrets()]
        assert sorted(decrypted, key=str) == sorted([json.dumps(parameters, separators=(",", ":")), semaphore])

    async def test_without_secrets_the_vault_stays_empty(self, memory: Memory, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(semaphore_url=""), invocation=ME)
        assert memory.log.vault == {}

    @pytest.mark.parametrize(
        ("job", "field"),
        [
            (new_job(workflow="nothing"), "job.workflow"),
            (new_job(parameters=[]), "parameters"),
            (new_job(semaphore_url=f"ftp://{SECRET}"), "job.sempahore_url"),
            (new_job(A, f"ftp://{SECRET}"), "parameters.callback_urls[1]"),
        ],
    )
    async def test_bad_input_names_its_field_and_appends_nothing(
        self, memory: Memory, handlers: JobHandlers, job: NewJob, field: str
    ) -> None:
        with pytest.raises(Malformed) as refused:
            await handlers.submit_job(job, invocation=ME)
        assert [error.field for error in refused.value.errors] == [field]
        assert SECRET not in str(refused.value)
        assert memory.topics == []

    async def test_a_repeat_shows_the_number_of_the_first_request(self, memory: Memory, handlers: JobHandlers) -> None:
        key = IdempotencyKey("studio", "k", b"", 200, "")
        outcome = await handlers.submit_job(new_job(A), invocation=Invocation(Cause.by("studio"), idempotency=key))
        repeat: Outcome[Job] = memory.outcome("studio", "k")
        assert repeat.aggregate.number == outcome.aggregate.number == 17

    def test_its_repr_shows_no_secret(self) -> None:
        job = new_job(parameters={"a": SECRET}, semaphore_url=SECRET, headers={"a": SECRET})
        assert SECRET not in repr(job)


class TestCallbacks:
    async def test_each_url_is_one_callback_of_its_client(self, memory: Memory, handlers: JobHandlers) -> None:
        first = await webhooks(handlers, A, B, A)
        assert len(first) == 2
        assert memory.topics == ["callback.registered", "callback.registered", "job.accepted"]
        assert list(await webhooks(handlers, B, A)) == list(first)[::-1]
        assert not set(await webhooks(handlers, A, client="playout")) & set(first)
        assert memory.topics[3:] == ["job.accepted", "callback.registered", "job.accepted"]

    async def test_the_secret_part_of_a_url_belongs_to_the_job(self, memory: Memory, handlers: JobHandlers) -> None:
        urls = [A, f"{A}?token={SECRET}", f"{A}?token={SECRET}2", f"https://u:{SECRET}@hooks.test/a"]
        jobs = [(await handlers.submit_job(new_job(url), invocation=ME)).aggregate for url in urls]
        callbacks = [job.submission.callbacks[0] for job in jobs]
        assert {(named.id, named.url) for named in callbacks} == {(callbacks[0].id, A)}
        assert callbacks[0].sealed_url is None
        whole = [
            await memory.vault.read(named.sealed_url.reference, owner=job.id)
            for job, named in zip(jobs, callbacks, strict=True)
            if named.sealed_url is not None
        ]
        assert whole == urls[1:]
        assert SECRET not in repr(memory.log.entries)
        again = (await handlers.rerun_job(18, invocation=ME)).aggregates[0]
        [callback] = again.submission.callbacks
        assert callback.sealed_url not in (None, callbacks[1].sealed_url)
        assert await memory.vault.read(callback.sealed_url.reference, owner=again.id) == urls[1]

    async def test_one_job_has_one_address_for_each_callback(self, memory: Memory, handlers: JobHandlers) -> None:
        """Notices to two such addresses could not be distinguished."""
        with pytest.raises(Malformed, match=r"callback_urls\[1\]: differs") as refused:
            await webhooks(handlers, f"{A}?token={SECRET}", A, B)
        assert SECRET not in str(refused.value)
        await memory.given(flow(f"{A}?of=flow"), AddOrUpdateEvent(EVENT, {"flow_id": FLOW_ID}))
        outcome = await handlers.submit_job(new_job(A, content_id=EVENT), invocation=ME)
        assert [(callback.url, callback.sealed_url) for callback in outcome.aggregate.submission.callbacks] == [(A, None)]

    async def test_all_invalid_urls_are_named(self, callbacks: JobCallbacks) -> None:
        urls = [A, f"ftp://{SECRET}", f"https://u:{SECRET}@", B]
        with pytest.raises(Malformed) as refused:
            await callbacks.of("studio", [(str(index), url) for index, url in enumerate(urls)], content_id="film")
        assert [error.field for error in refused.value.errors] == ["1", "2"]
        assert SECRET not in str(refused.value)

    async def test_a_job_has_at_most_sixteen(self, memory: Memory, handlers: JobHandlers) -> None:
        many = [f"{A}/{number}" for number in range(MOST_CALLBACKS)]
        assert len(await webhooks(handlers, *many, A + "/0")) == MOST_CALLBACKS
        with pytest.raises(Malformed, match=r"callback_urls\[16\]: exceeds the limit of 16 callbacks"):
            await webhooks(handlers, *many, B)
        await memory.given(flow(B), AddOrUpdateEvent(EVENT, {"flow_id": FLOW_ID}))
        assert await webhooks(handlers, *many, content_id=EVENT) == await webhooks(handlers, *many)
        assert len(await webhooks(handlers, *many[1:], content_id=EVENT)) == MOST_CALLBACKS

    async def test_urls_of_the_flow_of_the_jobs_event_are_called_too(self, memory: Memory, handlers: JobHandlers) -> None:
        invalid = ("", "nonsense", "ftp://hooks.test", "https://" + "a" * 3000)
        await memory.given(flow(A, *invalid, second=(B, A)), AddOrUpdateEvent(EVENT, {"flow_id": FLOW_ID}))
        of_flow = await webhooks(handlers, content_id=EVENT)
        assert of_flow == await webhooks(handlers, A, B)
        assert list(await webhooks(handlers, B, content_id=str(EVENT).upper())) == list(of_flow)[::-1]
        await memory.given(MediaEvent.delete.on(EVENT))
        assert await webhooks(handlers, content_id=EVENT) == []

    @pytest.mark.parametrize("content_id", ["", "film", "\x00", "x" * 10_000, str(UUID(int=9)), str(EVENT)])
    async def test_without_an_event_with_a_flow_there_are_none(
        self, memory: Memory, handlers: JobHandlers, content_id: str
    ) -> None:
        await memory.given(AddOrUpdateEvent(EVENT, {}))
        assert await webhooks(handlers, content_id=content_id) == []

    async def test_a_callback_made_meanwhile_is_used(self, memory: Memory, handlers: JobHandlers, callbacks: JobCallbacks) -> None:
        [key] = await callbacks.of("studio", [("url", A)], content_id="film")
        [command] = await callbacks.named("studio", {key: A})
        memory.meanwhile(command)
        assert await webhooks(handlers, A) == [key]
        assert memory.topics == ["callback.registered", "job.accepted"]

    async def test_first_jobs_at_the_same_time_make_one_callback(self, memory: Memory, handlers: JobHandlers) -> None:
        keys = await asyncio.gather(*(webhooks(handlers, f"{A}?b={number}") for number in range(5)))
        assert keys == [keys[0]] * 5
        assert memory.topics.count("callback.registered") == 1
        assert len(memory.log.vault) == 1 + 2 * 5, "of each job its parameters and its address"

    async def test_a_callback_is_named_once_a_day(self, memory: Memory, handlers: JobHandlers) -> None:
        await webhooks(handlers, A)
        memory.now += timedelta(days=1)
        for _ in range(2):
            await webhooks(handlers, A)
        topics = ["callback.registered", "job.accepted", "callback.amended", "job.accepted", "job.accepted"]
        assert memory.topics == topics

    async def test_a_callback_that_is_removed_at_the_same_moment_is_made_again(self, memory: Memory, handlers: JobHandlers) -> None:
        [key] = await webhooks(handlers, A)
        memory.now += timedelta(days=31)
        memory.meanwhile(Callback.remove_unused.on(key, memory.now.date()))
        assert await webhooks(handlers, A) == [key]
        assert memory.topics[2:] == ["callback.deleted", "callback.restored", "job.accepted"]
        await memory.given(Callback.remove_unused.on(key, memory.now.date()))
        assert memory.topics == [], "it was named today"

    async def test_a_job_that_goes_on_after_a_long_time_has_its_callbacks_again(
        self, memory: Memory, handlers: JobHandlers
    ) -> None:
        [key] = await webhooks(handlers, f"{A}?token={SECRET}")
        await memory.given(Job.break_off.on(17))
        memory.now += timedelta(days=31)
        await memory.given(Callback.remove_unused.on(key, memory.now.date()))
        await handlers.update_job(17, JobChanges(state=JobState.PAUSED), invocation=ME)
        assert memory.topics == ["callback.restored", "job.paused"]
        assert memory.happened[0].facts["webhook_url"] == A


class TestUpdate:
    async def test_all_fields_change_together(self, memory: Memory, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(), invocation=ME)
        semaphore = parse_callback_url(f"https://semaphore.test/?key={SECRET}", field="url")
        changes = JobChanges(priority=8, run_at=LATER, semaphore=semaphore, state=JobState.PAUSED)
        job = (await handlers.update_job(17, changes, invocation=ME)).aggregate
        assert (job.priority, job.run_at, job.state) == (8, LATER, JobState.PAUSED)
        assert job.semaphore is not None
        assert job.semaphore.sealed_url is not None
        assert await memory.vault.read(job.semaphore.sealed_url.reference, owner=job.id) == semaphore.whole
        job = (await handlers.update_job(17, JobChanges(remove_semaphore=True), invocation=ME)).aggregate
        assert (job.semaphore, job.priority) == (None, 8)
        assert memory.log.vault == {}

    async def test_nothing_to_change_appends_nothing(self, memory: Memory, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(priority=8), invocation=ME)
        outcome = await handlers.update_job(17, JobChanges(priority=8), invocation=ME)
        assert (outcome.position, memory.topics) == (None, ["job.accepted"])

    async def test_a_refused_change_leaves_the_others_undone(self, memory: Memory, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(), invocation=ME)
        with pytest.raises(Refused, match="only a paused job can be queued"):
            await handlers.update_job(17, JobChanges(priority=8, state=JobState.QUEUED), invocation=ME)
        assert memory.topics == ["job.accepted"]


class TestRerun:
    async def test_the_old_job_is_broken_and_a_new_one_accepted(self, memory: Memory, handlers: JobHandlers) -> None:
        parameters = {"content_id": "film", "password": SECRET, "callback_urls": [A]}
        fields = {"parameters": parameters, "priority": 7, "run_at": LATER, "semaphore_url": "https://semaphore.test/"}
        old = (await handlers.submit_job(new_job(**fields), invocation=ME)).aggregate
        outcome = await handlers.rerun_job(17, invocation=Invocation.by("admin"), headers={"cookie": SECRET})
        new, broken = outcome.aggregates
        assert memory.topics == ["callback.registered", "job.accepted", "job.accepted", "job.broken"]
        assert memory.happened[-1] == fact(facts.Broken, rerun_as=18)
        assert (new.number, new.state, new.priority, new.run_at, new.semaphore) == (18, JobState.QUEUED, 7, None, None)
        assert (broken.number, broken.state) == (17, JobState.BROKEN)
        assert (new.submission.client, new.submission.callbacks) == ("studio", old.submission.callbacks)
        assert old.secrets() != new.secrets()
        opened = [await memory.vault.read(next(iter(job.secrets())), owner=job.id) for job in (old, new)]
        assert [json.loads(text or "") for text in opened] == [parameters, parameters]
        assert SECRET not in repr(memory.log.entries)

    async def test_a_rerun_can_be_rerun_and_an_old_job_twice(self, memory: Memory, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(), invocation=ME)
        for number in (17, 17, 19):
            await handlers.rerun_job(number, invocation=ME)
        accepted = [entry.event for entry in memory.log.entries if isinstance(entry.event, facts.Accepted)]
        assert [event.rerun_of for event in accepted] == [None, 17, 17, 19]
        assert memory.topics.count("job.broken") == 2

    async def test_a_job_that_ends_meanwhile_is_rerun_all_the_same(self, memory: Memory, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(), invocation=ME)
        await memory.given(
            Job.start.on(17, slot=1, low_slot=None, priority=5),
            *(
                command
                for task in (1, 2)
                for command in (Job.start_task.on(17, task, run=1, worker="w"), Job.complete_task.on(17, task, run=1))
            ),
        )
        memory.meanwhile(Job.break_off.on(17))
        outcome = await handlers.rerun_job(17, invocation=ME)
        assert (outcome.aggregates[0].number, outcome.aggregate.state) == (18, JobState.BROKEN)
        assert sorted(memory.topics) == ["job.accepted", "job.broken"]

    async def test_if_match_is_of_the_old_job(self, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(), invocation=ME)
        with pytest.raises(PreconditionFailed):
            await handlers.rerun_job(17, invocation=Invocation(Cause.by("studio"), if_match=frozenset({7})))
        await handlers.rerun_job(17, invocation=Invocation(Cause.by("studio"), if_match=frozenset({1})))

    async def test_an_unknown_job_is_not_found(self, memory: Memory, handlers: JobHandlers) -> None:
        with pytest.raises(NotFound):
            await handlers.rerun_job(99, invocation=ME)
        assert memory.topics == []

    async def test_parameters_are_checked_again(self, handlers: JobHandlers, workflows: Fetching) -> None:
        await handlers.submit_job(new_job(), invocation=ME)
        workflows.withdrawn = True
        with pytest.raises(Malformed, match=r"job\.workflow"):
            await handlers.rerun_job(17, invocation=ME)

    async def test_without_its_secrets_a_job_cannot_be_rerun(self, memory: Memory, handlers: JobHandlers) -> None:
        await handlers.submit_job(new_job(parameters={"password": SECRET}), invocation=ME)
        memory.log.vault.clear()
        with pytest.raises(Refused, match="no longer stored"):
            await handlers.rerun_job(17, invocation=ME)
