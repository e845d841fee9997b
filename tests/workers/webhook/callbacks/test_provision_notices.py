"""Notices of infrastructure: for each of its domain events, and from the event log to a receiver on a real socket."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic_core import from_json

from api.media.webhook.delivery_responses import Delivery
from api.wiring.core import Core
from domain.kernel.clock import iso
from domain.kernel.errors import Refused
from domain.kernel.named_callback import NamedCallback, callback_scope
from domain.provision import events
from domain.provision.aggregate import ProvisionInfo
from domain.provision.values import ENDED, ProvisionState
from domain.webhook.callback import callback_key
from projections.webhook.queries import DeliveryFilter, DeliveryQueries
from projections.webhook.unused_callbacks import FIRST, without_jobs
from tests.domain.provision.provisions_given import EVENT, STATES, an_info, failed, requested
from tests.domain.scenario import THEN, Fact, fact
from tests.support.clock import HandClock
from tests.workers.provision.memory_provisioner import MemoryProvisioner
from tests.workers.provision.provisioned import Provisioning, reconciling
from tests.workers.webhook.callbacks.consuming import consuming
from tests.workers.webhook.callbacks.test_end_to_end import signature, signing_key
from tests.workers.webhook.sender.sending import Receiver, Sending
from workers.webhook.callbacks.provision_notices import ENDS, payload

UP, PARTIAL, GONE = ProvisionState.PROVISIONED, ProvisionState.PROVISIONED_PARTIAL, ProvisionState.TERMINATED
OTHERS = {events.Opened, events.ProvisionRequested, events.TerminationRequested, events.Reset, events.ReleaseEnded}
RELEASED: tuple[Fact, ...] = (*STATES[UP], fact(events.Reset, run=2, release=True), fact(events.ReleaseEnded, run=2, left=False))


def test_every_domain_event_of_infrastructure_is_an_end_or_none() -> None:
    assert set(ENDS) | OTHERS == set(events.EVENTS)
    assert not set(ENDS) & OTHERS


@pytest.mark.parametrize("state", list(ProvisionState))
def test_there_is_a_notice_of_each_end(state: ProvisionState) -> None:
    scenario = an_info(*STATES[state])
    assert scenario.root is not None
    [*_, last] = scenario.history
    notice = payload(last, scenario.root)
    assert (notice is not None) == (state in ENDED)
    if notice is not None:
        up = [dict(resource) for resource in scenario.root.resources]
        assert notice == {
            "eventId": str(EVENT),
            "infrastructureKey": "k",
            "state": int(state),
            "stateString": state.name,
            "resources": up,
            "time": iso(THEN),
        }


def test_of_what_a_reset_leaves_behind_there_is_none() -> None:
    scenario = an_info(*RELEASED)
    assert scenario.root is not None
    assert [payload(event, scenario.root) for event in scenario.history[-2:]] == [None, None]


def test_a_callback_is_held_as_long_as_there_may_be_an_end() -> None:
    callback = NamedCallback(id=UUID(int=9), url="https://hooks.test/x")
    request = requested(callbacks=(callback,))
    for owned, since in ((True, ()), (True, STATES[UP][1:]), (True, STATES[ProvisionState.TERMINATING][1:]), (False, (failed(),))):
        root = an_info(request, *since).root
        assert root is not None
        scopes = {claim.scope for claim in root.claims()}
        assert ProvisionInfo.from_snapshot(stream=root.id, version=root.version, state=root.snapshot()).callbacks == (callback,)
        assert scopes == ({callback_scope(callback.id)} if owned else set())


def about(event: UUID) -> DeliveryFilter:
    return DeliveryFilter(event_id=event, limit=10)


def profile_of(urls: list[str]) -> dict[str, Any]:
    return {"callbackUrls": urls, "deployment": "static"}


async def test_ends_arrive_in_order_signed_and_at_the_whole_address(inner: Core, database_url: str, clock: HandClock) -> None:
    sending, provisioning, provisioner = Sending(inner, database_url, clock), Provisioning(inner), MemoryProvisioner()
    provisioner.broken.add("encoder-1")
    async with Receiver() as receiver:
        url = receiver.url.replace("//", "//u:p%40@") + "/hook?token=t0ps3cret"
        event = await provisioning.event(await provisioning.profile("origin-1", "encoder-1", **profile_of([url])))
        key = callback_key(client="studio", url=receiver.url + "/hook")
        async with consuming(inner), sending.sender(), reconciling(inner, provisioner):
            await provisioning.provision(event)
            await provisioning.until(event, PARTIAL)
            provisioner.broken.clear()
            await provisioning.provision(event)
            await provisioning.until(event, UP)
            await provisioning.terminate(event)
            await provisioning.until(event, GONE)
            await sending.finished(key, 3)
    bodies = [from_json(got.body) for got in receiver.got]
    assert [body["stateString"] for body in bodies] == [PARTIAL.name, UP.name, GONE.name]
    assert [[resource["name"] for resource in body["resources"]] for body in bodies] == [
        ["origin-1"],
        ["origin-1", "encoder-1"],
        [],
    ]
    assert {(body["eventId"], body["infrastructureKey"]) for body in bodies} == {(str(event), str(event))}
    signing = await signing_key(sending, str(key))
    assert all(got.headers["webhook-signature"] == signature(signing, got) for got in receiver.got)
    assert {(got.path, got.query, got.headers["authorization"]) for got in receiver.got} == {
        ("/hook", "token=t0ps3cret", "Basic " + base64.b64encode(b"u:p@").decode())
    }
    shown = [Delivery.of(result) for result in (await DeliveryQueries(inner.database).page(key, about(event))).results]
    assert [(entry.action, entry.event_id, entry.job_id) for entry in shown] == [
        (state.name, event, None) for state in (GONE, UP, PARTIAL)
    ]
    [(reported,)] = await inner.database.rows(
        "SELECT count(*) FROM events WHERE originator_id NOT LIKE 'infrastructure_profile:%%' AND state LIKE '%%t0ps3cret%%'::bytea"
    )
    assert reported == 0


async def test_a_callback_stays_while_there_is_infrastructure(inner: Core) -> None:
    provisioning = Provisioning(inner)
    event = await provisioning.event(await provisioning.profile("origin-1", **profile_of(["https://hooks.test/p"])))
    later = (inner.clock() + timedelta(days=400)).date()

    async def unused() -> list[UUID]:
        page = await without_jobs(inner.database, named_before=later, after=FIRST)
        return [] if page is None else list(page.callbacks)

    async with reconciling(inner, MemoryProvisioner()):
        await provisioning.provision(event)
        await provisioning.until(event, UP)
        assert await unused() == []
        await provisioning.terminate(event)
        await provisioning.until(event, GONE)
    assert await unused() == [callback_key(client="studio", url="https://hooks.test/p")]


async def test_the_same_secret_is_kept_by_the_next_request(inner: Core) -> None:
    provisioning = Provisioning(inner)
    url = "https://hooks.test/p?token=1"
    event = await provisioning.event(await provisioning.profile("origin-1", **profile_of([url])))
    async with reconciling(inner, MemoryProvisioner()):
        await provisioning.provision(event)
        first = (await provisioning.until(event, UP)).secrets()
        await provisioning.provision(event)
        assert (await provisioning.until(event, UP)).secrets() == first
    assert len(first) == 1
    [(stored,)] = await inner.database.rows("SELECT count(*) FROM vault WHERE owner LIKE 'provision:%%'")
    assert stored == 1


@pytest.mark.parametrize(
    ("urls", "message"),
    [
        (["ftp://hooks.test/"], "request.callbackUrls[0]"),
        (["https://hooks.test/a", ""], "request.callbackUrls[1]"),
        (["https://hooks.test/a?b", "https://hooks.test/a?c"], "request.callbackUrls[1]"),
        ([f"https://hooks.test/{number}" for number in range(17)], "request.callbackUrls[16]"),
    ],
)
async def test_addresses_are_checked_as_those_of_jobs(inner: Core, urls: list[str], message: str) -> None:
    provisioning = Provisioning(inner)
    event = await provisioning.event(await provisioning.profile("origin-1", **profile_of(urls)))
    with pytest.raises(Refused) as refused:
        await provisioning.provision(event)
    assert message in refused.value.rule
    [(appended,)] = await inner.database.rows(
        "SELECT count(*) FROM events WHERE topic LIKE 'provision.%%' OR topic LIKE 'callback.%%'"
    )
    assert appended == 0
