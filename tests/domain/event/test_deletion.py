"""DELETE /event/{id} and PUT /event/restore/{id}."""

from __future__ import annotations

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventDetails, EventState
from domain.kernel.errors import NotFound
from tests.domain.event.events_given import KEY, an_event, deleted, moved, nothing
from tests.domain.scenario import NOW, THEN, fact


def test_a_deleted_event_has_the_time_of_its_deletion() -> None:
    event = an_event().when(MediaEvent.delete.on(KEY)).then(fact(events.EventDeleted))
    assert event.deleted
    assert event.details.date_deleted == NOW


def test_a_deleted_event_cannot_be_deleted_again() -> None:
    deleted().when(MediaEvent.delete.on(KEY)).then_refused(NotFound)
    nothing().when(MediaEvent.delete.on(KEY)).then_refused(NotFound)


def test_a_restored_event_is_as_before() -> None:
    before = an_event(moved(EventState.PRE_LIVE, EventState.STOPPED, actual_live_end=THEN)).root
    given = deleted(moved(EventState.PRE_LIVE, EventState.STOPPED, actual_live_end=THEN))
    event = given.when(MediaEvent.restore.on(KEY)).then(fact(events.EventRestored))
    assert before is not None
    assert not event.deleted
    assert event.details == before.details
    assert (event.version, event.modified_on) == (4, NOW)


def test_restoring_an_event_that_is_not_deleted_changes_nothing() -> None:
    assert an_event().when(MediaEvent.restore.on(KEY)).then_nothing().modified_on == THEN


def test_an_unknown_event_cannot_be_restored() -> None:
    nothing().when(MediaEvent.restore.on(KEY)).then_refused(NotFound)


def test_a_restored_event_can_be_changed_and_deleted_again() -> None:
    again = an_event(fact(events.EventDeleted), fact(events.EventRestored))
    again.when(AddOrUpdateEvent(KEY, {"title": "Semi-final"})).then(fact(events.Described, title="Semi-final"))
    again.when(MediaEvent.delete.on(KEY)).then(fact(events.EventDeleted))


def test_two_events_share_no_state() -> None:
    """New Events do not share one default object."""
    event = an_event().root
    assert event is not None
    event.amend(NOW, {"title": "Changed", "tag_ids": (KEY,)})
    other = MediaEvent.register(KEY, NOW, {})
    assert other.details == EventDetails()
