"""Rules of single kinds of records: playlists and archiver streams."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.kernel.errors import Malformed
from domain.record.kinds.archiver_stream import ArchiverStream
from domain.record.kinds.playlist import Playlist
from domain.record.record import RegisterRecord
from tests.domain.scenario import NOW, Scenario, fact, given

KEY = str(UUID(int=7))
PLAYLIST_REGISTERED, PLAYLIST_AMENDED, PLAYLIST_DELETED, _ = Playlist.EVENTS
STREAM_REGISTERED, STREAM_AMENDED, _, _ = ArchiverStream.EVENTS
HOUR = timedelta(hours=1)
RECORDING: dict[str, Any] = {
    "profile_id": "p",
    "capture_id": "c",
    "start_time": NOW,
    "end_time": NOW + HOUR,
    "ism_url": "http://origin/a.ism",
}


def a_recording() -> Scenario[Any]:
    return given(ArchiverStream, 7, fact(STREAM_REGISTERED, **RECORDING))


def test_only_a_new_playlist_needs_a_name() -> None:
    new: Scenario[Any] = given(Playlist, KEY)
    refused = new.when(RegisterRecord(KEY, Playlist, {})).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["name"]
    existing: Scenario[Any] = given(Playlist, KEY, fact(PLAYLIST_REGISTERED, name="Best of"))
    existing.when(RegisterRecord(KEY, Playlist, {})).then_nothing()
    existing.when(RegisterRecord(KEY, Playlist, {"name": "Worst of"})).then(fact(PLAYLIST_AMENDED, name="Worst of"))
    gone: Scenario[Any] = given(Playlist, KEY, fact(PLAYLIST_REGISTERED, name="Best of"), fact(PLAYLIST_DELETED))
    gone.when(RegisterRecord(KEY, Playlist, {})).then_refused(Malformed)


def test_a_recording_may_end_when_it_starts() -> None:
    new: Scenario[Any] = given(ArchiverStream, 7)
    values = {**RECORDING, "end_time": NOW}
    stream = new.when(RegisterRecord(7, ArchiverStream, values)).then(fact(STREAM_REGISTERED, **values))
    assert (stream.id, stream.details.uploaded, stream.details.streaming_formats) == ("archiver_stream:7", False, ())


def test_a_recording_does_not_end_before_it_starts() -> None:
    new: Scenario[Any] = given(ArchiverStream, 7)
    refused = new.when(RegisterRecord(7, ArchiverStream, {**RECORDING, "end_time": NOW - HOUR})).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["endTime"]


@pytest.mark.parametrize(
    "changes",
    [
        {"end_time": NOW - HOUR},
        {"start_time": NOW + 2 * HOUR},
        {"start_time": NOW + 2 * HOUR, "end_time": NOW + HOUR},
    ],
)
def test_a_changed_time_is_compared_with_the_stored_one(changes: dict[str, Any]) -> None:
    refused = a_recording().when(ArchiverStream.amend.on(7, changes)).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["endTime"]


def test_both_times_may_change_together() -> None:
    changes = {"start_time": NOW + 2 * HOUR, "end_time": NOW + 3 * HOUR}
    a_recording().when(ArchiverStream.amend.on(7, changes)).then(fact(STREAM_AMENDED, **changes))
    a_recording().when(ArchiverStream.amend.on(7, {"uploaded": True})).then(fact(STREAM_AMENDED, uploaded=True))
