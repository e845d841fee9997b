"""VOD publications over HTTP, behind both APIs: the response and the appended events. Targets are twins in memory, and the job of
an upload ends as the test says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers
from domain.job.outcome import JobOutcome, OutcomeKind
from domain.job.owners import OwnersOfRooms
from domain.kernel.ports import Invocation
from domain.publication.handlers import PublicationHandlers, PublicationJobOwners, command_of
from projections.event.queries import EventQueries
from projections.job.queue import JobNumberSequence
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.publication import queries
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault, new_signing_secret
from tests.api.asking import UNKNOWN, add, assert_problem, fields_of, last, topics
from tests.api.media.publishing import add_destination
from tests.api.media.test_vod import put_file
from tests.domain.asset.memory_assets import AssetWorkflows
from tests.support.clock import HandClock
from tests.support.services import container, services
from tests.support.targets.memory import MemoryTarget
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient
from workers.ports.targets import TargetFailed, Targets
from workers.publication.contents import TargetContents

VOD, MEDIA = "/api/vodpublications", "/api/media/vodpublication"
TRANSACTION = "0b1c2d3e-0000-4000-8000-000000000001"
TEXT = json.dumps({"title": "Final", "callbackUrls": ["https://hooks.test/a?k=marked"], "token": "marked"})


@pytest.fixture
def target() -> MemoryTarget:
    return MemoryTarget()


@pytest.fixture
def services_by_type(
    inner: Core, database_url: str, outbound: GuardedClient, media_root: Any, target: MemoryTarget, clock: HandClock
) -> dict[Any, Any]:
    """With a workflow for uploads, which takes any parameters."""
    files = MediaDirectory(media_root)
    existing = services(inner, outbound=outbound, files=files, given={Targets: target})
    database, executor, records, vault = existing[Database], existing[CommandExecutor], existing[RecordQueries], existing[Vault]
    callbacks = JobCallbacks(vault, EventQueries(database), records, clock=clock, new_signing_secret=new_signing_secret)
    jobs = JobHandlers(
        executor,
        existing[Streams].load,
        numbers=JobNumberSequence(database),
        workflows=AssetWorkflows(),
        vault=vault,
        callbacks=callbacks,
        owners=OwnersOfRooms(PublicationJobOwners()),
        clock=clock,
    )
    handlers = container(inner, given={JobHandlers: jobs, TargetContents: existing[TargetContents]}).get(PublicationHandlers)
    return {**existing, PublicationHandlers: handlers}


async def create(http: httpx.AsyncClient, *destinations: str, content: str = "film", text: str = TEXT) -> list[dict[str, Any]]:
    body = [{"contentId": content, "destinationId": destination, "publicationJson": text} for destination in destinations]
    answer = await http.post(f"{VOD}/", json={"publications": body}, headers={"X-Transaction-ID": TRANSACTION})
    assert answer.status_code == 200, answer.text
    made: list[dict[str, Any]] = answer.json()
    return made


async def ended(inner: Core, key: str, kind: OutcomeKind = OutcomeKind.COMPLETED, **more: Any) -> None:
    """The job of the publication ends."""
    job = await job_of(inner, key)
    outcome = JobOutcome(kind=kind, job=job, version=9, **more)
    await inner.executor.execute(command_of(key, outcome), invocation=Invocation.by("system"))


async def job_of(inner: Core, key: str) -> int:
    row = await inner.database.row("SELECT job FROM publication_view WHERE id = %s", (key,))
    assert row is not None
    return int(row[0])


async def shown(http: httpx.AsyncClient, made: dict[str, Any], **query: Any) -> dict[str, Any]:
    answer = await http.get(f"{VOD}/{made['id']}", params={"destinationId": made["destinationId"], **query})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


async def test_a_publication_is_created_and_followed_to_its_end(http: httpx.AsyncClient, inner: Core) -> None:
    destination = await add_destination(http, active=True)
    (made,) = await create(http, destination)
    callback = made["callbacks"][0]
    assert made == {
        "id": made["id"],
        "target": 5,
        "destinationId": destination,
        "contentId": "film",
        "dateCreated": "2031-01-02T12:00:00.000Z",
        "dateStarted": "2031-01-02T12:00:00.000Z",
        "dateCompleted": None,
        "details": None,
        "callbacks": [{"id": callback["id"], "publicationId": made["id"], "url": "https://hooks.test/a", "lastTriggered": None}],
        "destinationName": "Archive",
        "transactionId": TRANSACTION,
        "publicationState": 0,
        "publicationStateString": "Processing",
    }
    assert await shown(http, made) == made
    await ended(inner, made["id"], metadata={"details": {"etag": "x"}})
    done = await shown(http, made)
    assert (done["publicationStateString"], done["details"], done["dateCompleted"]) == (
        "Completed",
        {"etag": "x"},
        made["dateCreated"],
    )
    of_media = await http.get(f"{MEDIA}/{made['id']}", params={"destinationId": destination})
    missing = {"destinationName", "transactionId", "publicationState", "publicationStateString"}
    assert of_media.json() == {name: value for name, value in done.items() if name not in missing}
    assert await topics(inner, f"publication:{made['id']}") == [
        "publication.scheduled",
        "publication.processed",
        "publication.completed",
    ]
    logged = await inner.database.row("SELECT count(*) FROM stream_events WHERE convert_from(state, 'utf8') LIKE %s", ("%marked%",))
    assert logged == (0,)


async def test_to_an_inactive_destination_it_is_accepted_and_has_failed(http: httpx.AsyncClient, inner: Core) -> None:
    made = await create(http, await add_destination(http), await add_destination(http, target="TWITTER", destinationJson="{}"))
    assert [record["publicationStateString"] for record in made] == ["FailedDestination"] * 2
    assert [(record["dateStarted"], record["dateCompleted"]) for record in made] == [(None, None)] * 2


async def test_what_is_wrong_is_refused_and_nothing_is_created(http: httpx.AsyncClient, inner: Core) -> None:
    destination = await add_destination(http, active=True)
    before = await last(inner)

    async def refused(status: int, *publications: Any) -> list[str]:
        answer = await http.post(f"{VOD}/", json={"publications": list(publications)})
        assert_problem(answer, status)
        return sorted(fields_of(answer)) if status == 400 else []

    good = {"contentId": "film", "destinationId": destination, "publicationJson": "{}"}
    assert await refused(400) == ["publications"]
    assert await refused(400, good, {**good, "publicationJson": "[]"}) == ["publications[1].publicationJson"]
    assert await refused(400, {**good, "contentId": "a/b"}) == ["publications[0].contentId"]
    assert await refused(400, {**good, "contentId": ".."}) == ["publications[0].contentId"]
    await refused(404, good, {**good, "destinationId": UNKNOWN})
    assert await last(inner) == before


async def test_the_film_of_an_event_must_be_available(http: httpx.AsyncClient, inner: Core) -> None:
    event = (await add(http))["id"]
    destination = await add_destination(http, active=True)
    body = {"eventId": event, "publications": [{"destinationId": destination, "publicationJson": "{}"}]}
    assert_problem(await http.post(f"{MEDIA}/", json=body), 409)
    assert_problem(await http.post(f"{MEDIA}/", json={**body, "eventId": UNKNOWN}), 404)
    assert_problem(await http.post(f"{MEDIA}/", json={**body, "client": "studio"}), 400)


async def test_the_film_of_an_event_is_published(http: httpx.AsyncClient, media_root: Path) -> None:
    event = (await add(http, EventState=10))["id"]
    put_file(media_root, event)
    assert (await http.put(f"/api/vod/{event}/metadata")).status_code == 200
    publications = [{"destinationId": await add_destination(http, active=True), "publicationJson": "{}"}] * 2
    made = await http.post(f"{MEDIA}/", json={"eventId": event, "publications": publications})
    assert (made.status_code, [record["contentId"] for record in made.json()]) == (200, [event] * 2)


async def test_lists_filter_order_and_page(http: httpx.AsyncClient, inner: Core, clock: HandClock) -> None:
    s3, sftp = await add_destination(http, active=True), await add_destination(http, target="TWITTER", destinationJson="{}")
    (first,) = await create(http, s3, content="Film-A")
    clock.forward(hours=1)
    (two,) = await create(http, sftp, content="film-b")
    clock.forward(hours=1)
    (three,) = await create(http, s3, content="clip_c")
    await ended(inner, three["id"], metadata={"details": {}})
    names = {first["id"]: "1", two["id"]: "2", three["id"]: "3"}

    async def listed(path: str = f"{MEDIA}/", **query: Any) -> str:
        answer = await http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        entries = answer.json()
        return "".join(names[entry["id"]] for entry in (entries["results"] if isinstance(entries, dict) else entries))

    assert await listed() == await listed(f"{VOD}/") == "123"
    assert await listed(targetFilter="s3") == "13"
    assert await listed(contentIdFilter="FILM") == "12"
    assert await listed(contentIdFilter="_") == "3"
    assert await listed(orderBy="completed") == "3" + "".join(names[key] for key in sorted([first["id"], two["id"]]))
    assert await listed(**{"from": "2031-01-02T13:00:00Z", "to": "2031-01-02T13:00:00Z"}) == "2"
    assert await listed(**{"from": "2031-01-03", "to": "2031-01-02"}) == ""
    assert await listed(pageSize=2, pageNumber=2) == "3"
    page = (await http.get(f"{VOD}/", params={"pageSize": 2})).json()
    assert (page["pageSize"], page["totalCount"], len(page["results"])) == (2, 3, 2)
    for path in (f"{VOD}/transactionId/{TRANSACTION}", f"{MEDIA}/transactionId/{TRANSACTION}"):
        assert (await listed(path), await listed(path, contentIdFilter="b")) == ("123", "2")
        assert await listed(path.replace(TRANSACTION, UNKNOWN)) == ""
    for bad in ({"orderBy": "Bogus"}, {"targetFilter": "9"}, {"pageSize": "0"}, {"from": "x"}):
        assert_problem(await http.get(f"{VOD}/", params=bad), 400)


async def test_a_long_array_is_sent_whole_in_parts(http: httpx.AsyncClient, inner: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    destination = await add_destination(http, active=True)
    for number in range(5):
        await create(http, destination, content=f"film-{number}")
    whole = (await http.get(f"{MEDIA}/")).json()
    paged = [await http.get(f"{MEDIA}/", params={"pageSize": 2})]
    while "next" in paged[-1].links:
        paged.append(await http.get(paged[-1].links["next"]["url"]))
    assert [entry for page in paged for entry in page.json()] == whole
    assert (len(whole), len(paged)) == (5, 3)
    monkeypatch.setattr(queries, "_AT_ONCE", 2)
    for query in ({}, {"orderBy": "Completed"}, {"contentIdFilter": "film"}, {"contentIdFilter": "other"}):
        answer = await http.get(f"{MEDIA}/", params=query)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        result = {entry["id"] for entry in answer.json()}
        assert result == (set() if "other" in query.values() else {entry["id"] for entry in whole})
    assert (await http.get(f"{MEDIA}/")).json() == whole


@pytest.mark.parametrize("sent", ["mine-1", "5/7 of day 3", "%2F?#", "ABCDEF01-0000-4000-8000-000000000009", "x" * 128, None])
async def test_publications_are_found_by_the_transaction_id_as_it_was_sent(http: httpx.AsyncClient, sent: str | None) -> None:
    destination = await add_destination(http, active=True)
    body = {"publications": [{"contentId": "film", "destinationId": destination, "publicationJson": TEXT}] * 2}
    await create(http, destination)
    answer = await http.post(f"{VOD}/", json=body, headers={} if sent is None else {"X-Transaction-ID": sent})
    echoed = answer.headers["x-transaction-id"]
    assert sent in (None, echoed)
    keys = {record["id"] for record in answer.json()}
    for path in (VOD, MEDIA):
        for transaction in (echoed, answer.json()[0]["transactionId"]):
            result = await http.get(f"{path}/transactionId/{quote(transaction, safe='')}")
            assert {record["id"] for record in result.json()} == keys, result.text
        assert (await http.get(f"{path}/transactionId/mine-2")).json() == []


async def test_by_content_the_newest_is_found(http: httpx.AsyncClient, clock: HandClock) -> None:
    destination = await add_destination(http, active=True)
    await create(http, destination)
    clock.forward(minutes=1)
    (newer,) = await create(http, destination)
    query = {"contentId": "film", "destinationId": destination}
    assert (await http.get(f"{VOD}/contentId/", params=query)).json()["id"] == newer["id"]
    assert (await http.get(f"{MEDIA}/content/film", params=query)).json()["id"] == newer["id"]
    assert_problem(await http.get(f"{VOD}/contentId/", params={**query, "destinationId": UNKNOWN}), 404)
    assert_problem(await http.get(f"{MEDIA}/content/other", params=query), 404)


async def test_a_publication_and_a_destination_that_do_not_belong_together_are_not_found(http: httpx.AsyncClient) -> None:
    (made,) = await create(http, await add_destination(http))
    other = await add_destination(http, "Other")
    pair = {"id": made["id"], "destinationId": other}
    assert_problem(await http.get(f"{VOD}/{made['id']}", params=pair), 404)
    assert_problem(await http.get(f"{MEDIA}/{made['id']}", params=pair), 404)
    assert_problem(await http.get(f"{VOD}/{made['id']}"), 400)
    assert_problem(await http.put(f"{VOD}/publish/", params=pair), 404)
    assert_problem(await http.put(f"{VOD}/{made['id']}", json={"destinationId": other, "publicationJson": "{}"}), 404)
    assert_problem(await http.delete(f"{VOD}/{made['id']}", params=pair), 404)


async def test_details_are_asked_of_the_target_and_null_where_it_does_not_answer(
    http: httpx.AsyncClient, inner: Core, target: MemoryTarget
) -> None:
    (made,) = await create(http, await add_destination(http, active=True))
    await ended(inner, made["id"], metadata={"details": {"etag": "x"}})
    target.more_details[made["id"]] = {"views": 7}
    assert (await shown(http, made, queryTarget="true"))["details"] == {"views": 7}
    assert (await http.get(f"{VOD}/", params={"queryTarget": "1"})).json()["results"][0]["details"] == {"views": 7}
    target.fault = TargetFailed("retry", "busy")
    assert (await shown(http, made, queryTarget="true"))["details"] is None
    assert (await shown(http, made))["details"] == {"etag": "x"}


async def test_publish_and_unpublish_by_query_or_body(http: httpx.AsyncClient, inner: Core, target: MemoryTarget) -> None:
    (made,) = await create(http, await add_destination(http, active=True))
    pair = {"id": made["id"], "destinationId": made["destinationId"]}
    early = (await http.put(f"{VOD}/publish/", params=pair)).json()
    assert early == {"description": "The publication is not completed.", "isSuccessful": False}
    await ended(inner, made["id"], metadata={"details": {}})
    assert (await http.put(f"{VOD}/publish/", params=pair)).json() == {"description": "Done.", "isSuccessful": True}
    target.fault = TargetFailed("publication", "not yours")
    assert (await http.put(f"{VOD}/unpublish/", json=pair)).json() == {"description": "not yours", "isSuccessful": False}
    assert_problem(await http.put(f"{VOD}/unpublish/", json={"id": made["id"]}), 400)
    assert (await topics(inner, f"publication:{made['id']}"))[-1] == "publication.published"


async def test_a_text_is_changed_and_goes_to_the_target(http: httpx.AsyncClient, inner: Core, target: MemoryTarget) -> None:
    (made,) = await create(http, await add_destination(http, active=True))
    await ended(inner, made["id"], metadata={"details": {}})
    body = {"destinationId": made["destinationId"], "publicationJson": '{"title": "Two"}'}
    changed = await http.put(f"{VOD}/{made['id']}", json=body)
    assert (changed.status_code, changed.json()["callbacks"], target.calls) == (200, [], ["update", "close"])
    target.fault = TargetFailed("publication", "no such category")
    failed = await http.put(f"{VOD}/{made['id']}", json={**body, "publicationJson": '{"title": "Three"}'})
    assert failed.json()["publicationStateString"] == "FailedPublication"


async def test_a_deleted_publication_is_gone_from_every_answer(http: httpx.AsyncClient, inner: Core, target: MemoryTarget) -> None:
    destination = await add_destination(http, active=True)
    first, second, third = await create(http, destination, destination, destination)
    for record in (first, second, third):
        await ended(inner, record["id"], metadata={"details": {}})
    gone = await http.delete(f"{VOD}/{first['id']}", params={"destinationId": destination})
    assert (gone.status_code, gone.json()["id"], gone.json()["destinationName"], target.calls) == (200, first["id"], "Archive", [])
    assert_problem(await http.get(f"{VOD}/{first['id']}", params={"destinationId": destination}), 404)
    target.fault = TargetFailed("retry", "busy")
    answer = await http.delete(f"{MEDIA}s/{second['id']}", params={"hardDelete": "true"})
    assert_problem(answer, 503)
    target.fault = None
    assert (await http.delete(f"{MEDIA}/{second['id']}", params={"hardDelete": "true"})).status_code == 200
    assert "delete" in target.calls
    assert (await http.delete(f"{VOD}/all/film")).json() == {"deletedCount": 1}
    assert (await http.get(f"{VOD}/")).json()["totalCount"] == 0


async def test_a_destination_takes_its_publications_along_unless_one_is_running(http: httpx.AsyncClient, inner: Core) -> None:
    destination = await add_destination(http, active=True)
    (made,) = await create(http, destination)
    refused = await http.delete(f"/api/media/destination/{destination}")
    assert_problem(refused, 409)
    assert made["id"] in refused.text
    await ended(inner, made["id"], metadata={"details": {}})
    assert (await http.delete(f"/api/media/destination/{destination}")).status_code == 200
    assert_problem(await http.get(f"{VOD}/{made['id']}", params={"destinationId": destination}), 404)
    assert (await http.get(f"{MEDIA}/")).json() == []


async def test_a_past_state_is_shown_as_it_was_then(http: httpx.AsyncClient, inner: Core) -> None:
    (made,) = await create(http, await add_destination(http, active=True))
    await ended(inner, made["id"], metadata={"details": {"etag": "x"}})
    past = (await http.get(f"/api/audit/publication/{made['id']}/state", params={"version": "2"})).json()
    assert past["state"] == made
    assert UUID(past["id"]) == UUID(made["id"])
