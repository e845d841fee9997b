"""The log's record of Events and their channels: orders to start, holds of channels, and the acts of the schedule.

The log is folded here by separate rules, not by the aggregate's, so faults of the aggregate are found too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

_EVENTS = """
SELECT originator_id, topic, state, extract(epoch FROM recorded_at)::float8
FROM events WHERE originator_id LIKE 'event:%%' ORDER BY position
"""
LIVE: Final = (1, 2)
STOPPED: Final = 4
_ORDERS: Final = ("operator", "schedule")
_SCHEDULE: Final = "schedule"
NEVER: Final = float("inf")


@dataclass(slots=True)
class Order:
    """A request of a client, or of the schedule, for an Event on the air, from `at` until it is stopped or started once more."""

    event: str
    channel: str
    at: float
    until: float = NEVER


@dataclass(slots=True)
class Hold:
    """The time for which an Event is on the air on a channel. `failed` is the reason why its encoder was given up."""

    event: str
    channel: str
    since: float
    until: float = NEVER
    failed: str = ""

    def overlaps(self, since: float, until: float) -> bool:
        return self.since < until and since < self.until


@dataclass
class AirLog:
    """The folded log. `channels` maps each Event to the name that its channel has at the publishing points, `names` ids to these
    names."""

    channels: Mapping[str, str]
    names: Mapping[str, str]
    orders: list[Order] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    scheduled: dict[tuple[str, bool], list[float]] = field(default_factory=dict)
    """The times when the schedule started (True) and stopped an Event."""
    sessions: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """The reported numbers with their times, by channel."""
    states: dict[str, int] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    topics: Counter[str] = field(default_factory=Counter)

    def take_all(self, records: Iterable[tuple[str, str, Mapping[str, Any], float]]) -> AirLog:
        for key, topic, content, at in records:
            self.take(key, topic, content=content, at=at)
        return self

    def take(self, key: str, topic: str, *, content: Mapping[str, Any], at: float) -> None:
        self.topics[topic] += 1
        match topic.removeprefix("event."):
            case "registered":
                self.states[key] = int(content.get("state", 0))
            case "state_changed":
                self._changed(key, content["state"], trigger=content["trigger"], at=at)
            case "force_stopped":
                self._changed(key, STOPPED, trigger="", at=at)
            case "deleted":
                self.deleted.add(key)
                self._end_order(key, at)
            case "channel_taken":
                self.holds.append(Hold(key, self.names[content["channel_id"]], at))
            case "channel_released":
                self._released(key, at)
            case "encoder_started":
                self.sessions.setdefault(self.channels[key], []).append((content["session"], at))
            case "encoder_failed":
                for hold in self._open_holds(key):
                    hold.failed = content["reason"]

    def _changed(self, key: str, state: int, *, trigger: str, at: float) -> None:
        self.states[key] = state
        if trigger == _SCHEDULE:
            self.scheduled.setdefault((key, state in LIVE), []).append(at)
        if state in LIVE and trigger in _ORDERS and key in self.channels:
            self._end_order(key, at)
            self.orders.append(Order(key, self.channels[key], at))
        elif state not in LIVE:
            self._end_order(key, at)

    def _end_order(self, key: str, at: float) -> None:
        for order in self.orders:
            if order.event == key and order.until == NEVER:
                order.until = at

    def _released(self, key: str, at: float) -> None:
        for hold in self._open_holds(key):
            hold.until = at

    def _open_holds(self, key: str) -> list[Hold]:
        return [hold for hold in self.holds if hold.event == key and hold.until == NEVER]


def air_log(conninfo: str, *, channels: Mapping[str, str], names: Mapping[str, str]) -> AirLog:
    """Read and fold the log. This blocks."""
    log = AirLog(channels, names)
    with psycopg.connect(conninfo) as connection:
        for stream, topic, state, at in connection.execute(_EVENTS.encode()):
            log.take(stream.partition(":")[2], topic, content=json.loads(bytes(state)), at=at)
    return log
