"""POST /webhook/notify/{eventId} (ours): document 2, "Events", IsForced."""

from __future__ import annotations

from domain.kernel.errors import NotFound
from domain.media_event import events
from domain.media_event.commands import DeleteEvent, ForceNotification
from tests.domain.media_event.events_given import KEY, an_event, deleted, nothing
from tests.domain.scenario import THEN, fact


def test_each_order_is_recorded_and_leaves_the_event_as_it_was() -> None:
    before = an_event().root
    assert before is not None
    event = an_event(fact(events.NotificationForced)).when(ForceNotification(KEY)).then(fact(events.NotificationForced))
    assert event.details == before.details
    assert (event.version, event.modified_on, event.created_on) == (3, THEN, THEN)


def test_an_event_that_is_not_there_has_nothing_to_tell() -> None:
    nothing().when(ForceNotification(KEY)).then_refused(NotFound)
    deleted().when(ForceNotification(KEY)).then_refused(NotFound)
    an_event(fact(events.NotificationForced)).when(DeleteEvent(KEY)).then(fact(events.Deleted))
