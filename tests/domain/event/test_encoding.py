"""The encoder of an Event: who is on the air on a channel, and what its sessions report."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import AudioInput, EventState, Trigger
from domain.kernel.aggregate import Claim
from domain.kernel.command import Command
from domain.kernel.errors import NotFound
from tests.domain.event.events_given import HALL, KEY, PLAZA, an_event, moved, nothing
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact

PRE_LIVE, UNPUBLISHED, PUBLISHED = EventState.PRE_LIVE, EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED
STOPPED = EventState.STOPPED
ON_HALL = fact(events.ChannelAssigned, channel_id=HALL)
STARTED = moved(PRE_LIVE, UNPUBLISHED)
TAKEN = fact(events.ChannelTaken, channel_id=HALL, order=3)
RELEASED = fact(events.ChannelReleased, channel_id=HALL)
SESSION = 41
ENCODING = fact(events.EncoderStarted, session=SESSION)
ENGLISH = AudioInput(id="a1", name="English", index=0, language="en")


def take(order: int = 3, channel_id: UUID = HALL) -> Command[MediaEvent]:
    return MediaEvent.take_channel.on(KEY, channel_id, order=order)


def started(*since: Fact) -> Scenario[MediaEvent]:
    """An Event with a channel that an operator has started, as its version 3."""
    return an_event(ON_HALL, STARTED, *since)


def on_air(*since: Fact) -> Scenario[MediaEvent]:
    return started(TAKEN, *since)


def went(previous: EventState, state: EventState, trigger: Trigger = Trigger.OPERATOR, **times: Any) -> Fact:
    return fact(events.StateChanged, state=state, previous=previous, trigger=trigger, **times)


def ends(**more: Any) -> dict[str, Any]:
    return {"actual_live_end": NOW, **more}


class TestTaking:
    def test_an_event_that_was_started_takes_its_channel(self) -> None:
        event = started().when(take()).then(TAKEN)
        assert event.claims() == {Claim("channel.on_air", str(HALL), MediaEvent.stream(KEY))}
        assert event.details.on_air_channel_id == HALL
        assert event.details.encoding is not None
        assert event.details.encoding.version == 4

    @pytest.mark.parametrize(
        ("scenario", "command"),
        [
            (an_event(ON_HALL), take()),
            (an_event(ON_HALL, went(PRE_LIVE, UNPUBLISHED, Trigger.METADATA)), take()),
            (started(moved(UNPUBLISHED, STOPPED)), take()),
            (started(fact(events.ForceStopped, previous=UNPUBLISHED)), take()),
            (started(fact(events.EventDeleted)), take()),
            (started(fact(events.EventDeleted), fact(events.EventRestored)), take()),
            (started(), take(channel_id=PLAZA)),
            (on_air(), take()),
            (on_air(moved(UNPUBLISHED, PUBLISHED)), take(order=5)),
            (on_air(RELEASED), take()),
        ],
        ids=[
            "never started",
            "live by metadata alone",
            "stopped since",
            "stopped by force since",
            "deleted since",
            "deleted and restored since",
            "of another channel",
            "repeated",
            "live in public while it sends",
            "repeated after the release",
        ],
    )
    def test_an_order_that_is_out_of_date_changes_nothing(
        self, scenario: Scenario[MediaEvent], command: Command[MediaEvent]
    ) -> None:
        scenario.when(command).then_nothing()

    def test_the_next_order_takes_a_channel_that_was_released(self) -> None:
        on_air(RELEASED, moved(UNPUBLISHED, PUBLISHED)).when(take(order=6)).then(
            fact(events.ChannelTaken, channel_id=HALL, order=6)
        )

    def test_the_former_channel_of_an_event_is_released_with_the_new_one_taken(self) -> None:
        """The state became STOPPED as metadata, which does not affect the encoder, so the Event could get another channel."""
        elsewhere = fact(events.ChannelAssigned, channel_id=PLAZA)
        stopped = went(UNPUBLISHED, STOPPED, Trigger.METADATA)
        scenario = on_air(stopped, elsewhere, moved(STOPPED, UNPUBLISHED))
        event = scenario.when(take(order=7, channel_id=PLAZA)).then(RELEASED, fact(events.ChannelTaken, channel_id=PLAZA, order=7))
        assert {claim.value for claim in event.claims()} == {str(PLAZA)}


class TestReleasing:
    def test_a_stop_releases_the_channel_in_the_same_append(self) -> None:
        event = (
            on_air()
            .when(MediaEvent.change_state.on(KEY, STOPPED, trigger=Trigger.OPERATOR))
            .then(moved(UNPUBLISHED, STOPPED, **ends()), RELEASED)
        )
        assert event.claims() == frozenset()

    def test_the_end_of_the_schedule_releases_it_too(self) -> None:
        scheduled = MediaEvent.end_on_schedule.on(KEY, THEN)
        history = (fact(events.Rescheduled, scheduled_end=THEN), fact(events.AutomationChanged, auto_end=True))
        event = an_event(ON_HALL, *history, went(PRE_LIVE, UNPUBLISHED, Trigger.SCHEDULE), TAKEN).when(scheduled)
        event.then(went(UNPUBLISHED, STOPPED, Trigger.SCHEDULE, **ends()), RELEASED)

    @pytest.mark.parametrize("state", [EventState.SUSPENDED, EventState.VOD_PRIVATE, EventState.LIVE_STOPPING])
    def test_no_other_state_does(self, state: EventState) -> None:
        assert (
            on_air().when(MediaEvent.change_state.on(KEY, state, trigger=Trigger.OPERATOR)).then(moved(UNPUBLISHED, state)).claims()
        )

    def test_a_forced_stop_releases_the_channel_of_a_stopped_event_too(self) -> None:
        stopped = went(UNPUBLISHED, STOPPED, Trigger.METADATA)
        on_air(stopped).when(MediaEvent.force_stop.on(KEY)).then(fact(events.ForceStopped, previous=STOPPED), RELEASED)

    def test_a_deletion_releases_the_channel_and_a_restoration_does_not_take_it_again(self) -> None:
        on_air().when(MediaEvent.delete.on(KEY)).then(RELEASED, fact(events.EventDeleted))
        restored = on_air(RELEASED, fact(events.EventDeleted)).when(MediaEvent.restore.on(KEY)).then(fact(events.EventRestored))
        assert restored.claims() == frozenset()

    def test_a_release_keeps_the_state_and_is_for_one_channel(self) -> None:
        assert on_air().when(MediaEvent.release_channel.on(KEY, HALL)).then(RELEASED).details.state is UNPUBLISHED
        on_air().when(MediaEvent.release_channel.on(KEY, PLAZA)).then_nothing()
        on_air(RELEASED).when(MediaEvent.release_channel.on(KEY, HALL)).then_nothing()


class TestSessions:
    def test_starts_and_stops_are_recorded_once(self) -> None:
        on_air().when(MediaEvent.record_encoder_start.on(KEY, SESSION)).then(ENCODING)
        on_air(ENCODING).when(MediaEvent.record_encoder_start.on(KEY, SESSION)).then_nothing()
        on_air(RELEASED).when(MediaEvent.record_encoder_start.on(KEY, SESSION)).then_nothing()
        stopped = fact(events.EncoderStopped, session=SESSION, reason="")
        on_air(ENCODING, RELEASED).when(MediaEvent.record_encoder_stop.on(KEY, SESSION)).then(stopped)
        on_air(ENCODING, stopped).when(MediaEvent.record_encoder_stop.on(KEY, SESSION)).then_nothing()

    def test_the_stop_of_an_earlier_session_says_nothing_of_the_present_one(self) -> None:
        later = fact(events.EncoderStarted, session=SESSION + 1)
        on_air(ENCODING, later).when(MediaEvent.record_encoder_stop.on(KEY, SESSION)).then_nothing()
        on_air(ENCODING, later).when(MediaEvent.record_encoder_start.on(KEY, SESSION)).then_nothing()

    def test_an_encoder_that_is_given_up_frees_the_channel(self) -> None:
        failed = fact(events.EncoderFailed, session=SESSION, reason="it ended with exit code 1")
        command = MediaEvent.record_encoder_failure.on(KEY, 4, session=SESSION, reason="it ended with exit code 1")
        event = on_air(ENCODING).when(command).then(failed, RELEASED)
        assert event.details.state is UNPUBLISHED
        assert event.claims() == frozenset()
        on_air(ENCODING, failed, RELEASED).when(command).then_nothing()

    def test_the_failure_of_an_earlier_order_does_not_end_a_later_one(self) -> None:
        taken = fact(events.ChannelTaken, channel_id=HALL, order=7)
        again = (RELEASED, moved(UNPUBLISHED, STOPPED), moved(STOPPED, UNPUBLISHED), taken)
        on_air(*again).when(MediaEvent.record_encoder_failure.on(KEY, 4, session=SESSION, reason="late")).then_nothing()

    @pytest.mark.parametrize(
        "command",
        [
            MediaEvent.record_encoder_start.on(KEY, SESSION),
            MediaEvent.record_encoder_failure.on(KEY, 4, session=None, reason="no encoder"),
            MediaEvent.take_channel.on(KEY, HALL, order=3),
            MediaEvent.release_channel.on(KEY, HALL),
            MediaEvent.force_stop.on(KEY),
        ],
    )
    def test_none_of_it_moves_the_etag(self, command: Command[MediaEvent]) -> None:
        scenario = started() if command == take() else on_air(moved(UNPUBLISHED, STOPPED))
        before = scenario.root
        event = scenario.when(command)
        assert event.refusal is None
        assert event.happened
        assert event.after is not None
        assert before is not None
        assert (event.after.shown_version, event.after.shown_on) == (before.shown_version, THEN)

    def test_an_unknown_event_has_no_encoder(self) -> None:
        assert nothing().when(MediaEvent.record_encoder_start.on(KEY, SESSION)).then_refused(NotFound).key == str(KEY)

    def test_a_session_of_a_deleted_event_still_ends(self) -> None:
        scenario = on_air(ENCODING, RELEASED, fact(events.EventDeleted))
        scenario.when(MediaEvent.record_encoder_stop.on(KEY, SESSION)).then(fact(events.EncoderStopped, session=SESSION, reason=""))


class TestAudioInputs:
    def test_other_inputs_are_recorded_and_the_same_are_not(self) -> None:
        ended = fact(events.AudioInputsChanged, audio_inputs=(ENGLISH,))
        event = on_air().when(MediaEvent.record_audio_inputs.on(KEY, [ENGLISH])).then(ended)
        assert event.details.audio_inputs == (ENGLISH,)
        assert event.shown_on == THEN
        on_air(ended).when(MediaEvent.record_audio_inputs.on(KEY, [ENGLISH])).then_nothing()
        on_air(ended).when(MediaEvent.record_audio_inputs.on(KEY, [])).then(fact(events.AudioInputsChanged, audio_inputs=()))

    def test_nothing_is_recorded_where_there_was_none_and_is_none(self) -> None:
        on_air().when(MediaEvent.record_audio_inputs.on(KEY, [])).then_nothing()
        on_air(RELEASED, fact(events.EventDeleted)).when(MediaEvent.record_audio_inputs.on(KEY, [ENGLISH])).then_nothing()
