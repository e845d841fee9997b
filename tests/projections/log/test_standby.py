"""The log on a primary with a hot standby: the switch, planned and not, and what a standby lacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from api.wiring.core import Core, core, prepare
from domain.kernel.errors import OutcomeUnknown, Unavailable
from domain.kernel.ports import Invocation
from domain.record.kinds.room import Room
from domain.record.record import Record, RegisterRecord
from projections.log.append_queue import AppendLimits
from projections.log.limits import LogLimits
from tests.projections.log.helpers import logged, until, whole
from tests.support.standby import Replicated

BY = Invocation.by("tester")


@pytest.fixture
def servers(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Replicated]:
    made = Replicated(tmp_path_factory.mktemp("replicated"), synchronous=request.param)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
async def wired(servers: Replicated) -> AsyncIterator[Core]:
    made = core(servers.url, role=await prepare(servers.url), limits=LogLimits(AppendLimits(patience=1.0)))
    await made.start()
    yield made
    await made.stop()


async def register(at: Core, key: str) -> Record:
    return (await at.executor.execute(RegisterRecord(key, Room, {"name": key}), invocation=BY)).aggregate


async def rename(at: Core, key: str, name: str) -> Record:
    """Rename a record like a client that retries when it is asked to come back later."""
    async with asyncio.timeout(60):
        while True:
            try:
                return (await at.executor.execute(Room.amend.on(key, {"name": name}), invocation=BY)).aggregate
            except Unavailable:
                await asyncio.sleep(0)


def versions(url: str, stream: str) -> list[int]:
    return [version for _, of, version in logged(url) if of == stream]


@pytest.mark.parametrize("servers", [True], indirect=True)
@pytest.mark.long
async def test_with_a_synchronous_standby_nothing_is_lost(
    servers: Replicated, wired: Core, caplog: pytest.LogCaptureFixture
) -> None:
    await register(wired, "r")
    await rename(wired, "r", "before")
    await asyncio.to_thread(servers.switch, accident=False)
    assert (await rename(wired, "r", "after a planned switch")).version == 3
    await asyncio.to_thread(servers.replace)
    assert (await rename(wired, "r", "on both")).version == 4
    await asyncio.to_thread(servers.switch, accident=True)
    assert (await rename(wired, "r", "after an accident")).version == 5
    assert versions(servers.url, "room:r") == [1, 2, 3, 4, 5]
    assert whole(servers.url) == 5
    assert wired.database.timeline == 3
    assert "has another primary" in caplog.text
    assert "has lost events" not in caplog.text


@pytest.mark.parametrize("servers", [True], indirect=True)
@pytest.mark.long
async def test_a_write_that_the_standby_lacks_is_not_acknowledged(servers: Replicated, wired: Core) -> None:
    """The client gives up waiting; the server does not, and shows the write to nobody until the standby has it."""
    await register(wired, "r")
    await asyncio.to_thread(servers.freeze)
    with pytest.raises(OutcomeUnknown):
        await wired.executor.execute(Room.amend.on("r", {"name": "nobody has it"}), invocation=BY)
    assert versions(servers.primary, "room:r") == [1], "nobody sees it, so nothing follows from it"
    await asyncio.to_thread(servers.thaw)
    await until(lambda: versions(servers.primary, "room:r") == [1, 2])
    assert (await rename(wired, "r", "next")).version == 3
    assert whole(servers.url) == 3


@pytest.mark.parametrize("servers", [False], indirect=True)
@pytest.mark.long
async def test_versions_that_a_standby_lacks_are_dropped_and_logged(
    servers: Replicated, wired: Core, caplog: pytest.LogCaptureFixture
) -> None:
    """The process holds versions that the log has lost. A command that was decided on them would leave a hole."""
    await register(wired, "r")
    await rename(wired, "r", "on both")
    await asyncio.to_thread(servers.cut)
    await rename(wired, "r", "lost")
    assert (await rename(wired, "r", "lost too")).version == 4
    await asyncio.to_thread(servers.switch, accident=True)
    assert (await rename(wired, "r", "after")).version == 3
    assert versions(servers.url, "room:r") == [1, 2, 3]
    assert whole(servers.url) == 3
    assert "lacks the event at position 4" in caplog.text
    assert "medialedger restored" in caplog.text
