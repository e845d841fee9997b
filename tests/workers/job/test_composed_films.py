"""Playlists in the whole engine: the newest one is published, and the Event shows its film, or why there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID

import pytest

from domain.composition.handlers import CompositionHandlers, NewComposition
from domain.composition.row import CompositionRow
from domain.composition.values import CompositionKind, CompositionState, Item, ItemType, Playlist
from domain.event.commands import AddOrUpdateEvent
from domain.event.ports import EventRow
from domain.event.values import EventState, Mp4State
from domain.job.values import JobState
from domain.kernel.ports import Invocation
from projections.asset.queries import AssetQueries
from projections.composition.queries import CompositionQueries
from projections.event.queries import EventQueries
from projections.job.queue import JobNumberSequence
from tests.support.engine import ENGINE, Engine, once, process
from tests.support.services import container
from tests.support.sources.numbered_frames import numbers
from tests.support.sources.playlists import event, source

Migrated = tuple[str, str | None]
ME = Invocation.by("studio")
FILM, ONE, TWO, EMPTY = 9, 1, 2, 3
KEY = UUID(int=FILM)
LENGTHS = {ONE: 25, TWO: 20}
"""The lengths of the films in frames."""
LONG = 180.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a media root that is open to the account of steps."""
    root = tmp_path / "media"
    for number, frames in LENGTHS.items():
        made = source(root, number, frames=frames, decibels=None)
        made.chmod(0o644)
        made.parent.chmod(0o755)
    root.chmod(0o755)
    return root


@pytest.fixture
async def engine(database_url: str, migrated: Migrated, root: Path) -> AsyncIterator[Engine]:
    async with process(database_url, migrated[1], media_root=root, roles=(*ENGINE, "outcomes")) as inner:
        for number in (ONE, TWO, EMPTY):
            film = Mp4State.NONE if number == EMPTY else Mp4State.AVAILABLE
            await inner.executor.execute(AddOrUpdateEvent(UUID(int=number), {}, mp4_state=film), invocation=ME)
        yield Engine(inner, JobNumberSequence(inner.database))


@pytest.fixture
def handlers(engine: Engine) -> CompositionHandlers:
    return container(engine.inner).get(CompositionHandlers)


def playlist(*parts: int, name: str = "Evening") -> Playlist:
    return Playlist(name=name, items=tuple(Item(type=ItemType.EVENT, value=event(number)) for number in parts))


def wanted(*parts: int) -> NewComposition:
    return NewComposition(kind=CompositionKind.STANDARD, playlist=playlist(*parts), event_id=KEY)


async def shown(engine: Engine, state: EventState) -> tuple[EventRow, CompositionRow]:
    """Wait until the Event is in this state, and return the Event and its composition."""

    async def ask() -> EventRow | None:
        row = await EventQueries(engine.inner.database).by_id(KEY)
        return row if row is not None and row.details.state is state else None

    event_row, row = await once(ask, seconds=LONG), await CompositionQueries(engine.inner.database).of_event(KEY)
    assert row is not None
    return event_row, row


async def started(engine: Engine, handlers: CompositionHandlers) -> None:
    """Wait until a step of the present job runs."""
    row = await CompositionQueries(engine.inner.database).of_event(KEY)
    assert row is not None
    assert row.job is not None
    is_under_way: Callable[..., bool] = lambda job: job.state is JobState.STARTED  # noqa: E731
    await engine.until(row.job, is_under_way, seconds=LONG)


async def test_the_newest_playlist_is_published_and_shown(engine: Engine, handlers: CompositionHandlers, root: Path) -> None:
    await handlers.compose(wanted(ONE, ONE, ONE), invocation=ME)
    for parts in ((TWO,), (TWO, TWO), (TWO, ONE)):
        await started(engine, handlers)
        await handlers.replace(KEY, CompositionKind.STANDARD, changes={"items": playlist(*parts).items}, invocation=ME)
    event_row, row = await shown(engine, EventState.COMPOSE_PUBLIC)
    details = event_row.details
    assert (row.state, row.generation, details.mp4_state) == (CompositionState.GENERATED, 4, Mp4State.AVAILABLE)
    film = root / event(FILM) / f"{event(FILM)}.mp4"
    assert numbers(film) == [*range(LENGTHS[TWO]), *range(LENGTHS[ONE])]
    assert details.vod_file is not None
    assert details.vod_file.size == film.stat().st_size
    assert details.vod_file.duration == pytest.approx(45 / 25, abs=0.05)
    assert details.thumbnail
    states = await engine.inner.database.rows("SELECT state FROM job_view ORDER BY id")
    assert [JobState(state) for (state,) in states] == [JobState.BROKEN] * 3 + [JobState.COMPLETED]

    async def assets_follow() -> bool:
        """Return True once the assets follow the Event."""
        return f"{event(FILM)}/{event(FILM)}.mp4" in {
            asset.path for asset in await AssetQueries(engine.inner.database).of_event(KEY)
        }

    await once(assets_follow, seconds=LONG)


async def test_a_source_without_a_film_is_told_and_can_be_mended(engine: Engine, handlers: CompositionHandlers, root: Path) -> None:
    await handlers.compose(wanted(ONE, EMPTY), invocation=ME)
    event_row, row = await shown(engine, EventState.COMPOSE_ERROR)
    assert (row.state, event_row.details.mp4_state) == (CompositionState.FAILED, Mp4State.FAILED)
    assert event(EMPTY) in row.reason
    await handlers.replace(KEY, CompositionKind.STANDARD, changes={"items": playlist(ONE).items}, invocation=ME)
    _, row = await shown(engine, EventState.COMPOSE_PUBLIC)
    assert row.generation == 1
    assert numbers(root / event(FILM) / f"{event(FILM)}.mp4") == [*range(LENGTHS[ONE])]
