"""`medialedger compose show`, as a person calls it, and the time line."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.cli.local.playlist import bar, clock, time_line, whole_length
from api.cli.main import main
from api.wiring.core import Core
from domain.composition.handlers import NewComposition
from domain.composition.values import CompositionKind, Item, ItemType, Marker, MarkerType, Playlist
from domain.event.aggregate import MediaEvent
from domain.event.changes import EventChanges
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, VodJobEnd, VodResult, VodWorkflow
from domain.kernel.ports import Invocation
from tests.domain.composition.compositions_given import EVENT, OTHER, SOURCE, item, marked, playlist
from tests.support.feeding import do
from tests.workers.event.timekeeper.keeping import composition_handlers

FILM = playlist(
    item(end="00:00:10"),
    Item(
        type=ItemType.EVENT,
        value=str(OTHER),
        properties={"start": "00:00:02.500"},
        markers=(Marker(start_at="00:00:05", duration="00:00:30", type=MarkerType.REPLACEMENT),),
    ),
)


def lengths(wanted: Playlist, **durations: float) -> list[tuple[str, str]]:
    entries = time_line(wanted, durations={SOURCE: 60.0, **{UUID(int=int(key[1:])): length for key, length in durations.items()}})
    return [(clock(entry.at), clock(entry.length)) for entry in entries]


@pytest.mark.parametrize(
    ("properties", "length"),
    [
        ({}, "00:01:00.000"),
        ({"start": "00:00:59.999"}, "00:00:00.001"),
        ({"start": "00:02:00"}, "00:00:00.000"),
        ({"start": "00:00:01", "end": "25:00:01.040"}, "25:00:00.040"),
        ({"start": "2031-01-02T12:00:00Z", "end": "2031-01-02T14:00:00.5+01:00"}, "01:00:00.500"),
        ({"start": "2031-01-02T12:00:00Z"}, "?"),
        ({"start": "2031-01-02T12:00:00Z", "end": "00:00:01"}, "?"),
        ({"start": "nonsense"}, "?"),
    ],
)
def test_lengths_as_far_as_they_are_known(properties: dict[str, Any], length: str) -> None:
    at = "00:01:00.000"
    assert lengths(playlist(item(), item(**properties))) == [("00:00:00.000", at), (at, length)]


def test_after_an_unknown_length_no_time_is_known() -> None:
    wanted = playlist(item(), item(OTHER), item())
    assert lengths(wanted) == [("00:00:00.000", "00:01:00.000"), ("00:01:00.000", "?"), ("?", "00:01:00.000")]
    assert whole_length(time_line(wanted, durations={})) is None


def test_bars_show_where_items_are() -> None:
    entries = time_line(playlist(item(end="00:00:01"), item(), marked(("00:00:01", "00:00:01"))), durations={SOURCE: 3.0})
    whole = whole_length(entries)
    assert whole == timedelta(seconds=7)
    bars = [bar(entry, whole=whole) for entry in entries]
    assert [(line.index("#"), line.count("#"), len(line)) for line in bars] == [(0, 4, 32), (4, 14, 32), (18, 14, 32)]
    assert bar(entries[0], whole=None) == ""


async def test_a_playlist_is_shown(
    inner: Core, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))

    async def call(*words: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, ["compose", "show", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    for key, title in ((SOURCE, "Opener"), (OTHER, "Match\x1b[2J")):
        await do(inner, AddOrUpdateEvent(key, {"title": title}, state=EventState.VOD_PUBLIC))
    await do(inner, MediaEvent.start_vod_job.on(OTHER, 1, VodWorkflow.INGEST))
    await do(inner, MediaEvent.end_vod_job.on(OTHER, 1, VodJobEnd.COMPLETED, version=2, result=VodResult(duration=22.5)))
    code, _, error = await call(str(EVENT))
    assert (code, "has no playlist" in error) == (1, True)
    wanted = NewComposition(
        kind=CompositionKind.STANDARD, playlist=FILM, event_id=EVENT, changes=EventChanges({"title": "Evening"})
    )
    made = (await composition_handlers(inner).compose(wanted, invocation=Invocation.by("studio"))).aggregate
    code, output, _ = await call(str(EVENT))
    assert code == 0
    lines = output.splitlines()
    assert lines[:5] == [
        f"playlist {made.key}: Evening, for a film",
        f"event {EVENT}: Evening, COMPOSE_GENERATING",
        "film 1: GENERATING",
        f"job {made.job}: queued",
        "  make: waiting",
    ]
    assert [line.split()[:3] for line in lines[6:]] == [
        ["1", "00:00:00.000", "00:00:10.000"],
        ["2", "00:00:10.000", "00:00:20.000"],
        ["00:00:12.500", "00:00:30", "replacement"],
        ["00:00:30.000", "end"],
    ]
    assert "\x1b" not in output
    document = json.loads((await call(str(EVENT), "--json"))[1])
    assert (document["state"], document["generation"], document["length"]) == ("GENERATING", 1, 30.0)
    assert [(item["at"], item["length"], len(item["breaks"])) for item in document["items"]] == [(0.0, 10.0, 0), (10.0, 20.0, 1)]
