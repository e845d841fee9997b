"""POST /webhook/notify/{eventId}. See docs/reference/api/webhooks.md."""

from __future__ import annotations

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.kernel.errors import NotFound
from tests.domain.event.events_given import KEY, an_event, deleted, nothing
from tests.domain.scenario import THEN, fact


def test_each_request_is_recorded_and_does_not_change_the_event() -> None:
    before = an_event().root
    assert before is not None
    event = (
        an_event(fact(events.NotificationForced)).when(MediaEvent.force_notification.on(KEY)).then(fact(events.NotificationForced))
    )
    assert event.details == before.details
    assert (event.version, event.shown_version, event.shown_on, event.created_on) == (3, 1, THEN, THEN)


def test_an_unknown_or_deleted_event_cannot_be_notified() -> None:
    nothing().when(MediaEvent.force_notification.on(KEY)).then_refused(NotFound)
    deleted().when(MediaEvent.force_notification.on(KEY)).then_refused(NotFound)
    an_event(fact(events.NotificationForced)).when(MediaEvent.delete.on(KEY)).then(fact(events.EventDeleted))
