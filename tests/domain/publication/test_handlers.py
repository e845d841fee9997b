"""Use cases of publications over in-memory twins."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from domain.destination.targets import Target
from domain.event.commands import AddOrUpdateEvent
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers, NewJob
from domain.job.owners import OwnersOfRooms
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.errors import InUse, LinkBroken, Malformed, NotFound, PreconditionFailed, Refused, Unavailable
from domain.kernel.ports import Invocation, Outcome
from domain.publication.aggregate import Publication
from domain.publication.handlers import MOST_DELETED, NewPublication, PublicationHandlers, PublicationJobOwners
from domain.publication.ports import TargetAnswer, TargetCall
from domain.publication.values import MOST_AT_ONCE, PublicationState
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.destination import Destination
from domain.record.record import RegisterRecord
from tests.domain.asset.memory_assets import AssetWorkflows, Numbers
from tests.domain.memory import Memory
from tests.domain.publication.memory_publications import MemoryContents, ports_of

TRANSACTION = "0b1c2d3e-0000-4000-8000-000000000001"
ME = Invocation.by("studio", correlation_id=TRANSACTION)
STALE = Invocation(ME.cause, if_match=frozenset({7}))
EVENT, ACTIVE, INACTIVE, LIVE = UUID(int=1), UUID(int=11), UUID(int=12), UUID(int=13)


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    await memory.given(AddOrUpdateEvent(EVENT, {"title": "Final"}))
    for key, active, target in ((ACTIVE, True, Target.S3), (INACTIVE, False, Target.S3), (LIVE, True, Target.CUSTOM)):
        values = {"name": "Archive", "target": target, "configuration_json": "{}"}
        await memory.executor.execute(_registered(key, values), invocation=ME)
        if active:
            await memory.given(Destination.amend.on(key, {"active": True}))
    return memory


def _registered(key: UUID, values: dict[str, Any]) -> RegisterRecord:
    return RegisterRecord(key, Destination, {**values, "configuration_json": SentConfiguration("{}", {}, {})})


@pytest.fixture
def contents() -> MemoryContents:
    return MemoryContents()


@pytest.fixture
def handlers(memory: Memory, contents: MemoryContents) -> PublicationHandlers:
    async def load(stream: str) -> AggregateRoot | None:
        return memory.log.load(stream)

    callbacks = JobCallbacks(
        memory.vault, memory.events, memory.records, clock=lambda: memory.now, new_signing_secret=lambda: "whsec_1"
    )
    jobs = JobHandlers(
        memory.executor,
        load,
        numbers=Numbers(),
        workflows=AssetWorkflows(),
        vault=memory.vault,
        callbacks=callbacks,
        owners=OwnersOfRooms(PublicationJobOwners()),
        clock=lambda: memory.now,
    )
    return PublicationHandlers(ports_of(memory, contents), jobs=jobs)


def wanted(*destinations: UUID, **text: Any) -> list[NewPublication]:
    return [NewPublication("film", destination, json.dumps({"title": "Final", **text})) for destination in destinations]


def made(outcome: Outcome[Publication]) -> list[Publication]:
    return [outcome.aggregates[place] for place in outcome.result["places"]]


async def completed(memory: Memory, publication: Publication) -> None:
    job = publication.job
    assert job is not None
    await memory.given(Publication.complete.on(UUID(publication.key), job, job_version=9, details={"etag": "x"}))


async def test_several_are_one_append_with_their_jobs_and_share_a_transaction(
    memory: Memory, handlers: PublicationHandlers
) -> None:
    before = len(memory.topics)
    created, two = made(await handlers.create(wanted(ACTIVE, ACTIVE), invocation=ME))
    assert (created.transaction_id, two.transaction_id) == (UUID(TRANSACTION), UUID(TRANSACTION))
    assert (created.state, created.job, two.job, created.text.title) == (PublicationState.Processing, 17, 18, "Final")
    assert memory.topics[before:] == ["job.accepted", "publication.scheduled", "publication.processed"] * 2
    job: Any = memory.log.load("job:17")
    expected = {"content_id": "film", "publication": created.key}
    assert (job.submission.parameters, job.submission.owner, job.submission.client) == (expected, created.id, "studio")


async def test_to_a_destination_that_cannot_take_it_it_has_failed_at_once(handlers: PublicationHandlers) -> None:
    inactive, live = made(await handlers.create(wanted(INACTIVE, LIVE), invocation=ME))
    assert (inactive.state, inactive.job) == (PublicationState.FailedDestination, None)
    assert (live.state, live.job) == (PublicationState.FailedPublication, None)


async def test_one_that_is_wrong_stops_all(memory: Memory, handlers: PublicationHandlers) -> None:
    before = len(memory.topics)
    with pytest.raises(NotFound):
        await handlers.create(wanted(ACTIVE, UUID(int=99)), invocation=ME)
    for bad, field in (
        ([NewPublication("../x", ACTIVE, "{}")], "publications[0].contentId"),
        ([NewPublication("a/b", ACTIVE, "{}")], "publications[0].contentId"),
        ([*wanted(ACTIVE), NewPublication("a", ACTIVE, "[]")], "publications[1].publicationJson"),
        (wanted(ACTIVE, callbackUrls="x"), "publications[0].publicationJson.callbackUrls"),
        (wanted(ACTIVE, callbackUrls=["ftp://x"]), "publications[0].publicationJson.callbackUrls[0]"),
        (wanted(ACTIVE, title=["a"]), "publications[0].publicationJson.title"),
        ([], "publications"),
        (wanted(*[ACTIVE] * 101), "publications"),
    ):
        with pytest.raises(Malformed) as refused:
            await handlers.create(bad, invocation=ME)
        assert [error.field for error in refused.value.errors] == [field]
    assert len(memory.topics) == before


async def test_secrets_of_the_text_and_of_addresses_are_in_the_vault_only(memory: Memory, handlers: PublicationHandlers) -> None:
    text = {"callbackUrls": ["https://u:marked@h.test/a?k=marked", "https://h.test/b"], "privacy": "x", "token": "marked"}
    (created,) = made(await handlers.create(wanted(ACTIVE, **text), invocation=ME))
    assert json.loads(created.text.options_json) == {"privacy": "x", "token": None}
    assert [callback.url for callback in created.text.callbacks] == ["https://h.test/a", "https://h.test/b"]
    assert "marked" not in str([entry.event for entry in memory.log.entries])
    plain = {await memory.vault.read(key, owner=created.id) for key in created.secrets()}
    assert plain == {"marked", "https://u:marked@h.test/a?k=marked"}


async def test_publications_of_one_request_may_name_the_same_callback(memory: Memory, handlers: PublicationHandlers) -> None:
    both = made(await handlers.create(wanted(ACTIVE, ACTIVE, callbackUrls=["https://h.test/a"]), invocation=ME))
    assert [created.text.callbacks[0].url for created in both] == ["https://h.test/a"] * 2
    assert memory.topics.count("callback.registered") == 1


async def test_a_film_of_an_event_must_be_available(memory: Memory, handlers: PublicationHandlers) -> None:
    with pytest.raises(Refused):
        await handlers.publish_event(EVENT, wanted(ACTIVE), invocation=ME)
    with pytest.raises(NotFound):
        await handlers.publish_event(UUID(int=99), wanted(ACTIVE), invocation=ME)


async def test_bad_texts_are_told_before_what_is_not_there(handlers: PublicationHandlers) -> None:
    nowhere, address = UUID(int=99), '{"callbackUrls": ["ftp://x"]}'
    for write in (
        handlers.publish_event(nowhere, [NewPublication("", ACTIVE, "[]")], invocation=ME),
        handlers.publish_event(EVENT, wanted(ACTIVE, callbackUrls=["ftp://x"]), invocation=ME),
        handlers.create(wanted(nowhere, callbackUrls=["ftp://x"]), invocation=ME),
        handlers.amend(nowhere, ACTIVE, text=address, invocation=ME),
    ):
        with pytest.raises(Malformed):
            await write


async def test_a_destination_with_a_running_publication_cannot_be_deleted(memory: Memory, handlers: PublicationHandlers) -> None:
    (created,) = made(await handlers.create(wanted(ACTIVE), invocation=ME))
    with pytest.raises((InUse, LinkBroken)):
        await memory.executor.execute(Destination.delete.on(ACTIVE), invocation=ME)
    await completed(memory, created)
    await memory.executor.execute(Destination.delete.on(ACTIVE), invocation=ME)
    assert await handlers.withdraw_of_destination(ACTIVE, invocation=ME) == 1
    assert await handlers.withdraw_of_destination(ACTIVE, invocation=ME) == 0


async def test_a_soft_deletion_breaks_off_the_upload_and_asks_nobody(
    memory: Memory, handlers: PublicationHandlers, contents: MemoryContents
) -> None:
    (created,) = made(await handlers.create(wanted(ACTIVE), invocation=ME))
    gone = (await handlers.delete(UUID(created.key), ACTIVE, hard=False, invocation=ME)).aggregate
    assert (gone.withdrawn, gone.target_left, contents.asked) == (True, False, [])
    job: Any = memory.log.load("job:17")
    assert job.ended


async def test_a_hard_deletion_removes_what_is_at_the_target_or_changes_nothing(
    memory: Memory, handlers: PublicationHandlers, contents: MemoryContents
) -> None:
    (created,) = made(await handlers.create(wanted(ACTIVE), invocation=ME))
    await completed(memory, created)
    before = len(memory.topics)
    contents.answer = TargetAnswer(fault="The target did not answer.", passing=True)
    with pytest.raises(Unavailable):
        await handlers.delete(UUID(created.key), ACTIVE, hard=True, invocation=ME)
    contents.answer = TargetAnswer(able=False)
    with pytest.raises(Refused):
        await handlers.delete(UUID(created.key), ACTIVE, hard=True, invocation=ME)
    assert len(memory.topics) == before
    contents.answer = TargetAnswer()
    gone = (await handlers.delete(UUID(created.key), ACTIVE, hard=True, invocation=ME)).aggregate
    assert (gone.withdrawn, contents.asked[-1]) == (True, (TargetCall.DELETE, UUID(created.key)))
    with pytest.raises(NotFound):
        await handlers.delete(UUID(created.key), ACTIVE, hard=True, invocation=ME)


async def test_what_a_broken_upload_left_is_removed_later_and_until_it_is(
    memory: Memory, handlers: PublicationHandlers, contents: MemoryContents
) -> None:
    (created,) = made(await handlers.create(wanted(ACTIVE), invocation=ME))
    gone = (await handlers.delete(UUID(created.key), ACTIVE, hard=True, invocation=ME)).aggregate
    assert (gone.target_left, contents.asked) == (True, [])
    contents.answer = TargetAnswer(fault="The target did not answer.", passing=True)
    with pytest.raises(Unavailable):
        await handlers.clear_target(gone, invocation=ME)
    contents.answer = TargetAnswer()
    await handlers.clear_target(gone, invocation=ME)
    cleared: Any = memory.log.load(created.id)
    assert (cleared.target_left, cleared.secrets()) == (False, frozenset())


async def test_an_update_goes_to_the_target_of_a_completed_publication(
    memory: Memory, handlers: PublicationHandlers, contents: MemoryContents
) -> None:
    (created,) = made(await handlers.create(wanted(ACTIVE, token="a"), invocation=ME))
    key = UUID(created.key)
    record = (await handlers.amend(key, ACTIVE, text='{"title":"Two","token":null}', invocation=ME)).aggregate
    assert (record.text.title, record.text.secrets, contents.asked) == ("Two", created.text.secrets, [])
    await completed(memory, created)
    contents.answer = TargetAnswer(fault="busy", passing=True)
    with pytest.raises(Unavailable):
        await handlers.amend(key, ACTIVE, text='{"title":"Three"}', invocation=ME)
    contents.answer = TargetAnswer(fault="no such category")
    failed = (await handlers.amend(key, ACTIVE, text='{"title":"Three"}', invocation=ME)).aggregate
    assert (failed.text.title, failed.state, failed.reason) == ("Three", PublicationState.FailedPublication, "no such category")


async def test_with_a_stale_if_match_the_target_is_not_called(
    memory: Memory, handlers: PublicationHandlers, contents: MemoryContents
) -> None:
    (created,) = made(await handlers.create(wanted(ACTIVE), invocation=ME))
    await completed(memory, created)
    key, before = UUID(created.key), len(memory.topics)
    for write in (
        handlers.delete(key, ACTIVE, hard=True, invocation=STALE),
        handlers.amend(key, ACTIVE, text='{"title":"Two"}', invocation=STALE),
        handlers.show(key, ACTIVE, published=True, invocation=STALE),
    ):
        with pytest.raises(PreconditionFailed):
            await write
    assert (contents.asked, len(memory.topics)) == ([], before)
    root: Any = memory.log.load(created.id)
    fresh = Invocation(ME.cause, if_match=frozenset({root.version}))
    gone = (await handlers.delete(key, ACTIVE, hard=True, invocation=fresh)).aggregate
    assert (gone.withdrawn, contents.asked) == (True, [(TargetCall.DELETE, key)])


async def test_showing_is_for_completed_ones_and_targets_that_can(
    memory: Memory, handlers: PublicationHandlers, contents: MemoryContents
) -> None:
    (created,) = made(await handlers.create(wanted(ACTIVE), invocation=ME))

    async def fault() -> Any:
        return (await handlers.show(UUID(created.key), ACTIVE, published=True, invocation=ME)).result["fault"]

    assert (await fault(), contents.asked) == ("The publication is not completed.", [])
    await completed(memory, created)
    contents.answer = TargetAnswer(able=False)
    assert await fault() == "A destination of the target S3 cannot publish."
    contents.answer = TargetAnswer(fault="forbidden")
    assert await fault() == "forbidden"
    contents.answer = TargetAnswer()
    assert await fault() is None
    root: Any = memory.log.load(created.id)
    assert root.published
    with pytest.raises(NotFound):
        await handlers.show(UUID(created.key), INACTIVE, published=True, invocation=ME)


async def test_all_of_a_content_are_deleted_at_once(handlers: PublicationHandlers) -> None:
    await handlers.create(wanted(ACTIVE, ACTIVE, INACTIVE), invocation=ME)
    assert (await handlers.delete_of_content("film", invocation=ME)).result == {"deleted": 3}
    assert (await handlers.delete_of_content("film", invocation=ME)).result == {"deleted": 0}


async def test_any_number_of_a_content_is_deleted_in_parts(memory: Memory, handlers: PublicationHandlers) -> None:
    for _ in range(2 * MOST_DELETED // MOST_AT_ONCE):
        await handlers.create(wanted(*[ACTIVE] * MOST_AT_ONCE), invocation=ME)
    await handlers.create(wanted(ACTIVE), invocation=ME)
    assert (await handlers.delete_of_content("film", invocation=ME)).result == {"deleted": 2 * MOST_DELETED + 1}
    assert (await handlers.delete_of_content("film", invocation=ME)).result == {"deleted": 0}


async def test_a_client_submits_no_upload_itself(handlers: PublicationHandlers) -> None:
    with pytest.raises(Malformed):
        await handlers._jobs.submit_job(
            NewJob(client="studio", workflow="publication_upload", parameters={"content_id": "x"}), invocation=ME
        )
