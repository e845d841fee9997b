"""`medialedger sessions`, as a person calls it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.cli.main import main
from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState
from tests.support.sessions import World, an_event, channel_of, go_live, member, rows, until

Said = tuple[int, str, str]
Call = Callable[..., Awaitable[Said]]


@pytest.fixture
def call(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))

    async def called(*words: str) -> Said:
        code = await asyncio.to_thread(main, ["sessions", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


PLAYED = {"item": 2, "value": "films/a.mp4", "position": 12.4, "length": 60.0}


@pytest.mark.parametrize(
    ("playout", "shown"),
    [
        (PLAYED, "item 3, films/a.mp4, 12 s of 60 s"),
        ({**PLAYED, "length": None}, "item 3, films/a.mp4, 12 s"),
        ({**PLAYED, "item": None}, "black"),
        (None, "-"),
    ],
)
async def test_the_list_shows_what_of_a_playlist_is_on_the_air(
    inner: Core, call: Call, playout: Mapping[str, Any] | None, shown: str
) -> None:
    sql = """
    INSERT INTO sessions (kind, key, shard, owner, wish, number, state, host, started_at, changed_at, statistics)
    VALUES ('encoder', 'c', 1, 'e', 1, 7, 'running', 'here', now(), now(), %s::jsonb)
    """
    await inner.database.execute(sql, (json.dumps({"encoders": [{"bytes": 5, "playout": playout}]}),))
    code, output, _ = await call("list")
    assert code == 0
    assert re.split("  +", output.splitlines()[1].strip())[8:10] == ["5 B", shown]


async def test_sessions_are_listed_and_one_is_stopped_by_its_channel_or_its_event(inner: Core, call: Call) -> None:
    world = World()
    first, second, third = [await an_event(inner, number) for number in (1, 2, 3)]
    async with member(inner.database, world) as worker:
        for key in (first, second, third):
            await go_live(inner, key)
        await until(world.has_reported("started", 3))
        await until(lambda: worker.worker._reported > 0)
        code, output, _ = await call("list")
        assert code == 0
        assert [line.split()[4] for line in output.splitlines()] == ["STATE", *["running"] * 3]
        listed = json.loads((await call("list", "--json"))[1])
        assert {worker["owner"] for worker in listed} == {str(first), str(second), str(third)}
        for target in (str(first), str(channel_of(second)), f"channel {channel_of(third).int}"):
            code, output, error = await call("stop", target, "--yes")
            assert (code, error) == (0, "")
            assert "its state stays LIVE_UNPUBLISHED" in output
        await until(lambda: not worker.worker.sessions)
    assert {row[2] for row in await rows(inner)} == {"stopped"}
    event = await inner.streams.load(MediaEvent.stream(first))
    assert isinstance(event, MediaEvent)
    assert event.details.state is EventState.LIVE_UNPUBLISHED
    actors = await inner.database.rows("SELECT DISTINCT metadata->>'actor' FROM events WHERE topic = 'event.channel_released'")
    assert [actor.partition(":")[0] for (actor,) in actors] == ["shell"]


async def test_what_is_not_on_the_air_cannot_be_stopped(inner: Core, call: Call) -> None:
    event = await an_event(inner, 1)
    for target, reason in (
        (str(event), "is not on the air"),
        ("nowhere", "no Event is on the air"),
        (str(UUID(int=9)), "no Event has this id"),
    ):
        code, _, error = await call("stop", target, "--yes")
        assert code == 1
        assert reason in error
    assert (await call("list"))[0] == 0
