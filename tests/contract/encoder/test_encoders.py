"""The behaviour of every encoder: sessions are tested with the one in memory, the product runs the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.contract.encoder.stages import CHANNEL, Stage
from tests.projections.log.helpers import until
from workers.ports.encoders import EncoderFailed, RunningEncoder

PATIENCE = 90.0


@asynccontextmanager
async def started(stage: Stage, *, session: int = 7, may_send: Callable[[], bool] = lambda: True) -> AsyncIterator[RunningEncoder]:
    running = await stage.encoder.start(stage.plan, channel=CHANNEL, session=session, may_send=may_send)
    try:
        yield running
    finally:
        await running.stop()


async def more(stage: Stage, point: int, *, pieces: int = 3) -> None:
    """Wait until this many further pieces have arrived there."""
    goal = len(stage.arrived(point)) + pieces
    await until(lambda: len(stage.arrived(point)) >= goal)


async def test_media_arrive_at_every_point_under_the_number_of_the_session(stage: Stage) -> None:
    async with started(stage, session=41) as running:
        await more(stage, 0)
        await more(stage, 1)
        assert set(stage.arrived(0)) == set(stage.arrived(1)) == {41}
        await until(lambda: all(point.connected and point.bytes for point in running.statistics().points))
        assert len(running.statistics().points) == 2
        assert running.statistics().bytes > 0


async def test_nothing_arrives_after_a_stop(stage: Stage) -> None:
    async with started(stage) as running:
        await more(stage, 0)
        await running.stop()
        before = [len(stage.arrived(point)) for point in (0, 1)]
        await running.stop()
        assert await running.ended() == ""
        async with started(stage, session=8):
            await more(stage, 0)
            await more(stage, 1)
        assert [stage.arrived(point)[:count].count(7) for point, count in enumerate(before)] == [
            stage.arrived(point).count(7) for point in (0, 1)
        ], "the first session sent nothing while the second one did"


async def test_nothing_arrives_while_it_may_not_send(stage: Stage) -> None:
    allowed = True
    async with started(stage, may_send=lambda: allowed), started(stage, session=8):
        await until(lambda: 7 in stage.arrived(0) and 7 in stage.arrived(1))
        allowed = False
        await asyncio.sleep(stage.bound)  # what was let go may arrive until then, and no event says that nothing more comes
        begun = [len(stage.arrived(point)) for point in (0, 1)]
        await more(stage, 0, pieces=6)
        await more(stage, 1, pieces=6)
        late = [stage.arrived(point)[count:].count(7) for point, count in enumerate(begun)]
        assert late == [0, 0]


async def test_a_point_that_is_down_does_not_stop_the_other(stage: Stage) -> None:
    async with started(stage) as running:
        await more(stage, 0)
        stage.broken(0)
        await until(lambda: running.statistics().points[0].last_error)
        await more(stage, 1, pieces=5)
        assert not running.statistics().points[0].connected
        stage.mended(0)
        await more(stage, 0)
        await until(lambda: running.statistics().points[0].connected)
        assert running.statistics().points[0].reconnects >= 1
        assert running.statistics().points[1].reconnects == 0


async def test_it_says_why_it_ended_by_itself(stage: Stage) -> None:
    async with started(stage) as running:
        await more(stage, 0, pieces=1)
        await stage.source_ends()
        async with asyncio.timeout(PATIENCE):
            why = await running.ended()
        assert why.endswith(".")
        assert why == await running.ended()


async def test_what_cannot_be_started_is_refused_in_a_sentence(stage: Stage) -> None:
    with pytest.raises(EncoderFailed, match="encoderSpecific"):
        await stage.encoder.start(stage.bad, channel=CHANNEL, session=1, may_send=lambda: True)
    assert "encoderSpecific" in str(await stage.encoder.check(stage.bad))
    assert await stage.encoder.check(stage.plan) is None
