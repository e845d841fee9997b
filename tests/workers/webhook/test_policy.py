"""The flags of every domain event of an Event. A new event without a case here fails the first test."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from api.wiring.catalogue import AGGREGATES, catalogue, notified
from domain.event import events
from domain.event.values import EventState, Mp4State, Trigger, VodFile, VodJob, VodWorkflow
from domain.kernel.event import DomainEvent
from domain.provision.values import ProvisionState, ProvisionSummary
from workers.webhook import policy
from workers.webhook.policy import NOTHING, Effect, EventChange, PayloadAction

AT = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
STARTED = {"state": EventState.LIVE_PUBLISHED, "previous": EventState.PRE_LIVE, "trigger": Trigger.OPERATOR}
ADDED = EventChange.STATE | EventChange.METADATA
NOTIFIED = notified()
PROVISION = ProvisionSummary(state=ProvisionState.PROVISIONED, infrastructure_key="k", provisioned_at=AT)
JOB = VodJob(number=7, workflow=VodWorkflow.CAPTURE)

TABLE: list[tuple[str, dict[str, Any], EventChange]] = [
    ("event.registered", {}, NOTHING),
    ("event.described", {"title": "Final"}, EventChange.METADATA),
    ("event.described", {"description": None}, EventChange.METADATA),
    ("event.described", {"thumbnail": "a.jpg"}, EventChange.THUMBNAIL),
    ("event.described", {"thumbnail": None}, EventChange.THUMBNAIL),
    ("event.described", {"title": "Final", "thumbnail": "a.jpg"}, EventChange.METADATA | EventChange.THUMBNAIL),
    ("event.references_changed", {"ref_id": "7"}, EventChange.METADATA),
    ("event.rescheduled", {"scheduled_start": AT}, EventChange.METADATA),
    ("event.publication_window_changed", {"published_start": AT}, EventChange.METADATA),
    ("event.instant_vod_window_changed", {"instant_vod_start": AT}, EventChange.METADATA),
    ("event.archiver_window_changed", {"archiver_start": AT}, EventChange.METADATA),
    ("event.automation_changed", {"auto_start": True}, EventChange.METADATA),
    ("event.provisioning_plan_changed", {"scheduled_provision_at": AT}, EventChange.METADATA),
    ("event.room_assigned", {"room_id": UUID(int=1)}, EventChange.METADATA),
    ("event.classified", {"category_ids": ()}, EventChange.METADATA),
    ("event.tagged", {"tag_ids": (UUID(int=1),)}, EventChange.METADATA),
    ("event.channel_assigned", {"channel_id": None}, EventChange.METADATA),
    ("event.flows_assigned", {"flow_id": UUID(int=1)}, EventChange.METADATA),
    ("event.drm_configured", {"vod_drm": True}, EventChange.METADATA),
    ("event.streaming_configured", {"dvr_length": 60}, EventChange.METADATA),
    ("event.flow_task_changed", {"task_engine_json": "{}"}, EventChange.METADATA),
    ("event.state_changed", STARTED, EventChange.STATE),
    ("event.state_changed", {**STARTED, "actual_live_start": AT, "published_start": AT}, EventChange.STATE),
    ("event.state_changed", {**STARTED, "trigger": Trigger.SCHEDULE}, EventChange.STATE),
    ("event.force_stopped", {"previous": EventState.LIVE_PUBLISHED, "actual_live_end": AT}, EventChange.STATE | EventChange.FORCED),
    ("event.force_stopped", {"previous": EventState.STOPPED}, EventChange.FORCED),
    ("event.mp4_state_changed", {"mp4_state": Mp4State.AVAILABLE, "previous": Mp4State.NONE}, EventChange.MP4_STATE),
    ("event.capturing_changed", {"capturing_live2_vod": True}, EventChange.CAPTURING),
    ("event.capturing_changed", {"capturing_live2_vod": True, "capture_vod_end": AT}, EventChange.CAPTURING | EventChange.METADATA),
    ("event.vod_job_started", {"vod_job": JOB}, NOTHING),
    ("event.vod_job_ended", {"vod_job": JOB}, NOTHING),
    ("event.vod_file_changed", {"vod_file": VodFile()}, NOTHING),
    ("event.quality_measured", {"quality": None}, NOTHING),
    ("event.channel_taken", {"channel_id": UUID(int=1), "order": 2}, NOTHING),
    ("event.channel_refused", {"channel_id": UUID(int=1), "holder": UUID(int=2), "order": 2}, NOTHING),
    ("event.channel_released", {"channel_id": UUID(int=1)}, NOTHING),
    ("event.encoder_started", {"session": 7}, NOTHING),
    ("event.encoder_stopped", {"session": 7}, NOTHING),
    ("event.encoder_failed", {"session": None, "reason": "a"}, NOTHING),
    ("event.audio_inputs_changed", {"audio_inputs": ()}, EventChange.AUDIO),
    ("event.provision_state_changed", {"provision": PROVISION}, EventChange.PROVISION_STATE),
    ("event.provision_time_reached", {"provisioned_for": AT}, NOTHING),
    ("event.termination_time_reached", {"terminated_for": AT}, NOTHING),
    ("event.notification_forced", {}, EventChange.FORCED),
    ("event.deleted", {}, NOTHING),
    ("event.restored", {}, NOTHING),
    ("chapter_point.registered", {"event_id": UUID(int=1), "start_time": "00:00:01"}, EventChange.CHAPTER_POINTS),
    ("chapter_point.amended", {"title": "Goal"}, EventChange.CHAPTER_POINTS),
    ("chapter_point.deleted", {}, EventChange.CHAPTER_POINTS),
    ("chapter_point.restored", {"event_id": UUID(int=1), "start_time": "00:00:01"}, EventChange.CHAPTER_POINTS),
    (
        "chapter_point_property.registered",
        {"owner_id": UUID(int=1), "category": "a", "key": "b"},
        EventChange.CHAPTER_POINTS,
    ),
    ("chapter_point_property.amended", {"value": "c"}, EventChange.CHAPTER_POINTS),
    ("chapter_point_property.deleted", {}, EventChange.CHAPTER_POINTS),
    (
        "chapter_point_property.restored",
        {"owner_id": UUID(int=1), "category": "a", "key": "b"},
        EventChange.CHAPTER_POINTS,
    ),
    ("asset.requested", {"event_id": UUID(int=1), "type": 1, "name": "a", "path": "a", "job": 1}, EventChange.ASSETS),
    (
        "asset.caption_requested",
        {"event_id": UUID(int=1), "name": "a", "path": "a", "language": "de", "kind": "captions", "job": 1},
        EventChange.ASSETS,
    ),
    ("asset.caption_replaced", {"job": 2}, EventChange.ASSETS),
    ("asset.discovered", {"event_id": UUID(int=1), "name": "a", "path": "a", "size": 1, "modified": AT}, EventChange.ASSETS),
    (
        "asset.caption_requested",
        {"event_id": UUID(int=1), "name": "a", "path": "a", "language": "de", "kind": "captions", "job": 1},
        EventChange.ASSETS,
    ),
    ("asset.caption_replaced", {"job": 2}, EventChange.ASSETS),
    (
        "asset.caption_discovered",
        {"event_id": UUID(int=1), "name": "a", "path": "a", "language": "de", "kind": "captions", "size": 1, "modified": AT},
        EventChange.ASSETS,
    ),
    ("asset.completed", {"job_version": 1, "size": 1}, EventChange.ASSETS),
    ("asset.failed", {"job_version": 1, "reason": "no"}, EventChange.ASSETS),
    ("asset.restarted", {"job": 1, "job_version": 1}, EventChange.ASSETS),
    ("asset.renamed", {"name": "b"}, EventChange.ASSETS),
    ("asset.file_changed", {"size": 1, "modified": AT}, EventChange.ASSETS),
    ("asset.removed", {"file_left": True}, EventChange.ASSETS),
    ("asset.file_deleted", {}, NOTHING),
    ("room.registered", {"name": "Hall"}, NOTHING),
    ("room.amended", {"name": "Great hall"}, EventChange.METADATA),
    ("room.amended", {"reference_id": "r"}, NOTHING),
    ("room.deleted", {}, NOTHING),
    ("room.restored", {"name": "Hall"}, NOTHING),
    ("event_type.registered", {"name": "match"}, NOTHING),
    ("event_type.amended", {"name": "game"}, EventChange.METADATA),
    ("event_type.amended", {"colour": None}, EventChange.METADATA),
    ("event_type.amended", {"reference_id": "r"}, NOTHING),
    ("event_type.deleted", {}, NOTHING),
    ("event_type.restored", {"name": "match"}, NOTHING),
    ("category.registered", {"name": "Sport", "label": "sport"}, NOTHING),
    ("category.amended", {"name": "Sports"}, EventChange.METADATA),
    ("category.amended", {"label": "sports"}, EventChange.METADATA),
    ("category.amended", {"description": None}, EventChange.METADATA),
    ("category.deleted", {}, NOTHING),
    ("category.restored", {"name": "Sport", "label": "sport"}, NOTHING),
    ("category_property.registered", {"owner_id": UUID(int=1), "category": "a", "key": "b"}, EventChange.METADATA),
    ("category_property.amended", {"value": "c"}, EventChange.METADATA),
    ("category_property.deleted", {}, EventChange.METADATA),
    ("category_property.restored", {"owner_id": UUID(int=1), "category": "a", "key": "b"}, EventChange.METADATA),
]


def happened(topic: str, **facts: Any) -> DomainEvent:
    made = catalogue().event(topic)
    return made(originator_id=f"{made.aggregate_kind()}:{UUID(int=1)}", originator_version=1, timestamp=AT, **facts)


def changed(event: DomainEvent) -> EventChange:
    return NOTIFIED[event.aggregate_kind()].changes(event)


def effect(write: list[DomainEvent]) -> Effect | None:
    return policy.effect(write, NOTIFIED)


def test_every_domain_event_of_an_event_has_a_case_here() -> None:
    concerned = {event.TOPIC for kind in AGGREGATES if kind.KIND in NOTIFIED for event in kind.EVENTS}
    assert {topic for topic, _, _ in TABLE} == concerned


@pytest.mark.parametrize(("topic", "facts", "flags"), TABLE, ids=[f"{topic} {' '.join(facts)}" for topic, facts, _ in TABLE])
def test_a_domain_event_has_its_flags(topic: str, facts: dict[str, Any], flags: EventChange) -> None:
    assert changed(happened(topic, **facts)) == flags


def test_every_metadata_field_without_a_flag_of_its_own_is_metadata() -> None:
    flags = {name: changed(happened("event.registered", **{name: None})) for name in ("title", "thumbnail", "ref_id")} | {
        name: changed(event.model_construct(_fields_set={name}, **{name: None}))  # type: ignore[arg-type]
        for event in events.FACETS
        for name in event.model_fields
        if name not in DomainEvent.model_fields
    }
    assert {name for name, flag in flags.items() if flag != EventChange.METADATA} == {"thumbnail"}


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        ([happened("event.registered")], Effect(PayloadAction.ADDED, ADDED)),
        ([happened("event.registered", title="Final")], Effect(PayloadAction.ADDED, ADDED)),
        ([happened("event.registered", thumbnail="a.jpg")], Effect(PayloadAction.ADDED, ADDED | EventChange.THUMBNAIL)),
        (
            [
                happened("event.registered"),
                happened("event.state_changed", **STARTED),
                happened("event.mp4_state_changed", mp4_state=Mp4State.AVAILABLE, previous=Mp4State.NONE),
            ],
            Effect(PayloadAction.ADDED, ADDED | EventChange.MP4_STATE),
        ),
        (
            [happened("event.described", thumbnail="a.jpg"), happened("event.state_changed", **STARTED)],
            Effect(PayloadAction.UPDATED, EventChange.THUMBNAIL | EventChange.STATE),
        ),
        ([happened("event.deleted")], Effect(PayloadAction.DELETED, NOTHING)),
        ([happened("event.restored")], Effect(PayloadAction.RESTORED, NOTHING)),
        ([happened("event.notification_forced")], Effect(PayloadAction.UPDATED, EventChange.FORCED)),
        (
            [happened("chapter_point_property.deleted"), happened("chapter_point.deleted")],
            Effect(PayloadAction.UPDATED, EventChange.CHAPTER_POINTS),
        ),
    ],
    ids=lambda given: " ".join(event.TOPIC for event in given) if isinstance(given, list) else "",
)
def test_a_write_has_one_effect(write: list[DomainEvent], expected: Effect) -> None:
    assert effect(write) == expected


def test_a_force_stop_of_a_stopped_event_is_notified_as_forced() -> None:
    stopped = effect([happened("event.force_stopped", previous=EventState.STOPPED)])
    assert stopped == Effect(PayloadAction.UPDATED, EventChange.FORCED)
