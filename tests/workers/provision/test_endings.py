"""Rules of a profile that end resources when the Event enters a state, with the whole role."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from domain.provision.values import ProvisionState
from tests.support.engine import process
from tests.support.feeding import do
from tests.workers.provision.provisioned import ME, Provisioning

RULES = [
    {"states": ["instant_vod"], "type": "x", "select": ["Origin"]},
    {"states": ["STOPPED", "VOD_PUBLIC"], "type": "x", "select": ["encoder"]},
]


@pytest.fixture
async def running(database_url: str, migrated: tuple[str, str | None], tmp_path: Path) -> AsyncIterator[Core]:
    async with process(database_url, migrated[1], media_root=tmp_path, roles=("provisioning",)) as inner:
        yield inner


async def provisioned(provisioning: Provisioning) -> UUID:
    profile = await provisioning.profile("origin-1", "encoder-1", "router-1", deployment="static", termination=RULES)
    event = await provisioning.event(profile)
    await provisioning.provision(event)
    await provisioning.until(event, ProvisionState.PROVISIONED)
    return event


async def test_selected_resources_end_and_the_last_ones_end_it(running: Core) -> None:
    provisioning = Provisioning(running)
    profile = await provisioning.profile("origin-1", "encoder-1", deployment="static", termination=RULES)
    event = await provisioning.event(profile)
    await provisioning.provision(event)
    await provisioning.until(event, ProvisionState.PROVISIONED)
    await do(running, MediaEvent.change_state.on(event, EventState.INSTANT_VOD, trigger=Trigger.OPERATOR))
    await provisioning.until(event, ProvisionState.PROVISIONED_PARTIAL)
    assert await provisioning.up(event) == ["encoder-1"]
    await do(running, MediaEvent.force_stop.on(event))
    await provisioning.until(event, ProvisionState.TERMINATED)


async def test_other_states_end_nothing(running: Core) -> None:
    provisioning = Provisioning(running)
    event = await provisioned(provisioning)
    await do(running, MediaEvent.change_state.on(event, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    await do(running, MediaEvent.change_state.on(event, EventState.VOD_PUBLIC, trigger=Trigger.OPERATOR))
    await provisioning.until(event, ProvisionState.PROVISIONED_PARTIAL)
    assert await provisioning.up(event) == ["origin-1", "router-1"]
    assert (await provisioning.topics(event)).count("termination_requested") == 1


async def test_an_order_from_before_the_request_ends_nothing(running: Core) -> None:
    provisioning = Provisioning(running)
    event = await provisioned(provisioning)
    before = (await provisioning.info(event)).request
    await provisioning.provision(event)
    await provisioning.until(event, ProvisionState.PROVISIONED)
    await provisioning.handlers.end_selected(event, frozenset({"origin"}), request=before, invocation=ME)
    assert (await provisioning.info(event)).state is ProvisionState.PROVISIONED
