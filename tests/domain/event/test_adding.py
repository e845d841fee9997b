"""POST /event/: an Event is added, or the Event with this id is updated."""

from __future__ import annotations

import pytest

from domain.event import events
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Mp4State, Trigger
from domain.kernel.errors import Conflict, Malformed
from tests.domain.event.events_given import HALL, KEY, an_event, deleted, in_state, nothing
from tests.domain.scenario import NOW, THEN, fact


def test_an_unknown_id_registers_an_event_with_the_values() -> None:
    command = AddOrUpdateEvent(KEY, {"title": "Final", "room_id": HALL, "auto_start": True})
    event = nothing().when(command).then(fact(events.EventRegistered, title="Final", room_id=HALL, auto_start=True))
    assert (event.id, event.key, event.version) == (f"event:{KEY}", str(KEY), 1)
    assert (event.created_on, event.modified_on) == (NOW, NOW)
    assert event.details.title == "Final"
    assert event.details.state is EventState.PRE_LIVE


def test_default_values_are_not_written() -> None:
    nothing().when(AddOrUpdateEvent(KEY, {"title": None, "auto_start": False, "tag_ids": ()})).then(fact(events.EventRegistered))


def test_a_new_event_may_have_states() -> None:
    command = AddOrUpdateEvent(KEY, {"title": "Final"}, state=EventState.VOD_PUBLIC, mp4_state=Mp4State.AVAILABLE)
    event = (
        nothing()
        .when(command)
        .then(
            fact(events.EventRegistered, title="Final"),
            fact(events.StateChanged, state=EventState.VOD_PUBLIC, previous=EventState.PRE_LIVE, trigger=Trigger.METADATA),
            fact(events.Mp4StateChanged, mp4_state=Mp4State.AVAILABLE, previous=Mp4State.NONE),
        )
    )
    assert event.version == 3


def test_a_new_event_with_the_default_states_is_only_registered() -> None:
    command = AddOrUpdateEvent(KEY, {}, state=EventState.PRE_LIVE, mp4_state=Mp4State.NONE)
    nothing().when(command).then(fact(events.EventRegistered))


def test_an_update_changes_only_the_given_fields() -> None:
    given = an_event(fact(events.RoomAssigned, room_id=HALL))
    event = given.when(AddOrUpdateEvent(KEY, {"title": "Semi-final"})).then(fact(events.Described, title="Semi-final"))
    assert event.details.room_id == HALL
    assert (event.version, event.created_on, event.modified_on) == (3, THEN, NOW)


def test_an_update_with_the_present_values_changes_nothing() -> None:
    event = an_event().when(AddOrUpdateEvent(KEY, {"title": "Final", "room_id": None}, state=EventState.PRE_LIVE)).then_nothing()
    assert (event.version, event.modified_on) == (1, THEN)


def test_the_trigger_of_a_state_change_is_recorded() -> None:
    command = AddOrUpdateEvent(KEY, {}, state=EventState.SUSPENDED, trigger=Trigger.FLOW)
    an_event().when(command).then(
        fact(events.StateChanged, state=EventState.SUSPENDED, previous=EventState.PRE_LIVE, trigger=Trigger.FLOW)
    )


def test_the_id_of_a_deleted_event_is_a_conflict() -> None:
    deleted().when(AddOrUpdateEvent(KEY, {"title": "Final"})).then_refused(Conflict)


@pytest.mark.parametrize("name", ["dvr_length", "max_bitrate", "min_bitrate"])
def test_a_negative_number_is_refused_and_zero_is_not(name: str) -> None:
    refused = nothing().when(AddOrUpdateEvent(KEY, {"title": "x", name: -1})).then_refused(Malformed)
    assert [error.field for error in refused.errors] == [name]
    nothing().when(AddOrUpdateEvent(KEY, {name: 0})).then(fact(events.EventRegistered, **{name: 0}))


@pytest.mark.parametrize("name", ["drm_json", "task_engine_json"])
@pytest.mark.parametrize("text", ["{", "", "{'a': 1}", "[" * 100_000])
def test_a_text_with_invalid_json_is_refused(name: str, text: str) -> None:
    refused = an_event().when(AddOrUpdateEvent(KEY, {name: text})).then_refused(Malformed)
    assert [error.field for error in refused.errors] == [name]


@pytest.mark.parametrize("text", ['{"drm_data": {"a": 1}}', "[]", "null", ' {"a":1}'])
def test_json_is_kept_as_sent(text: str) -> None:
    an_event().when(AddOrUpdateEvent(KEY, {"drm_json": text})).then(fact(events.DrmConfigured, drm_json=text))


def test_all_errors_are_reported_together() -> None:
    wrong = {"dvr_length": -1, "min_bitrate": -2, "drm_json": "{"}
    refused = nothing().when(AddOrUpdateEvent(KEY, wrong)).then_refused(Malformed)
    assert {error.field for error in refused.errors} == set(wrong)


def test_bad_input_is_reported_before_the_conflict() -> None:
    deleted().when(AddOrUpdateEvent(KEY, {"dvr_length": -1})).then_refused(Malformed)


def test_the_rest_of_an_update_with_a_new_channel_applies_while_streaming() -> None:
    given = in_state(EventState.LIVE_PUBLISHED)
    given.when(AddOrUpdateEvent(KEY, {"title": "Semi-final", "channel_id": HALL})).then(fact(events.Described, title="Semi-final"))


def test_only_a_command_with_a_new_key_creates() -> None:
    assert AddOrUpdateEvent(KEY, {}, new=True).creates
    assert not AddOrUpdateEvent(KEY, {}).creates
