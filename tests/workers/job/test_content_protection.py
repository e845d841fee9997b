"""The key of a step's content: the key provider of this product issues it while the step runs, and there is no other way to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from uuid import uuid4

import pytest

from api.wiring.core import Core
from domain.client.aggregate import NewKey
from domain.client.commands import ConfigureClientDrm, RegisterClient
from domain.drm import pssh
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.errors import Refused
from domain.kernel.ports import Invocation
from tests.projections.content_key.issuing import handlers_on, issue_one, key_request
from tests.support.step_hosts import TRIAL, Listener, order, plugin
from workers.job.content_protection import ContentProtection
from workers.job.protocol import Finished, Protection, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.job.step_processes import step_fork_server
from workers.kernel.fork_client import ForkServer

EVENT = uuid4()
ADMIN = Invocation.by("admin")
KEY = "000102030405060708090a0b0c0d0e0f"
GIVEN = Protection(kid="1" * 32, key=KEY, iv="2" * 32, fairplay_uri="skd://a", boxes={}, drm_json={})


@pytest.fixture(scope="module", autouse=True)
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugin(tmp_path_factory.mktemp("installed"), trial=TRIAL):
        yield


@pytest.fixture(scope="module")
async def step_server(trial: None) -> AsyncIterator[ForkServer]:
    async with step_fork_server() as server:
        yield server


@pytest.fixture(scope="module")
async def hosts(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=tmp_path_factory.mktemp("media"), allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def protection(inner: Core) -> ContentProtection:
    return ContentProtection(inner.streams, handlers_on(inner), host="media.example")


async def add_event(inner: Core, *, drm: bool) -> None:
    await inner.executor.execute(AddOrUpdateEvent(EVENT, {"title": "film", "vod_drm": drm}, new=True), invocation=ADMIN)


async def test_a_content_is_encrypted_where_its_event_wants_drm(inner: Core, protection: ContentProtection) -> None:
    await add_event(inner, drm=False)
    assert await protection("studio", str(EVENT)) is None
    assert await protection("studio", "a name, and no Event") is None
    await inner.executor.execute(AddOrUpdateEvent(EVENT, {"vod_drm": True}), invocation=ADMIN)
    protected = await protection("studio", str(EVENT))
    assert protected is not None
    assert await protection("studio", str(EVENT).upper()) == protected, "the same Event"
    packager = await issue_one(handlers_on(inner), key_request(str(EVENT)))
    assert (protected.kid, protected.key, protected.iv) == (packager.kid.hex, packager.key.hex(), packager.iv.hex())
    assert KEY not in repr(protected)
    assert protected.key not in repr(protected)


async def test_the_signalling_follows_the_settings_of_the_client(inner: Core, protection: ContentProtection) -> None:
    await add_event(inner, drm=True)
    new = NewKey(key_id="k", key_hash="h")
    await inner.executor.execute(RegisterClient("studio", ("keys",), new), invocation=ADMIN)
    changes = {"playready_la_url": "https://pr.example/rm", "fairplay_uri_template": "skd://{host}/{kid}"}
    await inner.executor.execute(ConfigureClientDrm("studio", changes), invocation=ADMIN)
    protected = await protection("studio", str(EVENT))
    assert protected is not None
    kid = str(protected.drm_json["drm_data"][0]["key_id"])
    assert protected.fairplay_uri == f"skd://media.example/{kid}"
    cenc, apple = protected.drm_json["drm_data"]
    assert (cenc["name"], cenc["content_id"], cenc["playready_laurl"]) == ("CENC", str(EVENT), "https://pr.example/rm")
    assert (apple["name"], apple["key_iv"], apple["laurl"]) == ("FAIRPLAY", protected.iv, protected.fairplay_uri)
    assert protected.key not in str(protected.drm_json)
    for boxes in protected.boxes.values():
        rest, systems = bytes.fromhex(boxes), []
        while rest:
            size = int.from_bytes(rest[:4])
            systems.append(str(pssh.parsed(rest[:size]).system_id)[:8])
            rest = rest[size:]
        assert systems == ["edef8ba9", "9a04f079", "1077efec"], "Widevine, PlayReady, common"


async def test_a_step_gets_the_key_when_it_asks_and_hides_it_from_other_accounts(hosts: StepProcessPool) -> None:
    async def given(client: str, content_id: str) -> Protection:
        assert (client, content_id) == ("admin", "film")
        return GIVEN

    ended = await hosts.run(order("asks_for_protection"), Listener(), protection=given)
    assert isinstance(ended, Finished)
    protected = ended.result.metadata
    assert (protected["kid"], protected["digest"]) == ("1" * 32, sha256(KEY.encode()).hexdigest())
    assert "cat; tr" in protected["arguments"]
    assert KEY not in str(ended)
    assert KEY not in repr(GIVEN)
    ended = await hosts.run(order("asks_for_protection"), Listener())
    assert isinstance(ended, Finished)
    assert ended.result.metadata == {"protected": False}


async def test_a_key_that_is_refused_fails_the_step_with_a_sentence(hosts: StepProcessPool) -> None:
    async def refused(client: str, content_id: str) -> Protection:
        raise Refused("not today")

    ended = await hosts.run(order("asks_for_protection"), Listener(), protection=refused)
    assert ended == StepFailure("The content key is not available; see the log of the worker.")


async def test_a_step_is_cancelled_while_it_waits_for_a_key(
    tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer
) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def slow(client: str, content_id: str) -> Protection:
        asked.set()
        await never.wait()
        return GIVEN

    hosts = StepProcessPool(media_root=tmp_path_factory.mktemp("media"), allow=[], fork_server=step_server)
    await hosts.start()
    try:
        running = asyncio.create_task(hosts.run(order("asks_for_protection"), Listener(), protection=slow))
        await asked.wait()
        hosts.drain()
        assert await running == StepFailure("The step was asked to end.", interrupted=True)
    finally:
        await hosts.stop()
