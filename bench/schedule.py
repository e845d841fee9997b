"""The schedule of a broadcaster, generated with a fixed seed: bodies for the API, and the same as domain events that fill a log.

The schedule grows in time: the number of Events per day is constant, so a hundred times as many Events cover a hundred times as
many days.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

from bench.load import MARK
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from domain.kernel.aggregate import AggregateRoot
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.category import Category
from domain.record.kinds.channel import Channel
from domain.record.kinds.event_type import EventType
from domain.record.kinds.flow import Flow
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import Record
from domain.webhook.aggregate import Webhook

_SPACES: dict[type[Record], int] = {EventType: 11, Tag: 12, Category: 13, Channel: 14, Flow: 15}

SEED = 20310102
WATCHED = 100
BEGIN = datetime(2028, 1, 1, tzinfo=UTC)
A_DAY = 1_000
ROOMS = 200
TYPES = 50
TAGS = 2_000
CATEGORIES = 40
CHANNELS = 20
SUBJECTS = (
    "Premier League",
    "City Council",
    "Evening News",
    "Champions Cup",
    "Parliament",
    "Marathon",
    "Open Air Concert",
    "Ice Hockey",
)
CLUBS = ("Ajax", "Sparta", "Union", "Rovers", "Dynamo", "Olympia", "Wanderers", "Fortuna", "Racing", "Athletic", "Viking", "Slavia")
_DESCRIPTION = "Live from the main hall with commentary, replays and interviews after the end"


def wire(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def post_bodies(count: int) -> list[str]:
    """Return bodies of about 330 bytes for POST /event/; every request has its own references."""
    random = Random(SEED)
    return [_post_body(random) for _ in range(count)]


def _post_body(random: Random) -> str:
    start = BEGIN + timedelta(minutes=random.randrange(1_000_000))
    return json.dumps(
        {
            "title": _title(random),
            "refId": f"schedule-{MARK}",
            "externalId": f"urn:planning:event:{random.getrandbits(48):012x}",
            "description": _DESCRIPTION,
            "scheduledStart": wire(start),
            "scheduledEnd": wire(start + timedelta(minutes=105)),
            "autoStart": random.random() < 0.5,
            "autoEnd": random.random() < 0.5,
            "autoPublish": True,
        },
        separators=(",", ":"),
    )


def patch_body() -> str:
    """Return a body that always changes the Event."""
    return json.dumps([{"op": "replace", "path": "/title", "value": f"Delayed until {MARK}"}], separators=(",", ":"))


def _title(random: Random) -> str:
    return f"{random.choice(SUBJECTS)}: {random.choice(CLUBS)} - {random.choice(CLUBS)}"


def key(number: int, *, space: int) -> UUID:
    """Return an id that looks random (version 4) but can be generated again."""
    return UUID(int=Random(f"{space}:{number}").getrandbits(128), version=4)


def room_id(number: int) -> UUID:
    return key(number, space=1)


def room_name(number: int) -> str:
    return f"Studio {number:03d}"


def linked_id(kind: type[Record], number: int) -> UUID:
    """Return the id of a type, tag, category, channel or flow."""
    return key(number, space=_SPACES[kind])


def linked_name(kind: type[Record], number: int) -> str:
    return f"{kind.KIND} {number:04d}"


def rooms() -> Iterator[AggregateRoot]:
    for number in range(ROOMS):
        yield Room.register(room_id(number), BEGIN, {"name": room_name(number), "reference_id": f"room-{number}"})


def catalogue() -> Iterator[AggregateRoot]:
    """Yield all resources that the Events of a catalogued schedule link to, except rooms."""
    for kind, many in ((EventType, TYPES), (Tag, TAGS)):
        for number in range(many):
            yield kind.register(linked_id(kind, number), BEGIN, {"name": linked_name(kind, number)})
    for number in range(CATEGORIES):
        name = linked_name(Category, number)
        yield Category.register(linked_id(Category, number), BEGIN, {"name": name, "label": name})
    for other, many in ((Channel, CHANNELS), (Flow, 1)):
        for number in range(many):
            text = SentConfiguration("{}", {}, {})
            values = {"name": linked_name(other, number), "configuration_json": text}
            yield other.register(linked_id(other, number), BEGIN, values)


def reference(number: int) -> str:
    return f"schedule-{number:012d}"


def start_of(number: int) -> datetime:
    """Return the start time of an Event. Starts are spread evenly over each day."""
    day, slot = divmod(number, A_DAY)
    return BEGIN + timedelta(days=day, seconds=slot * 86_400 // A_DAY)


def scheduled(numbers: range, *, total: int, catalogued: bool = False) -> Iterator[AggregateRoot]:
    """Yield Events of a schedule of `total`. The present is one day before its end: earlier Events have a state, later ones have
    none."""
    present = start_of(max(total - A_DAY, 0))
    random = Random(f"{SEED}:{numbers.start}")
    for number in numbers:
        start = start_of(number)
        facts = _facts(number, start, random) | (_links(random) if catalogued else {})
        event = MediaEvent.register(key(number, space=2), start - timedelta(days=7), facts)
        state = _state(start, present, random)
        if state is not None:
            event.change_state(start, state, trigger=Trigger.OPERATOR)
        yield event


def _facts(number: int, start: datetime, random: Random) -> dict[str, object]:
    return {
        "title": f"{_title(random)} {number:07d}",
        "ref_id": reference(number),
        "external_id": f"urn:planning:event:{number:012x}",
        "description": _DESCRIPTION,
        "scheduled_start": start,
        "scheduled_end": start + timedelta(minutes=105),
        "room_id": room_id(random.randrange(ROOMS)),
        "auto_start": random.random() < 0.5,
        "auto_publish": True,
    }


def _links(random: Random) -> dict[str, object]:
    """Return links to a type, a channel and a category each, two or three tags, and a flow for one Event in ten."""

    def random_link(kind: type[Record], many: int) -> UUID:
        return linked_id(kind, random.randrange(many))

    return {
        "event_type_id": random_link(EventType, TYPES),
        "channel_id": random_link(Channel, CHANNELS),
        "category_ids": (random_link(Category, CATEGORIES),),
        "tag_ids": tuple(dict.fromkeys(random_link(Tag, TAGS) for _ in range(random.choice((2, 3))))),
        "flow_id": random_link(Flow, 1) if random.random() < 0.1 else None,
    }


def _state(start: datetime, present: datetime, random: Random) -> EventState | None:
    if start > present:
        return None
    if start > present - timedelta(minutes=45):
        return EventState.LIVE_PUBLISHED
    draw = random.random()
    return EventState.STOPPED if draw < 0.8 else EventState.VOD_PUBLIC if draw < 0.9 else EventState.VOD_PRIVATE


def lives(numbers: range, *, space: int) -> Iterator[AggregateRoot]:
    """Yield whole lives of ten domain events each: registered, described, rescheduled, moved, through the states, described
    again."""
    random = Random(f"{SEED}:{space}:{numbers.start}")
    for number in numbers:
        start = start_of(number)
        event = MediaEvent.register(key(number, space=space), start - timedelta(days=7), _facts(number, start, random))
        event.amend(start - timedelta(days=6), {"title": f"{_title(random)} (new)"})
        event.amend(start - timedelta(days=5), {"scheduled_end": start + timedelta(minutes=120)})
        event.amend(start - timedelta(days=4), {"room_id": room_id(ROOMS)})
        _live_through(event, _STATES, start)
        event.amend(start + timedelta(days=1), {"description": "Recorded. " + _DESCRIPTION})
        yield event


def webhooks(numbers: range) -> Iterator[AggregateRoot]:
    """Yield a webhook for every hundredth of the lives."""
    for number in numbers:
        values = {"webhook_url": f"https://receiver.example/{number}", "event_id": key(number * WATCHED, space=3)}
        yield Webhook.register(key(number, space=5), start_of(0) - timedelta(days=30), values)


def _live_through(event: MediaEvent, states: Sequence[EventState], start: datetime) -> None:
    for step, state in enumerate(states):
        event.change_state(start + timedelta(minutes=20 * step), state, trigger=Trigger.OPERATOR)


_STATES = (
    EventState.LIVE_UNPUBLISHED,
    EventState.LIVE_PUBLISHED,
    EventState.STOPPED,
    EventState.VOD_PRIVATE,
    EventState.VOD_PUBLIC,
)


def beginnings(numbers: range, *, space: int) -> Iterator[AggregateRoot]:
    """Yield Events that are registered and have no further event."""
    random = Random(f"{SEED}:{space}:{numbers.start}")
    for number in numbers:
        start = start_of(number)
        yield MediaEvent.register(key(number, space=space), start - timedelta(days=7), _facts(number, start, random))
