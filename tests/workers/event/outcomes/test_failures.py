"""Every failed state writes its reason to the log of the Event: all failed states that exist, once each, and without secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.asset.aggregate import Asset
from domain.asset.values import AssetState, AssetType
from domain.composition.aggregate import Composition
from domain.composition.values import CompositionKind, Playlist
from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent, ComposeEvent
from domain.event.values import EventState, Quality, QualityReason, QualityVerdict, VodJobEnd, VodWorkflow
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation, Plan
from domain.provision.aggregate import ProvisionInfo, provision_key
from domain.provision.commands import OpeningCommand
from domain.provision.values import Deployment, ProvisionPlan, ProvisionState, RunEnd
from domain.publication.aggregate import Publication
from domain.publication.values import PublicationKind, PublicationState, PublicationText
from domain.record.kinds.destination import Destination
from projections.log.reader import read
from projections.log_store.log_store import Logbook
from tests.projections.log.helpers import rows
from tests.support.feeding import configured, do, record
from workers.event.outcomes.failures import FailureNotes

EVENT: Final = UUID(int=1)
COMPOSITION: Final = UUID(int=3)
NOW: Final = datetime(2031, 1, 2, 12, tzinfo=UTC)
REASON: Final = "the source answered 404"
RESOURCE: Final = {"name": "origin", "type": "ORIGIN"}


async def event(inner: Core, state: EventState | None = None) -> None:
    await do(inner, AddOrUpdateEvent(EVENT, {}, state=state, new=True))


async def job_fails(inner: Core, workflow: VodWorkflow, *, state: EventState, end: VodJobEnd = VodJobEnd.FAILED) -> None:
    await event(inner, state)
    await do(inner, MediaEvent.start_vod_job.on(EVENT, 7, workflow))
    await do(inner, MediaEvent.end_vod_job.on(EVENT, 7, end, version=5, reason=REASON if end is VodJobEnd.FAILED else ""))


async def a_client_sets(inner: Core, state: EventState) -> None:
    await event(inner)
    await do(inner, AddOrUpdateEvent(EVENT, {}, state=state))


async def waits_to_be_composed(inner: Core) -> None:
    async def composed() -> Plan:
        compose = Composition.compose.on(
            COMPOSITION, event_id=EVENT, kind=CompositionKind.STANDARD, playlist=Playlist(), client="studio"
        )
        return Plan((ComposeEvent(EVENT, job=None), compose))

    await event(inner)
    await inner.executor.execute(composed, invocation=Invocation.by("studio"))


async def is_deleted_while_it_waits(inner: Core) -> None:
    async def deleted() -> Plan:
        return Plan((MediaEvent.delete.on(EVENT), Composition.give_up.on(COMPOSITION, REASON).as_planned(1)))

    await waits_to_be_composed(inner)
    await inner.executor.execute(deleted, invocation=Invocation.by("studio"))


async def asset_fails(inner: Core) -> None:
    key = UUID(int=4)
    await do(inner, Asset.request.on(key, event_id=EVENT, type=AssetType.IMAGE, name="Goal", path="1/goal.jpg", job=9))
    await do(inner, Asset.fail.on(key, 9, job_version=3, reason=REASON))


async def publication_fails(inner: Core, state: PublicationState, *, pushed: bool = False) -> None:
    key = UUID(int=5)
    scheduled = Publication.schedule.on(
        key,
        kind=PublicationKind.LIVE,
        content_id=str(EVENT),
        destination_id=UUID(int=6),
        target=Target.YOUTUBE,
        transaction_id=UUID(int=8),
        client="studio",
        text=PublicationText(),
    )
    await do(inner, scheduled)
    if pushed:
        await record(inner, Destination, 6, target=Target.YOUTUBE, **configured("Platform"))
        run = (await do(inner, Publication.start.on(key, {}))).run
        await do(inner, Publication.fail_push.on(key, run, state=state, reason=REASON))
    else:
        await do(inner, Publication.fail_start.on(key, state, REASON))


async def provision_ends(inner: Core, *steps: str, end: RunEnd) -> None:
    key = provision_key(EVENT)
    plan = ProvisionPlan(
        infrastructure_key="k", profile_id=UUID(int=2), deployment=Deployment.STATIC, template="", resources=(RESOURCE, OTHER)
    )
    request = ProvisionInfo.provision.on(key, plan, allow_updates=False, client="studio", moment=NOW).as_planned(0)
    opening = OpeningCommand(key=key, decision=request, event_id=EVENT, infrastructure_key="k", moment=NOW)
    root = await do(inner, opening)
    for step in steps:
        up = RunEnd(resources=(RESOURCE, OTHER))
        root = await do(inner, ProvisionInfo.end_run.on(key, root.run, up, moment=NOW))
        terminate, reset = ProvisionInfo.terminate.on(key, moment=NOW), ProvisionInfo.reset.on(key)
        root = await do(inner, terminate if step == "terminate" else reset)
    await do(inner, ProvisionInfo.end_run.on(key, root.run, end, moment=NOW))


async def film_is_withheld(inner: Core) -> None:
    reasons = (
        QualityReason(check="loudness", verdict=QualityVerdict.FAIL, message="Audio track 1 is too loud."),
        QualityReason(check="freeze", verdict=QualityVerdict.WARN, message="The picture stands still."),
    )
    await event(inner, EventState.VOD_PUBLIC)
    for keep, job in ((False, 6), (True, 7)):
        result = Quality(job=job, profile="ebu-r128", verdict=QualityVerdict.FAIL, keep_private=keep, reasons=reasons)
        await do(inner, MediaEvent.measure_quality.on(EVENT, result))


OTHER: Final = {"name": "packager", "type": "PACKAGER"}
CAPTURE = "the job 7 (vod_capture) has failed"
WALKS: Final[dict[Any, tuple[Callable[[Core], Awaitable[None]], str]]] = {
    EventState.VOD_ERROR: (
        lambda inner: job_fails(inner, VodWorkflow.CAPTURE, state=EventState.STOPPED),
        f"The Event is VOD_ERROR: {CAPTURE}: {REASON}",
    ),
    EventState.COMPOSE_ERROR: (
        lambda inner: job_fails(inner, VodWorkflow.COMPOSE, state=EventState.PRE_LIVE),
        f"The Event is COMPOSE_ERROR: the job 7 (compose) has failed: {REASON}",
    ),
    EventState.REMIX_ERROR: (
        lambda inner: a_client_sets(inner, EventState.REMIX_ERROR),
        "The Event is REMIX_ERROR: a client has set the state",
    ),
    "broken off": (
        lambda inner: job_fails(inner, VodWorkflow.CAPTURE, state=EventState.STOPPED, end=VodJobEnd.BROKEN),
        "The Event is VOD_ERROR: the job 7 (vod_capture) was broken off: it was broken off",
    ),
    "set by a client": (
        lambda inner: a_client_sets(inner, EventState.VOD_ERROR),
        "The Event is VOD_ERROR: a client has set the state",
    ),
    "capture of a film": (
        lambda inner: job_fails(inner, VodWorkflow.CAPTURE, state=EventState.VOD_PUBLIC),
        f"The job 7 (vod_capture) has failed: {REASON}",
    ),
    "quality": (
        film_is_withheld,
        "The film does not become public: it fails by ebu-r128: Audio track 1 is too loud.",
    ),
    "deleted while it waits": (is_deleted_while_it_waits, f"The Event is COMPOSE_ERROR: {REASON}"),
    AssetState.FAILED: (asset_fails, f"The asset {UUID(int=4)} (Goal) has failed: {REASON}"),
    **{
        state: (
            partial(publication_fails, state=state),
            f"The publication {UUID(int=5)} is {state.name}: {REASON}",
        )
        for state in PublicationState
        if "Failed" in state.name
    },
    "push": (
        lambda inner: publication_fails(inner, PublicationState.FailedPublication, pushed=True),
        f"The publication {UUID(int=5)} is FailedPublication: {REASON}",
    ),
    ProvisionState.PROVISIONING_FAILED: (
        lambda inner: provision_ends(inner, end=RunEnd(reason=REASON)),
        f"The infrastructure is PROVISIONING_FAILED: {REASON}",
    ),
    ProvisionState.PROVISIONED_PARTIAL: (
        lambda inner: provision_ends(inner, end=RunEnd(resources=(RESOURCE,), reason=REASON)),
        f"The infrastructure is PROVISIONED_PARTIAL: {REASON}",
    ),
    ProvisionState.TERMINATING_FAILED: (
        lambda inner: provision_ends(inner, "terminate", end=RunEnd(left=True, reason=REASON)),
        f"The infrastructure is TERMINATING_FAILED: {REASON}",
    ),
    "release": (
        lambda inner: provision_ends(inner, "reset", end=RunEnd(left=True, reason=REASON)),
        f"The infrastructure was not terminated after the reset: {REASON}",
    ),
}


def handler(inner: Core) -> FailureNotes:
    return FailureNotes(inner.streams, Logbook(inner.database, inner.clock, machine="here"), mapper=EventMapper(inner.catalogue))


async def fed(inner: Core, notes: FailureNotes) -> None:
    """Feed the whole log to the handler, as the consumer does."""
    records = [record for record in await read(inner.database, 0, limit=100_000) if record.topic in notes.topics]
    effects = await notes.prepare(records)
    if effects is not None:
        async with inner.database.connection() as connection, connection.transaction():
            await notes.write(connection, effects)


@pytest.mark.parametrize("walk", WALKS, ids=str)
async def test_a_failure_says_why_in_the_log_of_the_event(inner: Core, http: httpx.AsyncClient, walk: Any) -> None:
    fail, message = WALKS[walk]
    await fail(inner)
    await fed(inner, handler(inner))
    if not rows(inner.database.conninfo, "SELECT FROM event_view WHERE id = %s", EVENT):
        await do(inner, AddOrUpdateEvent(EVENT, {}, new=True))
    shown = (await http.get(f"/api/log/event/{EVENT}")).json()["results"]
    assert [(entry["message"], entry["logger"]) for entry in shown] == [(message, "medialedger")]


def test_every_failed_state_is_walked() -> None:
    states = [*EventState, *AssetState, *PublicationState, *ProvisionState]
    failed = {state for state in states if any(word in state.name.upper() for word in ("FAILED", "ERROR", "PARTIAL"))}
    assert failed <= WALKS.keys()


async def test_the_reason_of_a_failure_holds_no_secret(inner: Core, http: httpx.AsyncClient) -> None:
    await event(inner, EventState.STOPPED)
    await do(inner, MediaEvent.start_vod_job.on(EVENT, 7, VodWorkflow.CAPTURE))
    reason = "https://ada:marked-1@origin.test/a?token=marked-2 answered 403; apiKey=marked-3; AKIAIOSFODNN7EXAMPLE"
    await do(inner, MediaEvent.end_vod_job.on(EVENT, 7, VodJobEnd.FAILED, version=5, reason=reason))
    await fed(inner, handler(inner))
    text = (await http.get(f"/api/log/event/{EVENT}")).text
    assert "answered 403" in text
    assert not [secret for secret in ("marked-1", "marked-2", "marked-3") if secret in text]


async def test_what_goes_well_says_nothing(inner: Core) -> None:
    await event(inner, EventState.STOPPED)
    await do(inner, MediaEvent.start_vod_job.on(EVENT, 7, VodWorkflow.CAPTURE))
    await do(inner, MediaEvent.end_vod_job.on(EVENT, 7, VodJobEnd.COMPLETED, version=5))
    await waits_elsewhere(inner)
    await fed(inner, handler(inner))
    assert rows(inner.database.conninfo, "SELECT message FROM logbook") == []


async def waits_elsewhere(inner: Core) -> None:
    await do(inner, AddOrUpdateEvent(UUID(int=20), {}, state=EventState.LIVE_PUBLISHED, new=True))
    await do(inner, AddOrUpdateEvent(UUID(int=20), {}, state=EventState.STOPPED))
