"""The encoder of an Event: who is on the air on a channel, and what its sessions report."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import AudioInput, ChannelUse, EventState, Trigger
from domain.kernel.aggregate import Claim
from domain.kernel.command import Command
from domain.kernel.errors import NotFound, PlanOutdated
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


TAKE = MediaEvent.take_channel.on(KEY)
OTHER = UUID(int=9)
REFUSED = fact(events.ChannelRefused, channel_id=HALL, holder=OTHER, order=3)


def start(state: EventState = UNPUBLISHED, *, channel_id: UUID | None = HALL, holder: UUID | None = None) -> Command[MediaEvent]:
    """The start by an operator, with the channel that a plan has found."""
    channel = None if channel_id is None else ChannelUse(channel_id, holder)
    return MediaEvent.change_state.on(KEY, state, trigger=Trigger.OPERATOR, channel=channel)


def waiting(*since: Fact) -> Scenario[MediaEvent]:
    """An Event that was started while another Event is on the air on its channel."""
    return started(REFUSED, *since)


def started(*since: Fact) -> Scenario[MediaEvent]:
    """An Event with a channel that an operator has started, as its version 3."""
    return an_event(ON_HALL, STARTED, *since)


def on_air(*since: Fact) -> Scenario[MediaEvent]:
    return started(TAKEN, *since)


def went(previous: EventState, state: EventState, trigger: Trigger = Trigger.OPERATOR, **times: Any) -> Fact:
    return fact(events.StateChanged, state=state, previous=previous, trigger=trigger, **times)


def ends(**more: Any) -> dict[str, Any]:
    return {"actual_live_end": NOW, **more}


LIVE_FROM_NOW = moved(PRE_LIVE, UNPUBLISHED, actual_live_start=NOW)


class TestTaking:
    def test_a_start_takes_the_channel_in_the_same_append(self) -> None:
        event = an_event(ON_HALL).when(start()).then(LIVE_FROM_NOW, TAKEN)
        assert event.claims() == {Claim("channel.on_air", str(HALL), MediaEvent.stream(KEY))}
        assert event.details.on_air_channel_id == HALL
        assert event.details.encoding is not None
        assert event.details.encoding.version == 4

    def test_the_schedule_takes_it_in_the_same_way(self) -> None:
        history = (fact(events.Rescheduled, scheduled_start=THEN), fact(events.AutomationChanged, auto_start=True))
        command = MediaEvent.start_on_schedule.on(KEY, THEN, scheduled_end=None, channel=ChannelUse(HALL))
        taken = fact(events.ChannelTaken, channel_id=HALL, order=5)
        an_event(ON_HALL, *history).when(command).then(went(PRE_LIVE, UNPUBLISHED, Trigger.SCHEDULE, actual_live_start=NOW), taken)

    def test_a_channel_without_encoders_is_not_taken(self) -> None:
        an_event(ON_HALL).when(start(channel_id=None)).then(LIVE_FROM_NOW)

    def test_a_plan_for_a_former_channel_is_made_again(self) -> None:
        an_event(ON_HALL).when(start(channel_id=PLAZA)).then_refused(PlanOutdated)

    @pytest.mark.parametrize("holder", [None, OTHER])
    def test_an_event_that_is_on_the_air_keeps_its_channel(self, holder: UUID | None) -> None:
        on_air().when(start(PUBLISHED, holder=holder)).then(
            moved(UNPUBLISHED, PUBLISHED, actual_live_start=NOW, published_start=NOW)
        )

    def test_another_state_takes_no_channel(self) -> None:
        an_event(ON_HALL).when(start(EventState.SUSPENDED)).then(moved(PRE_LIVE, EventState.SUSPENDED))

    def test_the_next_start_takes_a_channel_that_was_released(self) -> None:
        on_air(RELEASED).when(start(PUBLISHED)).then(
            moved(UNPUBLISHED, PUBLISHED, actual_live_start=NOW, published_start=NOW),
            fact(events.ChannelTaken, channel_id=HALL, order=6),
        )

    def test_the_former_channel_of_an_event_is_released_with_the_new_one_taken(self) -> None:
        """The state became STOPPED as metadata, which does not affect the encoder, so the Event could get another channel."""
        elsewhere = fact(events.ChannelAssigned, channel_id=PLAZA)
        stopped = went(UNPUBLISHED, STOPPED, Trigger.METADATA)
        taken = fact(events.ChannelTaken, channel_id=PLAZA, order=7)
        scenario = on_air(stopped, elsewhere).when(start(channel_id=PLAZA))
        event = scenario.then(moved(STOPPED, UNPUBLISHED, actual_live_start=NOW), RELEASED, taken)
        assert {claim.value for claim in event.claims()} == {str(PLAZA)}


class TestWaiting:
    def test_a_start_is_recorded_although_another_event_is_on_the_air(self) -> None:
        event = an_event(ON_HALL).when(start(holder=OTHER)).then(LIVE_FROM_NOW, REFUSED)
        assert event.claims() == frozenset()
        assert event.details.awaited_channel_id == HALL

    def test_it_takes_the_channel_when_it_is_free(self) -> None:
        event = waiting().when(TAKE).then(TAKEN)
        assert event.details.on_air_channel_id == HALL
        assert event.details.awaited_channel_id is None

    def test_a_further_start_is_refused_again(self) -> None:
        again = fact(events.ChannelRefused, channel_id=HALL, holder=OTHER, order=5)
        waiting().when(start(PUBLISHED, holder=OTHER)).then(
            moved(UNPUBLISHED, PUBLISHED, actual_live_start=NOW, published_start=NOW), again
        )

    @pytest.mark.parametrize(
        "since",
        [
            [moved(UNPUBLISHED, STOPPED)],
            [went(UNPUBLISHED, EventState.SUSPENDED, Trigger.METADATA), went(EventState.SUSPENDED, UNPUBLISHED, Trigger.METADATA)],
            [moved(UNPUBLISHED, PUBLISHED)],
            [fact(events.ForceStopped, previous=UNPUBLISHED)],
            [fact(events.EventDeleted)],
            [fact(events.EventDeleted), fact(events.EventRestored)],
            [fact(events.ChannelAssigned, channel_id=PLAZA)],
            [TAKEN],
            [TAKEN, RELEASED],
        ],
        ids=[
            "stopped",
            "in another state meanwhile",
            "started while its channel has no encoders",
            "stopped by force",
            "deleted",
            "restored",
            "moved to another channel",
            "on the air",
            "taken off the air",
        ],
    )
    def test_the_wait_ends(self, since: list[Fact]) -> None:
        scenario = waiting(*since)
        assert scenario.root is not None
        assert scenario.root.details.awaited_channel_id is None
        scenario.when(TAKE).then_nothing()


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
            TAKE,
            MediaEvent.release_channel.on(KEY, HALL),
            MediaEvent.force_stop.on(KEY),
        ],
    )
    def test_none_of_it_moves_the_etag(self, command: Command[MediaEvent]) -> None:
        scenario = waiting() if command == TAKE else on_air(moved(UNPUBLISHED, STOPPED))
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
