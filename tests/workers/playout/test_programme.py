"""The state of a playout: the changing playlist, the skipped items, and the place from which the next session continues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from domain.composition.values import Item, ItemType
from domain.kernel.errors import Unavailable
from tests.projections.log.helpers import until
from tests.support.playout import Shelf, item
from workers.playout import programme as programme_module
from workers.playout.programme import PlayoutProgramme
from workers.ports.playout import PlayoutPlaylist, item_label

PATIENCE = 30.0


class Failing(Shelf):
    """A shelf whose first answers are faults, like those of an unavailable database."""

    faults = 2
    asked = 0

    async def of(self, event_id: UUID) -> PlayoutPlaylist | None:
        self._fail()
        return await super().of(event_id)

    async def keep(self, place: Mapping[str, Any]) -> None:
        self.asked += 1
        self._fail()
        await super().keep(place)

    def _fail(self) -> None:
        if self.faults:
            self.faults -= 1
            raise Unavailable("the database does not answer")


class Hanging(Shelf):
    """A database that never answers."""

    asked = 0

    async def keep(self, place: Mapping[str, Any]) -> None:
        self.asked += 1
        await asyncio.Event().wait()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(tmp_path)
    shelf.put("a", "b", "c")
    return shelf


@asynccontextmanager
async def running(*works: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(work) for work in works]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_is_left_out_is_noted_once_for_each_reason_until_it_was_played(shelf: Shelf) -> None:
    programme = shelf.programme()
    place = programme.successor(None)
    assert place is not None
    for reason in ("gone", "gone", "broken", "broken"):
        programme.skip(place, item=item("a"), reason=reason)
    programme.began(place, at=1.0)
    programme.skip(place, item=item("a"), reason="broken")
    await until(lambda: len(shelf.notes) == 3, seconds=PATIENCE)
    assert programme.skipped == 5
    assert shelf.notes[0] == "item 1 of the playlist, a, was skipped: gone"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("https://user:s3cret@h.example/a.mp4?key=s3cret#s3cret", "https://h.example/a.mp4"),
        ("films/a.mp4", "films/a.mp4"),
        ("http://[s3cret", "a URL that cannot be read"),
    ],
)
async def test_nothing_secret_of_an_item_is_shown_or_kept(shelf: Shelf, value: str, words: str) -> None:
    assert item_label(item(value)) == words
    assert item_label(Item(type=ItemType.EVENT, value=str(UUID(int=1)))) == f"the Event {UUID(int=1)}"
    shelf.put(value)
    programme = shelf.programme()
    place = programme.successor(None)
    assert place is not None
    programme.measured(place.mark, 5.0)
    programme.began(place, at=1.0)
    assert "s3cret" not in str(programme.place())


async def test_while_nobody_answers_the_playlist_stays_and_the_place_is_kept_later(tmp_path: Path) -> None:
    shelf = Failing(tmp_path)
    shelf.put("a")
    programme = shelf.programme(look=0.01)
    place = programme.successor(None)
    assert place is not None
    programme.began(place, at=1.0)
    programme.began(place, at=2.0)
    async with running(programme.follow(), programme.keep()):
        await until(lambda: shelf.place.get("anchor", {}).get("at") == 2.0, seconds=PATIENCE)
        assert programme.playlist.items == (item("a"),)
        shelf.put("b")
        await until(lambda: programme.playlist.items == (item("b"),), seconds=PATIENCE)


async def test_a_playout_that_ends_just_after_an_item_began_keeps_its_place(shelf: Shelf) -> None:
    """The pause between two writes is not over by then."""
    programme = shelf.programme(look=PATIENCE)
    place = programme.successor(None)
    assert place is not None
    programme.measured(place.mark, 5.0)
    async with running(programme.keep()):
        await until(lambda: "lengths" in shelf.place, seconds=PATIENCE)
        programme.began(place, at=1.0)
    assert shelf.place["anchor"]["at"] == 1.0


@pytest.mark.parametrize("answer", ["none", "a fault"])
async def test_a_playout_ends_also_where_its_place_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(programme_module, "LAST", 0.05)
    shelf = Hanging(tmp_path) if answer == "none" else Failing(tmp_path)
    shelf.put("a")
    programme = shelf.programme(look=PATIENCE)
    place = programme.successor(None)
    assert place is not None
    programme.began(place, at=1.0)
    task = asyncio.create_task(programme.keep())
    await until(lambda: shelf.asked == 1, seconds=PATIENCE)
    task.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert shelf.asked == 2, "it was tried once more"


async def test_a_composition_that_was_removed_and_made_anew_is_taken(shelf: Shelf) -> None:
    """The versions of the new composition restart at numbers that were already read."""
    programme = shelf.programme(look=0.01)
    async with running(programme.follow()):
        shelf.playlist = PlayoutPlaylist(programme.playlist.version, (item("x"),))
        await until(lambda: programme.playlist.items == (item("x"),), seconds=PATIENCE)


@pytest.mark.parametrize("place", [{"anchor": 5}, {"anchor": {"index": "x"}}, {"lengths": []}, {"lengths": {"a": "long"}}, {}])
async def test_a_place_that_cannot_be_read_begins_anew(shelf: Shelf, place: Mapping[str, Any]) -> None:
    programme = shelf.programme(last_place=place)
    result = programme.due()
    assert result is not None
    assert (result.place.index, result.offset) == (0, 0.0)


async def test_what_a_session_kept_is_where_the_next_goes_on(shelf: Shelf) -> None:
    before = shelf.programme()
    second = before.successor(before.successor(None))
    assert second is not None
    before.measured(second.mark, 60.0)
    before.began(second, at=before.now() - 45.0)
    result = shelf.programme(last_place=before.place()).due()
    assert result is not None
    assert result.place == second
    assert 44.0 < result.offset < 60.0
    before.over(second)
    result = PlayoutProgramme.due(shelf.programme(last_place=before.place()))
    assert result is not None
    assert (result.place.index, result.offset) == (2, 0.0), "what was added since"
