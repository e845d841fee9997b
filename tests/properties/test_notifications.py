"""Any writes, in any order and any batches: subscribers get what a naive comparison of the Event before and after each write
gives."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent, AmendEvent
from domain.event.values import EventDetails
from domain.kernel.command import Command
from domain.kernel.errors import DomainError
from domain.kernel.ports import Invocation
from domain.record.kinds.chapter_point import ChapterPoint
from domain.record.kinds.custom_property import ChapterPointProperty
from domain.record.record import Record, RegisterRecord
from domain.webhook.aggregate import Webhook
from projections.log.executor import CommandExecutor
from projections.log.reader import head
from tests.properties.histories import event_commands
from tests.properties.test_views import afresh
from tests.support.clock import NOON
from tests.workers.webhook.feeding import fed

EVENTS = [UUID(int=number) for number in (1, 2)]
WEBHOOKS = [UUID(int=number) for number in (101, 102)]
POINTS = [UUID(int=number) for number in (11, 12)]
PROPERTY = UUID(int=13)
FLAG_OF = {
    "state": "stateChanged",
    "mp4_state": "mp4StateChanged",
    "thumbnail": "thumbnailChanged",
    "capturing_live2_vod": "capturingLive2VodFlagChanged",
    "audio_inputs": "audioChanged",
}
NOT_SHOWN = {"vod_job", "vod_file", "encoding"}
OF_STATES = {"actual_live_start", "actual_live_end"}
OF_PUBLICATION = {"published_start", "published_end"}
FLAGS = [
    *("stateChanged", "metadataChanged", "thumbnailChanged", "isForced", "audioChanged", "mp4StateChanged"),
    *("chapterPointsChanged", "assetsChanged", "provisionStateChanged", "capturingLive2VodFlagChanged"),
]

Told = tuple[UUID, int, str, dict[str, Any], int]


def _lives(kind: type[Record], key: UUID, *, values: st.SearchStrategy[dict[str, Any]], changes: st.SearchStrategy[Any]) -> Any:
    return st.one_of(
        st.builds(RegisterRecord, st.just(key), st.just(kind), values),
        st.builds(kind.amend.on, st.just(key), changes),
        st.builds(kind.delete.on, st.just(key)),
    )


webhooks = st.sampled_from(WEBHOOKS).flatmap(
    lambda key: _lives(
        Webhook,
        key,
        values=st.sampled_from([None, *EVENTS]).map(lambda event: {"webhook_url": "https://hooks.test", "event_id": event}),
        changes=st.fixed_dictionaries({"disabled_at": st.none() | st.just(NOON)}),
    )
)
points = st.sampled_from(POINTS).flatmap(
    lambda key: _lives(
        ChapterPoint,
        key,
        values=st.sampled_from(EVENTS).map(lambda event: {"event_id": event, "start_time": "00:00:01"}),
        changes=st.fixed_dictionaries({"title": st.sampled_from(["a", "b"])}),
    )
)
properties = _lives(
    ChapterPointProperty,
    PROPERTY,
    values=st.sampled_from(POINTS).map(lambda owner: {"owner_id": owner, "category": "a", "key": "b"}),
    changes=st.fixed_dictionaries({"value": st.sampled_from(["a", "b"])}),
)


def _unambiguous(command: Command[MediaEvent]) -> bool:
    """Return False for a write that sets both a time of publication and a state, because either may have set the time."""
    if isinstance(command, AddOrUpdateEvent):
        names = {*command.changes, *(() if command.state is None else ("state",))}
    else:
        names = {step.name for step in command.steps} if isinstance(command, AmendEvent) else set()
    return not (names & OF_PUBLICATION and "state" in names)


of_events = st.sampled_from(EVENTS).flatmap(
    lambda key: event_commands(key) | st.builds(MediaEvent.force_notification.on, st.just(key))
)
traffic = st.lists(of_events.filter(_unambiguous) | of_events.filter(_unambiguous) | webhooks | points | properties, max_size=40)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(traffic, st.integers(1, 8), st.integers(0, 10_000))
async def test_notifications_match_a_naive_comparison(inner: Core, commands: list[Command[Any]], at_once: int, most: int) -> None:
    executor = afresh(inner)
    first = RegisterRecord(WEBHOOKS[0], Webhook, {"webhook_url": "https://hooks.test"})
    naive = [notification for command in [first, *commands] for notification in await _notified(inner, executor, command)]
    fan = fed(inner, most=most)
    await fan.feed(writes_at_once=at_once)
    rows = await inner.database.rows(
        "SELECT webhook, position, ordering_key, payload, state FROM deliveries ORDER BY position, webhook"
    )
    assert [
        (webhook, position, ordering_key, from_json(text), state) for webhook, position, ordering_key, text, state in rows
    ] == naive


async def _notified(inner: Core, executor: CommandExecutor, command: Command[Any]) -> list[Told]:
    """Execute a command and compare the state before and after it."""
    subscribers = [await inner.streams.load(f"webhook:{key}") for key in WEBHOOKS]
    before, start = await _details(inner, str(command.key)), await head(inner.database)
    with suppress(DomainError):
        await executor.execute(command, invocation=Invocation.by("somebody"))
    end, ordering_key = await head(inner.database), await _event_of(inner, command)
    after = await _details(inner, ordering_key)
    if end == start or after is None:
        return []
    action, flags = _compared(command, before, after)
    if action == "Updated" and not flags:
        return []
    payload = {
        **dict.fromkeys(FLAGS, False),
        **dict.fromkeys(flags, True),
        "action": action,
        "eventId": ordering_key,
        **_shown(after),
    }
    wanted = [subscriber for subscriber in subscribers if isinstance(subscriber, Webhook) and not subscriber.deleted]
    wanted = [subscriber for subscriber in wanted if str(subscriber.details.event_id or ordering_key) == ordering_key]
    return [(UUID(subscriber.key), end, ordering_key, payload, 2 if subscriber.details.disabled_at else 0) for subscriber in wanted]


async def _event_of(inner: Core, command: Command[Any]) -> str:
    """The id of the Event of a command. For commands of webhooks it is no Event's."""
    key = str(command.key)
    if command.kind() is ChapterPointProperty:
        root = await inner.streams.load(command.stream)
        key = str(root.details.owner_id) if isinstance(root, Record) else ""
    if command.kind() in (ChapterPoint, ChapterPointProperty):
        root = await inner.streams.load(ChapterPoint.stream(key))
        return str(root.details.event_id) if isinstance(root, Record) else ""
    return key


async def _details(inner: Core, ordering_key: str) -> EventDetails | None:
    root = await inner.streams.load(MediaEvent.stream(ordering_key))
    return root.details.model_copy() if isinstance(root, MediaEvent) else None


def _compared(command: Command[Any], before: EventDetails | None, after: EventDetails) -> tuple[str, set[str]]:
    if command.kind() is not MediaEvent:
        return "Updated", {"chapterPointsChanged"}
    if command == MediaEvent.force_notification.on(cast("UUID", command.key)):
        return "Updated", {"isForced"}
    old, new = (before or EventDetails()).model_dump(), after.model_dump()
    different = {name for name in new if new[name] != old[name]} - NOT_SHOWN
    if before is not None and "date_deleted" in different:
        return "Restored" if after.date_deleted is None else "Deleted", set()
    flags = {flag for name, flag in FLAG_OF.items() if name in different}
    if command == MediaEvent.force_stop.on(cast("UUID", command.key)):
        flags |= {"isForced"}
    metadata = different - FLAG_OF.keys() - OF_STATES - (OF_PUBLICATION if "state" in different else set())
    if before is None:
        return "Added", {*flags, "stateChanged", "metadataChanged"}
    return "Updated", {*flags, "metadataChanged"} if metadata else flags


def _shown(details: EventDetails) -> dict[str, Any]:
    return {
        "referenceId": details.ref_id or "",
        "externalId": details.external_id or "",
        "state": details.state.name,
        "mp4State": details.mp4_state.name,
        "provisionState": None,
    }
