"""Comparison of the notifications that arrived with those that follow from the log.

The log is read and folded again, event by event, so every payload is compared byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

import psycopg

from api.wiring.catalogue import catalogue, notified
from domain.event.aggregate import MediaEvent
from domain.kernel.mapper import EventMapper
from faults.receivers import Receiver
from projections.log.reader import FIRST_EPOCH
from projections.webhook.keys import delivery_id, position_of
from workers.webhook.fanout import payload
from workers.webhook.policy import effect
from workers.webhook.sender.attempt import form_body

_EVENTS = """
SELECT position, originator_id, originator_version, topic, state, metadata->>'correlation_id', metadata->>'command_id',
    extract(epoch FROM recorded_at)::float8,
    (SELECT coalesce(max(epoch), 1) FROM log_epochs WHERE since_position < events.position)
FROM events WHERE position > %s AND originator_id LIKE 'event:%%' ORDER BY position
"""


@dataclass(frozen=True, slots=True)
class Notification:
    """The notification of one write to one Event. `at` is the time when the log recorded it."""

    position: int
    ordering_key: str
    transaction: str
    at: float
    body: str
    epoch: int = FIRST_EPOCH


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a receiver.

    `lost` notifications were never answered with 200; `unknown` ones are not in the log; `wrong` ones differ from the log or from
    their first arrival, or have no valid signature.
    """

    receiver: Receiver
    requests: int
    unique: int
    lost: int
    disordered: int
    unknown: int
    wrong: int
    latencies: Sequence[float]

    @property
    def repeats(self) -> int:
        return self.requests - self.unique


def notifications(conninfo: str, after: int) -> list[Notification]:
    """Return the notifications of writes after that position. This blocks."""
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute(_EVENTS, (after,)).fetchall()
    mapper, roots, all_notifications = EventMapper(catalogue()), dict[str, MediaEvent](), list[Notification]()
    for (stream, _), write in groupby(rows, key=lambda row: (row[1], row[6])):
        notification = _notification(stream, list(write), roots=roots, mapper=mapper)
        if notification is not None:
            all_notifications.append(notification)
    return all_notifications


def _notification(stream: str, rows: Sequence[Any], *, roots: dict[str, MediaEvent], mapper: EventMapper) -> Notification | None:
    events = [mapper.read(topic, stream=stream, version=version, state=state) for _, _, version, topic, state, *_ in rows]
    for event in events:
        roots[stream] = event.mutate(roots.get(stream))  # type: ignore[assignment]
    changes = effect(events, notified())
    if changes is None:
        return None
    position, *_, transaction, _, at, epoch = rows[-1]
    ordering_key = stream.partition(":")[2]
    body = payload(ordering_key, roots[stream].details, effect=changes)
    return Notification(position, ordering_key, transaction, at, body, epoch)


def expected_deliveries(receiver: Receiver, all_notifications: Iterable[Notification]) -> dict[UUID, Notification]:
    return {
        delivery_id(
            receiver.webhook, notification.position, ordering_key=notification.ordering_key, epoch=notification.epoch
        ): notification
        for notification in all_notifications
    }


def missing(receiver: Receiver, all_notifications: Iterable[Notification]) -> int:
    return len(expected_deliveries(receiver, all_notifications).keys() - receiver.accepted.keys())


def findings(receiver: Receiver, all_notifications: Sequence[Notification], *, given_up: float | None = None) -> Findings:
    """Return the findings of a receiver. What arrived until `given_up` may have been lost from the log since."""
    expected = expected_deliveries(receiver, all_notifications)
    arrived = {delivery: expected[delivery] for delivery in receiver.arrivals if delivery in expected}
    return Findings(
        receiver,
        requests=receiver.requests,
        unique=len(receiver.arrivals),
        lost=len(expected.keys() - receiver.accepted.keys()),
        disordered=_disordered(arrived.values()),
        unknown=sum(at > (given_up or 0) for delivery, (at, _) in receiver.arrivals.items() if delivery not in expected),
        wrong=receiver.altered
        + receiver.unsigned
        + sum(_differs(receiver, delivery, notification) for delivery, notification in arrived.items()),
        latencies=[receiver.arrivals[delivery][0] - notification.at for delivery, notification in arrived.items()],
    )


def _disordered(firsts: Iterable[Notification]) -> int:
    """Return the number of notifications that arrived after a later one of the same Event."""
    latest: dict[str, int] = {}
    behind = 0
    for notification in firsts:
        behind += notification.position < latest.get(notification.ordering_key, 0)
        latest[notification.ordering_key] = max(latest.get(notification.ordering_key, 0), notification.position)
    return behind


def _differs(receiver: Receiver, delivery: UUID, notification: Notification) -> bool:
    body = notification.body.encode() if receiver.as_json else form_body(notification.body)
    return receiver.arrivals[delivery][1] != body or position_of(delivery) != notification.position


def settled(receivers: Iterable[Receiver], all_notifications: Sequence[Notification], *, since: float) -> float:
    """Return the seconds after `since` until all that was written before had arrived."""
    last = since
    for receiver in receivers:
        for delivery, notification in expected_deliveries(receiver, all_notifications).items():
            if notification.at <= since:
                last = max(last, receiver.accepted.get(delivery, since))
    return last - since


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def by_transaction(all_notifications: Iterable[Notification]) -> Mapping[str, int]:
    return {notification.transaction: notification.position for notification in all_notifications}
