"""Scenarios of one composition, and playlists."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from domain.composition import events
from domain.composition.aggregate import Composition
from domain.composition.values import CompositionKind, Item, ItemType, Marker, Playlist
from tests.domain.scenario import NOW, Fact, Scenario, fact, given

KEY, EVENT, SOURCE, OTHER = UUID(int=7), UUID(int=1), UUID(int=2), UUID(int=3)
JOB, NEXT_JOB = 17, 18
LATER: datetime = NOW + timedelta(hours=1)


def item(value: object = SOURCE, **properties: Any) -> Item:
    return Item(type=ItemType.EVENT, value=str(value), properties=properties)


def marked(*times: tuple[str, str], **properties: Any) -> Item:
    markers = tuple(Marker(start_at=start, duration=duration) for start, duration in times)
    return Item(type=ItemType.EVENT, value=str(SOURCE), properties=properties, markers=markers)


def playlist(*items: Item, name: str = "Evening", looped: bool = False) -> Playlist:
    return Playlist(name=name, items=items or (item(),), looped=looped)


PLAYLIST, ANOTHER = playlist(), playlist(item(OTHER, start="00:00:01"), name="Night")


def composed(**more: Any) -> Fact:
    facts = {
        "event_id": EVENT,
        "kind": CompositionKind.STANDARD,
        "playlist": PLAYLIST,
        "private": False,
        "live_stream_start": None,
        "client": "studio",
        "generation": 0,
        "cloned_from": None,
    }
    return fact(events.Composed, **{**facts, **more})


def replaced(new: Playlist = ANOTHER) -> Fact:
    return fact(events.PlaylistReplaced, playlist=new, client="studio")


def cloned(new: Playlist = ANOTHER) -> Fact:
    return fact(events.Cloned, source_event_id=OTHER, playlist=new, client="studio")


def started(job: int = JOB, generation: int = 1, **more: Any) -> Fact:
    return fact(events.GenerationStarted, job=job, generation=generation, **more)


def generated(version: int = 5) -> Fact:
    return fact(events.Generated, job_version=version)


def failed(version: int = 5, reason: str = "no") -> Fact:
    return fact(events.GenerationFailed, job_version=version, reason=reason)


REMOVED = fact(events.CompositionRemoved)


def a_composition(*since: Fact, first: Fact | None = None) -> Scenario[Composition]:
    """A composition whose film is being made, and the events since."""
    return given(Composition, KEY, *((composed(), started(), *since) if first is None else (first, *since)))
