"""Samples of publishing points: what the database refuses, and what a clock that was set back leaves behind."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from api.wiring.core import Core
from projections.consumers.leases import ShardLeases
from projections.publishing_point.queries import PointStates
from projections.publishing_point.samples import CONSUMER, PointKey, PointSample, Samples
from tests.projections.consuming import hold

CHANNEL = UUID(int=7)
FIRST, SECOND = PointKey(CHANNEL, 0, 0), PointKey(CHANNEL, 0, 1)
_SET_BACK = """
UPDATE publishing_point_probes SET sampled_at = sampled_at + interval '1 hour', moved_at = moved_at + interval '1 hour',
    failing_since = failing_since + interval '1 hour'
"""


@pytest.fixture
async def samples(inner: Core) -> AsyncIterator[Samples]:
    member = uuid4()
    leases = ShardLeases(inner.database, CONSUMER, shards=1, member=member, reads_log=False)
    await leases.start()
    assert (await hold(leases)).leases[0].epoch == 1
    yield Samples(inner.database, member=member)
    await leases.leave()


def sample(key: PointKey = FIRST, mark: str = "", state: str = "started", *, age: float = 0.0) -> PointSample:
    return PointSample(key, 0, 1, address=1, strategy=0, age=age, state=state, mark=mark)


async def states(inner: Core) -> dict[int, str]:
    return {point: state.state for (_, point), state in (await PointStates(inner.database).of_points(CHANNEL)).items()}


async def shown(inner: Core) -> tuple[str, bool]:
    state = (await PointStates(inner.database).of_points(CHANNEL))[0, 0]
    return state.state, state.receiving


@pytest.mark.parametrize("odd", ["\0", "\ud83d"], ids=["NUL", "half of a surrogate pair"])
async def test_a_sample_that_the_database_refuses_takes_no_other_with_it(
    inner: Core, samples: Samples, caplog: pytest.LogCaptureFixture, odd: str
) -> None:
    others = [sample(PointKey(CHANNEL, 0, number)) for number in (0, 2, 3)]
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert await samples.write([others[0], sample(SECOND, odd), *others[1:]]) == 3
    assert await states(inner) == dict.fromkeys((0, 2, 3), "started")
    (line,) = caplog.messages
    assert f"point 1 of encoder 0 of the channel {CHANNEL}" in line


async def test_after_the_clock_was_set_back_a_point_is_unknown_until_its_next_sample(inner: Core, samples: Samples) -> None:
    await samples.write([sample(mark="a", age=2.0)])
    await samples.write([sample(mark="b", age=1.0)])
    assert await shown(inner) == ("started", True)
    await inner.database.execute(_SET_BACK)
    assert await shown(inner) == ("unknown", False)
    assert (await PointStates(inner.database).counts())["on_air"] == 0
    await samples.write([sample(state="stopped", mark="b")])
    assert (await shown(inner))[0] == "stopped"
    later = await inner.database.rows(
        "SELECT FROM publishing_point_probes WHERE greatest(sampled_at, moved_at, failing_since) > clock_timestamp()"
    )
    assert not later, "what moved or failed after the present would count for an hour"


async def test_after_the_clock_was_set_back_no_point_counts_as_failing(inner: Core, samples: Samples) -> None:
    await samples.write([sample(state="stopped", mark="a")])
    points = PointStates(inner.database)
    assert await points.all_failing_since(CHANNEL) is not None
    await inner.database.execute(_SET_BACK)
    assert await points.all_failing_since(CHANNEL) is None
