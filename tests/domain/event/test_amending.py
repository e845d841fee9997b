"""PATCH /event/{id}: the facets of an Event, and the steps of a JSON Patch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from domain.event import events
from domain.event.commands import AmendEvent, Expectation, Replacement
from domain.event.facets import Particulars
from domain.event.values import EventDetails, EventState, Mp4State, Trigger
from domain.kernel.errors import Malformed, NotFound, Refused
from domain.kernel.event import DomainEvent
from domain.provision.values import ProvisionState, ProvisionSummary
from tests.domain.event.events_given import HALL, KEY, NIL, PLAZA, an_event, deleted, in_state, nothing
from tests.domain.scenario import NOW, THEN, fact

EVENING = datetime(2031, 5, 1, 20, 15, tzinfo=UTC)


def patch(*steps: Expectation | Replacement) -> AmendEvent:
    return AmendEvent(KEY, steps)


def sets(**values: Any) -> AmendEvent:
    return patch(*(Replacement(name, value) for name, value in values.items()))


OWN_VALUES: list[tuple[type[DomainEvent], dict[str, Any]]] = [
    (events.Described, {"title": "Semi-final", "thumbnail": "http://t/1.jpg"}),
    (events.ReferencesChanged, {"ref_id": "r/1"}),
    (
        events.Rescheduled,
        {"scheduled_start": NOW, "scheduled_end": EVENING, "scheduled_channel_start": NOW, "scheduled_channel_end": NOW},
    ),
    (events.PublicationWindowChanged, {"published_start": NOW, "published_end": EVENING}),
    (events.InstantVodWindowChanged, {"instant_vod_start": NOW, "instant_vod_end": EVENING}),
    (events.ArchiverWindowChanged, {"archiver_start": NOW, "archiver_end": EVENING}),
    (
        events.AutomationChanged,
        {
            "auto_start": True,
            "auto_end": True,
            "auto_publish": True,
            "auto_start_publications": True,
            "auto_expire_publishing_points": True,
        },
    ),
    (
        events.ProvisioningPlanChanged,
        {
            "infrastructure_profile_id": HALL,
            "scheduled_provision_at": NOW,
            "scheduled_terminate_at": EVENING,
            "auto_provision_infrastructure": True,
            "auto_terminate_infrastructure": True,
        },
    ),
    (events.RoomAssigned, {"room_id": HALL}),
    (events.Classified, {"event_type_id": HALL, "category_ids": (HALL, PLAZA)}),
    (events.Tagged, {"tag_ids": (HALL, PLAZA)}),
    (events.ChannelAssigned, {"channel_id": HALL}),
    (events.FlowsAssigned, {"flow_id": HALL, "remixflow_id": PLAZA, "archiverflow_id": NIL}),
    (events.DrmConfigured, {"drm_json": "{}", "vod_drm": True}),
    (
        events.StreamingConfigured,
        {"additional_streaming_options": "a=b", "dvr_length": 30, "max_bitrate": 8_000, "min_bitrate": 500},
    ),
    (events.FlowTaskChanged, {"task_engine_json": "[]"}),
]


def with_texts(facet: type[DomainEvent], values: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each field of a facet: those of the table, and any other text."""
    fields = {name: field for name, field in facet.model_fields.items() if name not in DomainEvent.model_fields}
    return {name: f"a {name}" for name, field in fields.items() if field.annotation == str | None} | values


FACETS = [(facet, with_texts(facet, values)) for facet, values in OWN_VALUES]
"""The facets with a value for each of their fields. The values of fields that are not any text are in the table above."""


@pytest.mark.parametrize(("facet", "values"), FACETS, ids=[facet.TOPIC for facet, _ in FACETS])
def test_each_facet_is_changed_by_a_domain_event_of_its_own(facet: type[DomainEvent], values: dict[str, Any]) -> None:
    event = an_event().when(sets(**values)).then(fact(facet, **values))
    assert {name: getattr(event.details, name) for name in values} == values


def test_every_field_is_in_one_facet_and_has_a_value() -> None:
    named = [name for _, values in FACETS for name in values]
    assert sorted(named) == sorted(Particulars.model_fields)
    assert [facet for facet, _ in FACETS] == list(events.FACETS)


@pytest.mark.parametrize(("facet", "values"), FACETS, ids=[facet.TOPIC for facet, _ in FACETS])
def test_each_facet_can_be_cleared(facet: type[DomainEvent], values: dict[str, Any]) -> None:
    empty = {name: getattr(EventDetails(), name) for name in values}
    event = an_event(fact(facet, **values)).when(sets(**empty)).then(fact(facet, **empty))
    assert {name: getattr(event.details, name) for name in empty} == empty


@pytest.mark.parametrize(("facet", "values"), FACETS, ids=[facet.TOPIC for facet, _ in FACETS])
def test_a_facet_with_the_same_values_changes_nothing(facet: type[DomainEvent], values: dict[str, Any]) -> None:
    event = an_event(fact(facet, **values)).when(sets(**values)).then_nothing()
    assert (event.version, event.modified_on) == (2, THEN)


def test_only_the_fields_that_differ_are_written() -> None:
    given = an_event(fact(events.ReferencesChanged, ref_id="r", external_id="x"))
    given.when(sets(title="Final", ref_id="r", external_id="y")).then(fact(events.ReferencesChanged, external_id="y"))


def test_one_patch_over_several_facets_is_one_event_for_each_in_a_fixed_order() -> None:
    an_event().when(sets(room_id=HALL, vod_drm=True, title="Semi-final")).then(
        fact(events.Described, title="Semi-final"),
        fact(events.RoomAssigned, room_id=HALL),
        fact(events.DrmConfigured, vod_drm=True),
    )


def test_the_same_moment_in_another_time_zone_is_no_change() -> None:
    given = an_event(fact(events.Rescheduled, scheduled_start=EVENING))
    given.when(sets(scheduled_start=EVENING.astimezone(timezone(timedelta(hours=2))))).then_nothing()


def test_no_steps_change_nothing() -> None:
    an_event().when(patch()).then_nothing()


def test_the_last_of_two_steps_on_a_field_applies() -> None:
    steps = (Replacement("title", "One"), Replacement("title", "Two"))
    an_event().when(patch(*steps)).then(fact(events.Described, title="Two"))


def test_a_change_and_its_reversal_change_nothing() -> None:
    an_event().when(patch(Replacement("title", "One"), Replacement("title", "Final"))).then_nothing()


def test_a_patch_applies_if_its_test_succeeds() -> None:
    steps = (Expectation("title", "Final"), Replacement("title", "Two"))
    an_event().when(patch(*steps)).then(fact(events.Described, title="Two"))


def test_a_patch_with_a_failed_test_is_refused() -> None:
    given = an_event()
    given.when(patch(Replacement("ref_id", "r"), Expectation("title", "Other"))).then_refused(Refused)
    given.when(patch(Expectation("title", "Other"), Replacement("ref_id", "r"))).then_refused(Refused)


def test_a_test_sees_the_steps_before_it() -> None:
    steps = (Replacement("title", None), Expectation("title", None), Replacement("title", "Two"), Expectation("title", "Two"))
    an_event().when(patch(*steps)).then(fact(events.Described, title="Two"))
    an_event().when(patch(Replacement("title", "One"), Expectation("title", "Final"))).then_refused(Refused)


@pytest.mark.parametrize(
    ("name", "value"),
    [("title", "Final"), ("room_id", None), ("auto_end", False), ("tag_ids", ()), ("state", EventState.PRE_LIVE), ("mp4_state", 0)],
)
def test_a_test_may_name_any_field(name: str, value: object) -> None:
    an_event().when(patch(Expectation(name, value))).then_nothing()


def test_a_patch_sets_states_with_the_trigger_metadata() -> None:
    event = (
        an_event()
        .when(sets(state=EventState.LIVE_UNPUBLISHED, mp4_state=Mp4State.GENERATING))
        .then(
            fact(
                events.StateChanged,
                state=EventState.LIVE_UNPUBLISHED,
                previous=EventState.PRE_LIVE,
                trigger=Trigger.METADATA,
                actual_live_start=NOW,
            ),
            fact(events.Mp4StateChanged, mp4_state=Mp4State.GENERATING, previous=Mp4State.NONE),
        )
    )
    assert (event.details.state, event.details.mp4_state) == (EventState.LIVE_UNPUBLISHED, Mp4State.GENERATING)


@pytest.mark.parametrize("changes", [{"dvr_length": -1}, {"max_bitrate": -1}, {"min_bitrate": -1}, {"drm_json": "{"}])
def test_a_bad_value_changes_nothing_at_all(changes: dict[str, Any]) -> None:
    refused = an_event().when(sets(title="Semi-final", **changes)).then_refused(Malformed)
    assert [error.field for error in refused.errors] == list(changes)


def test_bad_input_is_reported_first() -> None:
    """400 before 404 before 409."""
    bad = patch(Expectation("title", "Other"), Replacement("drm_json", "{"))
    nothing().when(bad).then_refused(Malformed)
    deleted().when(bad).then_refused(Malformed)
    an_event().when(bad).then_refused(Malformed)


def test_a_patch_does_not_add_an_event() -> None:
    refused = nothing().when(sets(title="Final")).then_refused(NotFound)
    assert (refused.kind, refused.key) == ("event", str(KEY))


@pytest.mark.parametrize("steps", [(), (Replacement("title", "Two"),), (Expectation("title", "Other"),)])
def test_a_deleted_event_cannot_be_patched(steps: tuple[Expectation | Replacement, ...]) -> None:
    deleted().when(patch(*steps)).then_refused(NotFound)


HELD = {"channel_id": HALL, "infrastructure_profile_id": HALL}


@pytest.mark.parametrize("state", [EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED, EventState.LIVE_STARTING])
def test_channel_and_profile_do_not_change_while_streaming_and_the_rest_applies(state: EventState) -> None:
    event = (
        in_state(state)
        .when(sets(**HELD, scheduled_provision_at=NOW, room_id=PLAZA))
        .then(fact(events.ProvisioningPlanChanged, scheduled_provision_at=NOW), fact(events.RoomAssigned, room_id=PLAZA))
    )
    assert (event.details.channel_id, event.details.infrastructure_profile_id) == (None, None)
    in_state(state).when(sets(**HELD)).then_nothing()


@pytest.mark.parametrize(
    "state", [s for s in EventState if s not in (EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED, EventState.LIVE_STARTING)]
)
def test_channel_and_profile_change_in_every_other_state(state: EventState) -> None:
    changed = (fact(events.ProvisioningPlanChanged, infrastructure_profile_id=HALL), fact(events.ChannelAssigned, channel_id=HALL))
    in_state(state).when(sets(**HELD)).then(*changed)


@pytest.mark.parametrize("state", ProvisionState)
def test_channel_and_profile_do_not_change_while_provisioning(state: ProvisionState) -> None:
    provision = ProvisionSummary(state=state, infrastructure_key="k", provisioned_at=NOW)
    root = an_event(fact(events.ProvisionStateChanged, provision=provision)).root
    assert root is not None
    root.amend(NOW, {**HELD, "title": "Semi-final"})
    changed = {name for event in root.collect_events() if isinstance(event, DomainEvent) for name in event.facts()}
    assert changed == ({"title"} if state is ProvisionState.PROVISIONING else {"title", *HELD})


def test_a_channel_can_be_cleared_only_after_the_stream() -> None:
    root = an_event(fact(events.ChannelAssigned, channel_id=HALL)).root
    assert root is not None
    root.change_state(NOW, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR)
    root.amend(NOW, {"channel_id": None})
    assert root.details.channel_id == HALL
    root.change_state(NOW, EventState.STOPPED, trigger=Trigger.OPERATOR)
    root.amend(NOW, {"channel_id": None})
    assert root.details.channel_id is None
