"""What must have arrived, recomputed from the log alone, beside what did arrive.

The log is read and folded here again, event by event, so a notification is right only if it is, byte for byte, what its write did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

import psycopg

from api.wiring.catalogue import catalogue
from domain.kernel.mapper import EventMapper
from domain.media_event.aggregate import MediaEvent
from faults.receivers import Receiver
from projections.deliveries.keys import delivery_id, position_of
from workers.deliveries.form_body import form_body
from workers.webhooks.payload import payload
from workers.webhooks.policy import effect

_EVENTS = """
SELECT position, originator_id, originator_version, topic, state, metadata->>'correlation_id', metadata->>'command_id',
    extract(epoch FROM recorded_at)::float8
FROM events WHERE position > %s AND originator_id LIKE 'event:%%' ORDER BY position
"""


@dataclass(frozen=True, slots=True)
class Notification:
    """What one write did to one Event. `at` is when the log took it in."""

    position: int
    ordering_key: str
    transaction: str
    at: float
    body: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Of one receiver. `lost`: never answered with 200. `strange`: it is not in the log. `wrong`: not what the log says, not the
    same as the first time, or not signed."""

    receiver: Receiver
    requests: int
    unique: int
    lost: int
    disordered: int
    strange: int
    wrong: int
    latencies: Sequence[float]

    @property
    def repeats(self) -> int:
        return self.requests - self.unique


def notifications(conninfo: str, after: int) -> list[Notification]:
    """Of the Events that were made behind that position. Blocks."""
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute(_EVENTS, (after,)).fetchall()
    mapper, roots, found = EventMapper(catalogue()), dict[str, MediaEvent](), list[Notification]()
    for (stream, _), write in groupby(rows, key=lambda row: (row[1], row[6])):
        told = _told(stream, list(write), roots=roots, mapper=mapper)
        if told is not None:
            found.append(told)
    return found


def _told(stream: str, rows: Sequence[Any], *, roots: dict[str, MediaEvent], mapper: EventMapper) -> Notification | None:
    happened = [mapper.read(topic, stream=stream, version=version, state=state) for _, _, version, topic, state, *_ in rows]
    for event in happened:
        roots[stream] = event.mutate(roots.get(stream))  # type: ignore[assignment]
    done = effect(happened)
    if done is None:
        return None
    position, *_, transaction, _, at = rows[-1]
    ordering_key = stream.partition(":")[2]
    return Notification(position, ordering_key, transaction, at, payload(ordering_key, roots[stream].details, effect=done))


def wanted(receiver: Receiver, told: Iterable[Notification]) -> dict[UUID, Notification]:
    return {delivery_id(receiver.webhook, one.position, ordering_key=one.ordering_key): one for one in told}


def missing(receiver: Receiver, told: Iterable[Notification]) -> int:
    return len(wanted(receiver, told).keys() - receiver.accepted.keys())


def findings(receiver: Receiver, told: Sequence[Notification]) -> Findings:
    expected = wanted(receiver, told)
    known = {delivery: expected[delivery] for delivery in receiver.arrivals if delivery in expected}
    return Findings(
        receiver,
        requests=receiver.requests,
        unique=len(receiver.arrivals),
        lost=len(expected.keys() - receiver.accepted.keys()),
        disordered=_disordered(known.values()),
        strange=len(receiver.arrivals.keys() - expected.keys()),
        wrong=receiver.altered + receiver.unsigned + sum(_differs(receiver, delivery, one) for delivery, one in known.items()),
        latencies=[receiver.arrivals[delivery][0] - one.at for delivery, one in known.items()],
    )


def _disordered(firsts: Iterable[Notification]) -> int:
    """How many came behind one of the same Event that is later in the log."""
    latest: dict[str, int] = {}
    behind = 0
    for one in firsts:
        behind += one.position < latest.get(one.ordering_key, 0)
        latest[one.ordering_key] = max(latest.get(one.ordering_key, 0), one.position)
    return behind


def _differs(receiver: Receiver, delivery: UUID, one: Notification) -> bool:
    body = one.body.encode() if receiver.as_json else form_body(one.body)
    return receiver.arrivals[delivery][1] != body or position_of(delivery) != one.position


def settled(receivers: Iterable[Receiver], told: Sequence[Notification], *, since: float) -> float:
    """How many seconds after `since` all that was written before had arrived."""
    last = since
    for receiver in receivers:
        for delivery, one in wanted(receiver, told).items():
            if one.at <= since:
                last = max(last, receiver.accepted.get(delivery, since))
    return last - since


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def by_transaction(told: Iterable[Notification]) -> Mapping[str, int]:
    return {one.transaction: one.position for one in told}
