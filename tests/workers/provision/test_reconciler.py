"""The reconciler: everything that the Events of a key want exists, and nothing else, with the provisioner in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.kernel.errors import Refused, Unavailable
from domain.provision.desired import Desired, Provided
from domain.provision.row import ProvisionRow
from domain.provision.values import Deployment, ProvisionState
from tests.support.clock import HandClock
from tests.support.engine import once
from tests.workers.provision.memory_provisioner import MemoryProvisioner
from tests.workers.provision.provisioned import Provisioning, reconciling
from workers.adapters.provisioners.static import StaticProvisioner
from workers.ports.provisioners import Halt, ProvisionProgress

State = ProvisionState


@pytest.fixture
def provisioning(inner: Core) -> Provisioning:
    return Provisioning(inner)


@pytest.fixture
def provisioner() -> MemoryProvisioner:
    return MemoryProvisioner()


async def begun(provisioner: MemoryProvisioner) -> None:
    async def ask() -> bool:
        return bool(provisioner.runs)

    await once(ask)


async def test_an_event_gets_what_its_profile_says_and_loses_it_again(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    event = await provisioning.event(await provisioning.profile("origin-1", "encoder-1"))
    async with reconciling(inner, provisioner):
        await provisioning.provision(event)
        info = await provisioning.until(event, State.PROVISIONED)
        assert [resource["ipAddress"] for resource in info.resources] == ["198.51.100.8", "198.51.100.9"]
        await provisioning.terminate(event)
        await provisioning.until(event, State.TERMINATED)
    assert provisioner.up == {str(event): {}}
    assert await provisioning.topics(event) == ["opened", "requested", "provisioned", "termination_requested", "terminated"]
    assert await provisioning.noted(event) == ["origin-1 is up", "encoder-1 is up"]


async def test_some_none_and_what_does_not_go(inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner) -> None:
    event = await provisioning.event(await provisioning.profile("origin-1", "encoder-1"))
    async with reconciling(inner, provisioner):
        provisioner.broken = {"origin-1", "encoder-1"}
        await provisioning.provision(event)
        failed = await provisioning.until(event, State.PROVISIONING_FAILED)
        assert (failed.exists, failed.reason) == (False, "origin-1, encoder-1 failed")
        provisioner.broken = {"encoder-1"}
        await provisioning.provision(event)
        assert (await provisioning.until(event, State.PROVISIONED_PARTIAL)).reason == "encoder-1 failed"
        provisioner.broken = set()
        await provisioning.provision(event)
        await provisioning.until(event, State.PROVISIONED)
        assert provisioner.made[str(event), "origin-1"] == 1, "what exists is left as it is"
        provisioner.broken = {"origin-1"}
        await provisioning.terminate(event)
        assert (await provisioning.until(event, State.TERMINATING_FAILED)).exists
        provisioner.broken = set()
        await provisioning.terminate(event)
        await provisioning.until(event, State.TERMINATED)
    assert not provisioner.up[str(event)]


async def test_a_static_deployment_takes_its_resources_as_they_are(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    event = await provisioning.event(await provisioning.profile("origin-1", deployment="static"))
    async with reconciling(inner, provisioner, others={Deployment.STATIC: StaticProvisioner()}):
        await provisioning.provision(event)
        info = await provisioning.until(event, State.PROVISIONED)
        assert info.resources == ({"name": "origin-1", "type": "origin"},)
        await provisioning.terminate(event)
        await provisioning.until(event, State.TERMINATED)
    assert not provisioner.runs


async def test_a_termination_cancels_what_is_being_provisioned(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    event = await provisioning.event(await provisioning.profile("origin-1", "encoder-1"))
    provisioner.gate.clear()
    async with reconciling(inner, provisioner):
        await provisioning.provision(event)
        await begun(provisioner)
        await provisioning.terminate(event)
        await provisioning.until(event, State.TERMINATED)
    assert (provisioner.halted, provisioner.overlaps) == (1, 0)
    assert "provisioned" not in await provisioning.topics(event)


async def test_a_termination_is_seen_again_where_the_database_did_not_answer_once(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = await provisioning.event(await provisioning.profile("origin-1"))
    provisioner.gate.clear()
    async with reconciling(inner, provisioner) as reconciler:
        await provisioning.provision(event)
        await begun(provisioner)
        of_key, asked = reconciler._provisions.of_key, 0

        async def once_silent(key: str) -> Sequence[ProvisionRow]:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise Unavailable("the database does not answer")
            return await of_key(key)

        monkeypatch.setattr(reconciler._provisions, "of_key", once_silent)
        await provisioning.terminate(event)
        await provisioning.until(event, State.TERMINATED)
    assert provisioner.halted == 1


async def test_a_run_that_gave_up_for_its_lease_is_no_failure_where_the_lease_is_renewed_after_all(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens on a busy machine. The next run continues."""
    event = await provisioning.event(await provisioning.profile("origin-1"))
    provide, calls = provisioner.provide, 0

    async with reconciling(inner, provisioner, lease=60.0) as reconciler:

        async def gives_up(desired: Desired, *, progress: ProvisionProgress, halt: Halt) -> Provided:
            nonlocal calls
            calls += 1
            if calls > 1:
                return await provide(desired, progress=progress, halt=halt)
            with monkeypatch.context() as late:
                late.setattr(reconciler, "_is_ours", lambda key, epoch: False)
                assert halt.forbids
            return Provided(exists=True, left=True, reason="it was interrupted")

        monkeypatch.setattr(provisioner, "provide", gives_up)
        await provisioning.provision(event)
        await provisioning.until(event, State.PROVISIONED)
    assert calls >= 2
    assert "failed" not in await provisioning.topics(event)


async def test_a_run_is_not_ours_any_more_once_its_lease_was_given_back(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a new primary, which answers that, and then nothing for a while."""
    event = await provisioning.event(await provisioning.profile("origin-1"))
    provisioner.gate.clear()
    async with reconciling(inner, provisioner, lease=60.0) as reconciler:
        await provisioning.provision(event)
        await begun(provisioner)
        [run] = reconciler._runs.values()
        forbade = run.halt.forbids
        silent = asyncio.Event()

        async def renew() -> None:
            silent.set()
            raise Unavailable("the database does not answer")

        with monkeypatch.context() as patched:
            patched.setattr(reconciler._leases.keeper, "renew", renew)
            reconciler._timeline -= 1
            async with asyncio.timeout(60):
                while not run.halt.forbids:
                    silent.clear()
                    await silent.wait()
            assert not forbade
            silent.clear()
            async with asyncio.timeout(60):
                await silent.wait()
        provisioner.gate.set()
        await provisioning.until(event, State.PROVISIONED)


async def test_events_that_share_a_key_do_not_destroy_what_others_want(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    profile = await provisioning.profile("origin-1", key="k", shared=True)
    first, two = await provisioning.event(profile), await provisioning.event(profile)
    async with reconciling(inner, provisioner):
        for event in (first, two):
            await provisioning.provision(event)
            await provisioning.until(event, State.PROVISIONED)
        await provisioning.terminate(first)
        await provisioning.until(first, State.TERMINATED)
        assert (list(provisioner.up["k"]), provisioner.made["k", "origin-1"]) == (["origin-1"], 1)
        assert (await provisioning.info(two)).state is State.PROVISIONED
        await provisioning.terminate(two)
        await provisioning.until(two, State.TERMINATED)
    assert not provisioner.up["k"]


async def test_another_way_to_make_a_shared_key_fails(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    event = await provisioning.event(await provisioning.profile("origin-1", key="k", shared=True))
    settings = {"template": "other"}
    two = await provisioning.event(await provisioning.profile("origin-2", key="k", shared=True, settings=settings))
    async with reconciling(inner, provisioner):
        await provisioning.provision(event)
        await provisioning.until(event, State.PROVISIONED)
        await provisioning.provision(two)
        assert "made differently" in (await provisioning.until(two, State.PROVISIONING_FAILED)).reason
    assert list(provisioner.up["k"]) == ["origin-1"]


async def test_a_reset_lets_go_beside_and_stays_scheduled(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    event = await provisioning.event(await provisioning.profile("origin-1"))
    async with reconciling(inner, provisioner):
        await provisioning.provision(event)
        await provisioning.until(event, State.PROVISIONED)
        await provisioning.reset(event)
        await provisioning.idle()
    info = await provisioning.info(event)
    assert (info.state, info.exists, dict(provisioner.up[str(event)])) == (State.SCHEDULED, False, {})


async def test_the_state_stays_for_an_event_that_was_requested_again_before_the_end_was_told(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner, clock: HandClock
) -> None:
    """The end of the release is that of an earlier order, so the Event still counts as one with infrastructure."""
    event = await provisioning.event(await provisioning.profile("origin-1"))
    async with reconciling(inner, provisioner):
        await provisioning.provision(event)
        await provisioning.until(event, State.PROVISIONED)

        async def request_again() -> None:
            provisioner.done = never
            clock.forward(seconds=1)
            await provisioning.provision(event)

        never, provisioner.done = provisioner.done, request_again
        await provisioning.reset(event)
        info = await provisioning.until(event, State.PROVISIONED)
        assert (info.reason, list(provisioner.up[str(event)])) == ("", ["origin-1"])
        assert "release_ended" not in await provisioning.topics(event)


async def test_the_state_stays_for_an_event_whose_termination_failed(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    """Another Event of its key ends well after that, with everything that is there."""
    profile = await provisioning.profile("origin-1", key="k", shared=True)
    first, two = await provisioning.event(profile), await provisioning.event(profile)
    async with reconciling(inner, provisioner):
        await provisioning.provision(first)
        await provisioning.until(first, State.PROVISIONED)
        provisioner.broken = {"origin-1"}
        await provisioning.terminate(first)
        await provisioning.until(first, State.TERMINATING_FAILED)
        provisioner.broken = set()
        for act, state in ((provisioning.provision, State.PROVISIONED), (provisioning.terminate, State.TERMINATED)):
            await act(two)
            await provisioning.until(two, state)
        assert not provisioner.up["k"]
        await provisioning.terminate(first)
        await provisioning.until(first, State.TERMINATED)

        async def forgotten() -> bool:
            return not provisioner.keeps

        await once(forgotten)


async def test_what_exists_changes_only_with_leave(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner, clock: HandClock
) -> None:
    """A second Event of the key wants another form of the resource."""
    event = await provisioning.event(await provisioning.profile("origin-1", key="k", shared=True))
    large = {"origin-1": {"size": "large"}}
    two = await provisioning.event(await provisioning.profile("origin-1", key="k", shared=True, **large))
    async with reconciling(inner, provisioner):
        await provisioning.provision(event)
        await provisioning.until(event, State.PROVISIONED)
        clock.forward(seconds=1)
        await provisioning.provision(two)
        await provisioning.until(two, State.PROVISIONED)
        assert not provisioner.changed
        await provisioning.provision(two, allow_updates=True)
        await provisioning.until(two, State.PROVISIONED)
    assert provisioner.changed["k", "origin-1"] == 1


async def test_another_member_takes_over(
    inner: Core, second: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    events = [await provisioning.event(await provisioning.profile("origin-1")) for _ in range(10)]
    async with reconciling(second, provisioner, lease=1.0):
        provisioner.gate.clear()
        for event in events:
            await provisioning.provision(event)
        await begun(provisioner)
    provisioner.gate.set()
    async with reconciling(inner, provisioner, lease=1.0):
        for event in events:
            await provisioning.until(event, State.PROVISIONED)
    assert provisioner.overlaps == 0
    assert set(provisioner.made.values()) == {1}


async def test_races_of_two_events_with_one_key(
    inner: Core, second: Core, provisioning: Provisioning, provisioner: MemoryProvisioner, thorough: bool
) -> None:
    """Two members, and two Events that start and stop at the same time, in a random order."""
    profile = await provisioning.profile("origin-1", "encoder-1", key="k", shared=True)
    events = [await provisioning.event(profile) for _ in range(2)]
    dice = random.Random(18)

    async def race(event: UUID, steps: list[bool]) -> None:
        for up in steps:
            with suppress(Refused):  # while it is being terminated
                await (provisioning.provision(event) if up else provisioning.terminate(event))
            await asyncio.sleep(dice.random() * 0.01)

    async with reconciling(inner, provisioner, lease=2.0), reconciling(second, provisioner, lease=2.0):
        for _ in range(300 if thorough else 30):
            await asyncio.gather(*(race(event, [dice.random() < 0.5 for _ in range(2)]) for event in events))
            await provisioning.idle()
            states = [(await provisioning.info(event)).state for event in events]
            wanted = State.PROVISIONED in states
            assert set(states) <= {State.PROVISIONED, State.TERMINATED}
            assert set(provisioner.up["k"]) == ({"origin-1", "encoder-1"} if wanted else set())
    assert provisioner.overlaps == 0
    for event in events:
        topics = await provisioning.topics(event)
        assert all(entry != two for entry, two in pairwise(topics)), "no end is told twice"


async def test_the_stored_state_of_a_key_is_deleted_after_its_end(
    inner: Core, provisioning: Provisioning, provisioner: MemoryProvisioner
) -> None:
    profile = await provisioning.profile("origin-1")
    stays, goes = await provisioning.event(profile), await provisioning.event(profile)
    provisioner.keeps = {"of another life", str(stays)}
    async with reconciling(inner, provisioner):
        await provisioning.provision(stays)
        await provisioning.provision(goes)
        await provisioning.until(stays, State.PROVISIONED)
        await provisioning.until(goes, State.PROVISIONED)
        await provisioning.terminate(goes)
        await provisioning.until(goes, State.TERMINATED)

        async def tidied() -> bool:
            return provisioner.keeps == {str(stays)}

        await once(tidied)
